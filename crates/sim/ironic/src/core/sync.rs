//! Periodic power sync, and restarts.

use metal3_ironic::model::state::{PowerState, ProvisionState};

use super::{Core, HOST, Now, Slot};
use crate::life::{Event, step};

/// Consecutive failures to read or restore the power before Ironic sets maintenance.
const MAX_POWER_SYNC_FAILURES: u32 = 3;

impl Core {
    /// Compares the recorded power of every node with its machine and forces the recorded power. When they match,
    /// Ironic erases `last_error`, even of a failed node: only the history keeps the message.
    pub(super) fn sync_power(&mut self, now: Now) {
        let serials: Vec<u64> = self.nodes.keys().copied().collect();
        for serial in serials {
            if self.sync_one(serial, now) {
                self.touch(serial, now);
            }
        }
    }

    /// Returns whether the record changed.
    fn sync_one(&mut self, serial: u64, now: Now) -> bool {
        let Some((node, mut machine)) = self.node_and_machine(serial) else {
            return false;
        };
        let excluded = matches!(
            node.provision.state,
            ProvisionState::Enroll
                | ProvisionState::CleanWait
                | ProvisionState::WaitCallBack
                | ProvisionState::AdoptFailed
        );
        // A power change would interrupt an update of the firmware.
        if node.lock.is_some() || excluded || !node.fw_updates.is_empty() {
            return false;
        }
        let actual = match machine.as_deref().map(|machine| (machine.reach(), machine)) {
            None => node.power.clone(),
            Some((Ok(_), machine)) => Some(machine.power.clone()),
            Some((Err(error), _)) => return self.unreachable(serial, &error.message, now),
        };
        if node.fault == Some("power failure") {
            node.power_sync_failures = 0;
            node.set_maintenance(false, None);
            node.power = actual;
            return true;
        }
        if node.in_maintenance() {
            return false;
        }
        if node.power == actual {
            node.power_sync_failures = 0;
            return node.last_error.take().is_some();
        }
        let record = node.power.clone();
        match (record, &mut machine) {
            (Some(record), Some(machine)) if !node.is_set("disable_power_off") => {
                let switched = machine.switch(&record).map_err(|error| error.message);
                self.power_restored(serial, &record, actual, switched, now)
            }
            _ => {
                node.power = actual;
                true
            }
        }
    }

    /// Records the result of forcing the power. Returns whether the record changed.
    fn power_restored(
        &mut self,
        serial: u64,
        record: &PowerState,
        actual: Option<PowerState>,
        switched: Result<(), String>,
        now: Now,
    ) -> bool {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return false;
        };
        let Err(error) = switched else {
            node.power_sync_failures = 0;
            // The error of a failed node stays until a sync confirms the power.
            if !node.provision.state.as_str().ends_with(" failed") {
                node.last_error = None;
            }
            return true;
        };
        node.power_sync_failures = node.power_sync_failures.saturating_add(1);
        if node.power_sync_failures > MAX_POWER_SYNC_FAILURES {
            self.set_power_fault(serial, actual, &error, now);
        } else {
            let message = format!("Failed to change power state to '{record}' by '{record}': {error}");
            node.last_error = Some(message.clone());
            self.note(serial, "ERROR", message, now);
        }
        true
    }

    /// Counts a failed power read; too many set maintenance. Returns whether the record changed.
    fn unreachable(&mut self, serial: u64, error: &str, now: Now) -> bool {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return false;
        };
        node.power_sync_failures = node.power_sync_failures.saturating_add(1);
        if node.power_sync_failures <= MAX_POWER_SYNC_FAILURES || node.in_maintenance() {
            return false;
        }
        self.set_power_fault(serial, None, error, now);
        true
    }

    /// Records the actual power and sets maintenance until the power can be read again.
    fn set_power_fault(&mut self, serial: u64, actual: Option<PowerState>, error: &str, now: Now) {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return;
        };
        let message = format!("During sync_power_state, max retries exceeded: {error}");
        node.power = actual;
        node.set_maintenance(true, Some(message.clone()));
        node.fault = Some("power failure");
        node.last_error = Some(message.clone());
        self.note(serial, "ERROR", message, now);
    }

    /// Restarts the conductor: it releases all locks and fails the work that it held in memory.
    pub(crate) fn restart(&mut self, now: Now) {
        let serials: Vec<u64> = self.nodes.keys().copied().collect();
        for serial in serials {
            let Some(node) = self.nodes.get_mut(&serial) else {
                continue;
            };
            let Some(held) = node.lock.take() else { continue };
            node.jobs.remove(&Slot::Power);
            if node.target_power.take().is_some() {
                node.last_error = Some("Pending power operation was aborted due to conductor restart".to_owned());
            }
            if held == Slot::Life {
                node.jobs.remove(&Slot::Life);
                let state = node.provision.state.clone();
                if let Some(at) = step(&node.provision, Event::Fail).filter(|_| state.is_transitional()) {
                    node.enter(at, now.wall);
                    let message =
                        format!("The {state} state can't be resumed by conductor {HOST}. Moving to fail state.");
                    node.last_error = Some(message.clone());
                    self.note(serial, "ERROR", message, now);
                }
            }
            self.touch(serial, now);
        }
    }
}
