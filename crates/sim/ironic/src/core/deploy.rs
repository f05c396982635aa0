//! What a deployment does on the machine.

use std::time::Duration;

use serde_json::Value;

use super::Core;
use super::perform::Outcome;
use crate::work::deploy_steps;

impl Core {
    pub(super) fn write(&mut self, serial: u64) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let Some(machine) = machine else {
            return Some(Outcome::Done);
        };
        Some(match machine.write(deploy_steps::image(node)) {
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

    pub(super) fn insert(&mut self, serial: u64) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        if let Some(machine) = machine {
            machine.media = node.image("boot_iso").map(str::to_owned);
        }
        Some(Outcome::Done)
    }
}
