//! What Ironic and the world do without being asked: looking at power, restarting.

use metal3_ironic::model::state::{PowerState, ProvisionState};

use super::{Core, HOST, Now, Slot};
use crate::life::{Event, step};

/// So often in a row Ironic may fail to read or to restore a machine's power before it puts the node aside.
const IN_VAIN_AT_MOST: u32 = 3;

impl Core {
    /// Ironic holds its record of every machine's power against the machine, and forces the record on it. Where the two
    /// agree it erases `last_error`, also of a node that stays failed: only the history keeps the words.
    pub(super) fn sync_power(&mut self, now: Now) {
        let serials: Vec<u64> = self.nodes.keys().copied().collect();
        for serial in serials {
            if self.sync_one(serial, now) {
                self.touch(serial, now);
            }
        }
    }

    /// Whether the record changed.
    fn sync_one(&mut self, serial: u64, now: Now) -> bool {
        let Some((node, mut machine)) = self.both(serial) else {
            return false;
        };
        let excluded = matches!(
            node.at.state,
            ProvisionState::Enroll
                | ProvisionState::CleanWait
                | ProvisionState::WaitCallBack
                | ProvisionState::AdoptFailed
        );
        if node.lock.is_some() || excluded {
            return false;
        }
        let seen = match machine.as_deref().map(|machine| (machine.reach(), machine)) {
            None => node.power.clone(),
            Some((Ok(_), machine)) => Some(machine.power.clone()),
            Some((Err(trouble), _)) => return self.blind(serial, &trouble.words, now),
        };
        if node.fault == Some("power failure") {
            node.in_vain = 0;
            node.set_maintenance(false, None);
            node.power = seen;
            return true;
        }
        if node.in_maintenance() {
            return false;
        }
        if node.power == seen {
            node.in_vain = 0;
            return node.last_error.take().is_some();
        }
        let record = node.power.clone();
        match (record, &mut machine) {
            (Some(record), Some(machine)) if !node.says("disable_power_off") => {
                let obeyed = machine.switch(&record).map_err(|trouble| trouble.words);
                self.restored(serial, &record, seen, obeyed, now)
            }
            _ => {
                node.power = seen;
                true
            }
        }
    }

    /// What came of forcing the recorded power on a machine. Whether the record changed.
    fn restored(
        &mut self,
        serial: u64,
        record: &PowerState,
        seen: Option<PowerState>,
        obeyed: Result<(), String>,
        now: Now,
    ) -> bool {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return false;
        };
        let Err(trouble) = obeyed else {
            node.in_vain = 0;
            // The words of a failed node are kept until the power is confirmed.
            if !node.at.state.as_str().ends_with(" failed") {
                node.last_error = None;
            }
            return true;
        };
        node.in_vain = node.in_vain.saturating_add(1);
        if node.in_vain > IN_VAIN_AT_MOST {
            self.put_aside(serial, seen, &trouble, now);
        } else {
            let words = format!("Failed to change power state to '{record}' by '{record}': {trouble}");
            node.last_error = Some(words.clone());
            self.note(serial, "ERROR", words, now);
        }
        true
    }

    /// A machine whose power cannot be read is put aside after a while. Whether the record changed.
    fn blind(&mut self, serial: u64, trouble: &str, now: Now) -> bool {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return false;
        };
        node.in_vain = node.in_vain.saturating_add(1);
        if node.in_vain <= IN_VAIN_AT_MOST || node.in_maintenance() {
            return false;
        }
        self.put_aside(serial, None, trouble, now);
        true
    }

    /// Ironic believes what it sees, and leaves the node alone until its power can be read again.
    fn put_aside(&mut self, serial: u64, seen: Option<PowerState>, trouble: &str, now: Now) {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return;
        };
        let words = format!("During sync_power_state, max retries exceeded: {trouble}");
        node.power = seen;
        node.set_maintenance(true, Some(words.clone()));
        node.fault = Some("power failure");
        node.last_error = Some(words.clone());
        self.note(serial, "ERROR", words, now);
    }

    /// What a conductor does when it comes back: nobody holds anything, and work that only it could have gone on with
    /// has failed.
    pub(crate) fn restart(&mut self, now: Now) {
        let serials: Vec<u64> = self.nodes.keys().copied().collect();
        for serial in serials {
            let Some(node) = self.nodes.get_mut(&serial) else {
                continue;
            };
            let Some(held) = node.lock.take() else { continue };
            node.jobs.remove(&Slot::Power);
            node.target_power = None;
            if held == Slot::Life {
                node.jobs.remove(&Slot::Life);
                let state = node.at.state.clone();
                if let Some(at) = step(&node.at, Event::Fail).filter(|_| state.is_transitional()) {
                    node.moves(at, now.wall);
                    let words =
                        format!("The {state} state can't be resumed by conductor {HOST}. Moving to fail state.");
                    node.last_error = Some(words.clone());
                    self.note(serial, "ERROR", words, now);
                }
            }
            self.touch(serial, now);
        }
    }
}
