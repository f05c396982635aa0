//! What Ironic and the world do without being asked: looking at power, restarting.

use metal3_ironic::model::state::{PowerState, ProvisionState};

use super::{Core, HOST, Now, Slot};
use crate::life::{Event, step};

/// So often in a row Ironic may fail to read a machine's power before it puts the node aside.
const BLIND_AT_MOST: u32 = 3;

impl Core {
    /// Ironic holds its record of every machine's power against the machine, and forces the record on it.
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
            ProvisionState::Enroll | ProvisionState::CleanWait | ProvisionState::WaitCallBack
        );
        if node.lock.is_some() || excluded {
            return false;
        }
        let seen = match machine.as_deref().map(|machine| (machine.reach(), machine)) {
            None => node.power.clone(),
            Some((Ok(_), machine)) => Some(machine.power.clone()),
            Some((Err(trouble), _)) => return self.blind(serial, &trouble.words, now),
        };
        node.blind = 0;
        if node.fault == Some("power failure") {
            node.set_maintenance(false, None);
            node.power = seen;
            return true;
        }
        if node.in_maintenance() {
            return false;
        }
        if node.power == seen {
            return node.last_error.take().is_some();
        }
        let keeps_running = node.says("disable_power_off");
        match (&node.power, &mut machine) {
            (Some(record), Some(machine)) if !keeps_running => {
                let record: PowerState = record.clone();
                // A machine that does not obey is looked at again next time.
                machine.switch(&record).is_ok()
            }
            _ => {
                node.power = seen;
                true
            }
        }
    }

    /// A machine whose power cannot be read is put aside after a while. Whether the record changed.
    fn blind(&mut self, serial: u64, trouble: &str, now: Now) -> bool {
        let Some(node) = self.nodes.get_mut(&serial) else {
            return false;
        };
        node.blind = node.blind.saturating_add(1);
        if node.blind <= BLIND_AT_MOST || node.in_maintenance() {
            return false;
        }
        let words = format!("During sync_power_state, max retries exceeded: {trouble}");
        node.power = None;
        node.set_maintenance(true, Some(words.clone()));
        node.fault = Some("power failure");
        node.last_error = Some(words.clone());
        self.note(serial, "ERROR", words, now);
        true
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
