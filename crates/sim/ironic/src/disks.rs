//! Which disks of a machine an image is written to, and which are erased.

use metal3_sim_bmc::hints::{self, Purpose};
use metal3_sim_bmc::inventory;
use serde_json::Value;

use crate::machine::Machine;

/// What the record of a node says about disks.
#[derive(Debug, Clone)]
pub(crate) struct DiskChoice {
    /// The hints of the root device.
    pub(crate) root: Value,
    /// The hints of what the agent skips.
    pub(crate) skipped: Vec<Value>,
}

impl Machine {
    fn disks(&self) -> Vec<Value> {
        let inventory = self.inventory();
        let disks = inventory.pointer("/inventory/disks").and_then(Value::as_array);
        disks.cloned().unwrap_or_default()
    }

    pub(crate) fn root_disk(&self, choice: &DiskChoice) -> String {
        let disks = self.disks();
        let is_root = |disk: &&Value| {
            let is_kept = hints::is_skipped(disk, &choice.skipped, Purpose::Image);
            is_kept == Ok(false) && hints::matches(disk, &choice.root) == Ok(true)
        };
        let default = || inventory::root_disk(&self.profile).map(|(_, name, _)| format!("/dev/{name}"));
        let chosen = disks.iter().find(is_root).map(named);
        chosen.or_else(default).unwrap_or_default()
    }

    /// Erases the disks that are not skipped.
    pub(crate) fn erase(&mut self, purpose: Purpose, choice: &DiskChoice) -> Result<(), String> {
        let mut erased = Vec::new();
        for disk in self.disks() {
            if !hints::is_skipped(&disk, &choice.skipped, purpose)? {
                erased.push(named(&disk));
            }
        }
        if self.root.is_empty() || erased.contains(&self.root) {
            self.disk = None;
        }
        self.data.retain(|name, _| !erased.contains(name));
        self.counts.erased = self.counts.erased.saturating_add(1);
        Ok(())
    }
}

fn named(disk: &Value) -> String {
    disk.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}
