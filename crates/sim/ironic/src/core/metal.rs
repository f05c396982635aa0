//! The machines, apart from Ironic's records of them.
//!
//! There is one behind every BMC that anybody asks for, made when it is first asked for. Nothing takes it away: a node
//! that is deleted, or a database that is lost, leaves it as it is.

use chrono::TimeDelta;
use metal3_ironic::model::state::ProvisionState;
use serde_json::json;

use super::{Core, Now};
use crate::bmc::Bmc;
use crate::life::At;
use crate::machine::Machine;
use crate::node::{Node, fields};

impl Core {
    /// The machine behind a BMC. `None` only where there is no profile to make one of.
    pub(crate) fn machine_at(&mut self, bmc: &Bmc) -> Option<&mut Machine> {
        if !self.machines.contains_key(bmc) {
            let made = self.machines.len();
            // Profiles are dealt out in turn.
            let profile = self.profiles.get(made.checked_rem(self.profiles.len())?)?.clone();
            let number = u64::try_from(made).unwrap_or_default().saturating_add(1);
            self.machines.insert(bmc.clone(), Machine::new(number, profile));
        }
        self.machines.get_mut(bmc)
    }

    /// The machine of a node, for whoever plays the world outside Ironic.
    pub(crate) fn machine_of(&mut self, ident: &str) -> Option<&mut Machine> {
        let bmc = self.node(ident).ok()?.bmc.clone()?;
        self.machines.get_mut(&bmc)
    }

    /// A node's machine, to look at.
    pub(super) fn metal(&self, node: &Node) -> Option<&Machine> {
        self.machines.get(node.bmc.as_ref()?)
    }

    /// A node together with its machine.
    pub(super) fn both(&mut self, serial: u64) -> Option<(&mut Node, Option<&mut Machine>)> {
        let node = self.nodes.get_mut(&serial)?;
        let machine = node.bmc.as_ref().and_then(|bmc| self.machines.get_mut(bmc));
        Some((node, machine))
    }

    /// Reads anew where a node's machine is.
    pub(super) fn look_up_bmc(&mut self, serial: u64) {
        let found = self.nodes.get_mut(&serial).and_then(|node| {
            node.look_up_bmc();
            node.bmc.clone()
        });
        if let Some(bmc) = found {
            self.machine_at(&bmc);
        }
    }

    /// Puts nodes in as if they had been enrolled long ago.
    pub(crate) fn enrol(&mut self, count: u32, driver: &str, now: Now) -> Option<Vec<String>> {
        let mut uuids = Vec::new();
        for number in 0..count {
            let name = format!("enrolled-{number}");
            let info = json!({"redfish_address": format!("https://{name}"), "ipmi_address": name});
            let body = json!({"driver": driver, "name": name, "driver_info": info});
            let record = fields::of_new(body.as_object()?, metal3_ironic::version::FIRST).ok()?;
            let serial = self.add(None, record, now).ok()?;
            let ago = TimeDelta::minutes(i64::from(number).saturating_add(60));
            let then = Now {
                wall: now.wall.checked_sub_signed(ago)?,
                ..now
            };
            let (node, machine) = self.both(serial)?;
            node.times.created = then.wall;
            node.power = machine.map(|machine| machine.power.clone());
            node.moves(At::rest(ProvisionState::Manageable), then.wall);
            uuids.push(node.uuid.clone());
            self.touch(serial, then);
        }
        Some(uuids)
    }
}
