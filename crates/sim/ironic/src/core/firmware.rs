//! Updates of the firmware: a step that Ironic polls in `clean wait`, and what a timeout leaves in the node.
//!
//! As in Ironic's Redfish driver the list of updates stays in the node until the last one has ended or failed. A timeout of the
//! cleaning does not remove it. Ironic discards it while the node has failed and is in maintenance; in another state it
//! stays, and the next `clean wait` polls it again.

use std::time::Duration;

use serde_json::{Value, json};

use super::perform::{Outcome, step_field};
use super::{Core, Now, Timer};
use crate::firmware::{self, FirmwareUpdates, member};
use crate::node::Slot;
use crate::work::{Action, Kind, TimedAction};

/// Ironic's `[redfish]firmware_update_fail_interval`.
const DISCARD_INTERVAL: Duration = Duration::from_secs(60);
/// Ironic's `[redfish]firmware_update_overall_timeout`.
const OVERALL_TIMEOUT: Duration = Duration::from_secs(7_200);

impl Core {
    /// Begins with the updates of a step; the rest of the steps follows.
    pub(super) fn begin_updates(&mut self, serial: u64, step: &Value, rest: &[Value], now: Now) -> Option<Outcome> {
        let work = self.pace.work;
        let (node, machine) = self.node_and_machine(serial)?;
        let settings = step.pointer("/args/settings").cloned().unwrap_or_default();
        let rejected = firmware::invalid(&settings);
        // The fake driver reads nothing.
        if let (None, None) = (&rejected, &machine) {
            return Some(Outcome::Done);
        }
        if let Some(message) = rejected {
            let message = format!(
                "Node {} failed step {{'interface': 'firmware', 'step': 'update'}}: {message}",
                node.uuid
            );
            return Some(Outcome::Fails(Duration::ZERO, message));
        }
        node.fw_updates = settings.as_array().cloned().unwrap_or_default();
        node.fw_began = Some(now.monotonic);
        let job = node.jobs.get_mut(&Slot::Life)?;
        let soon = |action| TimedAction {
            after: Duration::ZERO,
            action,
        };
        if !rest.is_empty() {
            job.script.push_front(soon(Action::RunSteps(rest.to_vec())));
        }
        job.script.push_front(soon(Action::Move(crate::life::Event::Resume)));
        let update = Action::UpdateFirmware;
        job.script.push_front(TimedAction {
            after: work,
            action: update,
        });
        job.script.push_front(soon(Action::Move(crate::life::Event::Wait)));
        Some(Outcome::Done)
    }

    /// Polls the update that the BMC performs, and begins with the next one.
    pub(super) fn update_firmware(&mut self, serial: u64, kind: Kind, now: Now) -> Option<Outcome> {
        let (work, timeout) = (self.pace.work, self.pace.ramdisk_timeout);
        let (node, machine) = self.node_and_machine(serial)?;
        if node.lock.is_some() {
            return Some(Outcome::Later);
        }
        let machine = machine?;
        let Some(update) = node.fw_updates.first().cloned() else {
            return Some(Outcome::Done);
        };
        match machine.firmware_updates {
            FirmwareUpdates::NeverEnd => {
                let message = timed_out(&node.step(step_field(kind)), kind);
                return Some(Outcome::Fails(timeout, message));
            }
            updates if updates.fails(&update) => {
                let message = failed(&node.uuid, &update);
                node.end_updates();
                return Some(Outcome::Fails(Duration::ZERO, message));
            }
            FirmwareUpdates::Succeed | FirmwareUpdates::Fail | FirmwareUpdates::FailBmc => machine.flash(&update),
        }
        node.fw_updates.remove(0);
        if !node.fw_updates.is_empty() {
            let again = TimedAction {
                after: work,
                action: Action::UpdateFirmware,
            };
            node.jobs.get_mut(&Slot::Life)?.script.push_front(again);
            self.touch(serial, now);
            return Some(Outcome::Done);
        }
        node.end_updates();
        node.record_firmware(machine, now.wall);
        node.record_bios(machine);
        let step = node.steps.remove(step_field(kind)).unwrap_or_default();
        let is_aborted = step.get("abort_after") == Some(&json!(true));
        let operation = if kind == Kind::Service { "Service" } else { "Clean" };
        let aborted = format!(
            "{operation} operation aborted for node {} after the completion of step \"update\"",
            node.uuid
        );
        self.touch(serial, now);
        Some(if is_aborted {
            Outcome::Fails(Duration::ZERO, aborted)
        } else {
            Outcome::Done
        })
    }

