//! The machines, independent of Ironic's nodes.
//!
//! A machine is created on first use of its BMC address and is never removed: deleting a node or losing the database
//! does not change it.

use chrono::TimeDelta;
use metal3_ironic::model::state::ProvisionState;
use serde_json::json;

use super::{Core, Now};
use crate::bmc::Bmc;
use crate::life::Provision;
use crate::machine::Machine;
use crate::node::{Node, fields};

impl Core {
    /// The machine of a BMC, created on first use. `None` only without a profile.
    pub(crate) fn machine_at(&mut self, bmc: &Bmc) -> Option<&mut Machine> {
        if !self.machines.contains_key(bmc) {
            let made = self.machines.len();
            // Profiles are assigned round-robin.
            let profile = self.profiles.get(made.checked_rem(self.profiles.len())?)?.clone();
            let number = u64::try_from(made).unwrap_or_default().saturating_add(1);
            self.machines.insert(bmc.clone(), Machine::new(number, profile));
        }
        self.machines.get_mut(bmc)
    }

    /// The machine of a node.
    pub(crate) fn machine_of(&mut self, ident: &str) -> Option<&mut Machine> {
        let bmc = self.node(ident).ok()?.bmc.clone()?;
        self.machines.get_mut(&bmc)
    }

    /// A node and its machine.
    pub(super) fn node_and_machine(&mut self, serial: u64) -> Option<(&mut Node, Option<&mut Machine>)> {
        let node = self.nodes.get_mut(&serial)?;
        let mut machine = node.bmc.as_ref().and_then(|bmc| self.machines.get_mut(bmc));
        if let Some(machine) = &mut machine {
            machine.presented = node.bmc_account();
        }
        Some((node, machine))
    }

    /// Updates the BMC address of a node from its record.
    pub(super) fn resolve_bmc(&mut self, serial: u64) {
        let found = self.nodes.get_mut(&serial).and_then(|node| {
            node.resolve_bmc();
            node.bmc.clone()
        });
        if let Some(bmc) = found {
            self.machine_at(&bmc);
        }
    }

    /// Adds nodes with old timestamps, each with the port of its machine's first network card.
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
            let (node, machine) = self.node_and_machine(serial)?;
            node.times.created = then.wall;
            node.power = machine.as_ref().map(|machine| machine.power.clone());
            if let Some(machine) = machine.as_deref() {
                node.record_firmware(machine, then.wall);
            }
            let mac = machine.and_then(|machine| machine.macs().into_iter().next());
            node.enter(Provision::stable(ProvisionState::Manageable), then.wall);
            let uuid = node.uuid.clone();
            uuids.push(uuid.clone());
            self.touch(serial, then);
            if let Some(mac) = mac {
                // The address of a machine is new.
                self.insert_port(uuid, mac, true, then);
            }
        }
        Some(uuids)
    }
}
