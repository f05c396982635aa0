//! What a deployment does on the machine.

use std::time::Duration;

use serde_json::{Value, json};

use super::perform::Outcome;
use super::{Core, Now, Slot};
use crate::machine::{LiveImage, Machine};
use crate::node::Node;
use crate::work::{Action, TimedAction, deploy_steps};

/// The step that writes the image.
const WRITING: &str = "write_image";
/// The steps of the interface `direct`, in their order.
const DIRECT: [&str; 6] = [
    "deploy",
    WRITING,
    "prepare_instance_boot",
    "tear_down_agent",
    "switch_to_tenant_network",
    "boot_instance",
];

impl Core {
    pub(super) fn write(&mut self, serial: u64, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let Some(machine) = machine else {
            return Some(Outcome::Done);
        };
        if !machine.step_time.is_zero() && node.deploy_steps.is_none() {
            let (after, action) = (machine.step_time, Action::WriteImage);
            let job = node.jobs.get_mut(&Slot::Life)?;
            job.script.push_front(TimedAction { after, action });
            let all: Vec<_> = DIRECT
                .iter()
                .map(|name| json!({ "interface": "deploy", "step": name, "args": {} }))
                .collect();
            node.step_index = DIRECT.iter().position(|name| *name == WRITING);
            node.steps.insert(
                "deploy_step",
                json!({ "interface": "deploy", "step": WRITING, "args": {} }),
            );
            node.deploy_steps = Some(all);
            self.touch(serial, now);
            return Some(Outcome::Done);
        }
        node.deploy_steps = None;
        node.steps.remove("deploy_step");
        Some(match machine.write(deploy_steps::image(node), &node.disk_choice()) {
            Ok(()) => Outcome::Done,
            Err(message) => {
                let message = format!("Deploy step deploy.write_image failed on node {}. {message}", node.uuid);
                Outcome::Fails(Duration::ZERO, message)
            }
        })
    }

    pub(super) fn check_deploy_steps(&mut self, serial: u64, list: &[Value]) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let unknown = machine.and_then(|machine| deploy_steps::unknown(machine, list));
        Some(match unknown {
            None => Outcome::Done,
            Some(message) => {
                let message = format!(
                    "Failed to validate the final deploy steps list for node {}: {message}",
                    node.uuid
                );
                Outcome::Fails(Duration::ZERO, message)
            }
        })
    }

    pub(super) fn run_deploy_steps(&mut self, serial: u64, list: &[Value]) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let ran = machine.map_or(Ok(()), |machine| deploy_steps::run(node, machine, list));
        Some(ran.map_or_else(|message| Outcome::Fails(Duration::ZERO, message), |()| Outcome::Done))
    }

    /// Both what the machine booted before and a disc of a client are gone.
    pub(super) fn prepare_agent(&mut self, serial: u64) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        if let Some(machine) = machine {
            clean_up_boot(node, machine);
        }
        Some(Outcome::Done)
    }

    pub(super) fn prepare_instance(&mut self, serial: u64) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        if let Some(machine) = machine {
            clean_up_boot(node, machine);
            if node.is_live() {
                set_live(node, machine);
            }
        }
        Some(Outcome::Done)
    }
}

/// Ends what Ironic made the machine boot. Over virtual media it ejects every disc of the drive, also one that a client attached;
/// what does not leave the drive is booted again.
pub(super) fn clean_up_boot(node: &Node, machine: &mut Machine) {
    if node.boots_from_drive() && machine.ejects {
        machine.eject();
    }
    machine.live = machine.live.take().filter(|live| live.is_in_drive);
}

/// Inserts the live image of the node, or has it loaded from the network.
pub(super) fn set_live(node: &Node, machine: &mut Machine) {
    let is_in_drive = node.boots_from_drive();
    let source = node.image("boot_iso").map(str::to_owned);
    if is_in_drive {
        machine.media.clone_from(&source);
    }
    machine.live = source.map(|source| LiveImage { source, is_in_drive });
}