    /// Polls what an earlier cleaning left, when the agent of this one responds.
    pub(super) fn after_leftover(&mut self, serial: u64, kind: Kind, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let (Some(machine), Some(update)) = (machine, node.fw_updates.first().cloned()) else {
            return Some(Outcome::Done);
        };
        let age = node.fw_began.map_or(Duration::ZERO, |began| now.monotonic.since(began));
        let message = match machine.firmware_updates {
            _ if age >= OVERALL_TIMEOUT => format!(
                "Firmware update on node {} has exceeded the overall timeout of {} seconds. Elapsed time: {} seconds.",
                node.uuid,
                OVERALL_TIMEOUT.as_secs(),
                age.as_secs()
            ),
            updates if updates.fails(&update) => failed(&node.uuid, &update),
            FirmwareUpdates::NeverEnd => return Some(Outcome::Done),
            FirmwareUpdates::Succeed | FirmwareUpdates::Fail | FirmwareUpdates::FailBmc => {
                // The conductor goes on with the rest of the old list.
                for update in std::mem::take(&mut node.fw_updates) {
                    machine.flash(&update);
                }
                node.end_updates();
                node.record_firmware(machine, now.wall);
                return Some(Outcome::Done);
            }
        };
        node.end_updates();
        if kind == Kind::Deploy {
            return Some(Outcome::Fails(Duration::ZERO, message));
        }
        // No step of this cleaning has begun, so Ironic sets neither a fault nor the failed state.
        node.set_maintenance(true, Some(message.clone()));
        self.note(serial, "ERROR", message, now);
        self.touch(serial, now);
        Some(Outcome::Later)
    }

    /// Looks after the leftover of a node that has failed, again and again.
    pub(super) fn schedule_discard(&mut self, serial: u64, now: Now) {
        let order = self.next_order();
        let has_some = self.nodes.get(&serial).is_some_and(|node| !node.fw_updates.is_empty());
        if has_some {
            let at = now.monotonic.after(DISCARD_INTERVAL);
            self.timers.insert((at, order), Timer::DiscardUpdates { node: serial });
        }
    }

    pub(super) fn discard_updates(&mut self, serial: u64, now: Now) {
        use metal3_ironic::model::state::ProvisionState as S;
        let Some(node) = self.nodes.get_mut(&serial) else {
            return;
        };
        let has_failed = matches!(
            node.provision.state,
            S::CleanFailed | S::DeployFailed | S::ServiceFailed
        );
        if has_failed && node.in_maintenance() && node.lock.is_none() {
            node.end_updates();
            self.touch(serial, now);
        }
        self.schedule_discard(serial, now);
    }
}

/// As Ironic names it, with the URL.
fn failed(uuid: &str, update: &Value) -> String {
    format!(
        "Firmware update failed for node {uuid}, firmware {}. Error: the BMC does not accept the image",
        member(update, "url")
    )
}

/// As Ironic names it, with the step and its arguments.
fn timed_out(step: &Value, kind: Kind) -> String {
    let what = if kind == Kind::Service { "servicing" } else { "cleaning" };
    let updates = step
        .pointer("/args/settings")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let shown = updates.map(|update| {
        let (component, url) = (member(update, "component"), member(update, "url"));
        format!("{{'component': '{component}', 'url': '{url}'}}")
    });
    format!(
        "Timeout reached while {what} the node. Please check if the ramdisk responsible for the {what} is running on the node. \
         Failed on step {{'interface': 'firmware', 'step': 'update', 'args': {{'settings': [{}]}}}}.",
        shown.collect::<Vec<_>>().join(", ")
    )
}
