//! The levels of simulation of the machine behind a node, and the node of each level.

use anyhow::bail;
use metal3_sim_bmc::{endpoint, identity::Number, inventory::inventory, profile::Profile};
use serde_json::{Value, json};

/// The level of simulation of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// L1: Ironic's fake hardware. The driver posts the inspection data.
    Fake,
    /// L2: Redfish without a ramdisk, against sushy-tools' emulator or labhosts.
    Redfish,
    /// L3: Redfish and agents of labhosts.
    Agent,
}

impl Level {
    /// Parses the value of `--level`.
    ///
    /// # Errors
    /// When there is no such level.
    pub fn parse(number: u8) -> anyhow::Result<Self> {
        Ok(match number {
            1 => Self::Fake,
            2 => Self::Redfish,
            3 => Self::Agent,
            other => bail!("--level {other}: choose 1 (fake hardware), 2 (Redfish) or 3 (Redfish and agents)"),
        })
    }

    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Fake => 1,
            Self::Redfish => 2,
            Self::Agent => 3,
        }
    }
}

/// Address and login of a BMC.
pub(crate) struct Bmc {
    pub(crate) address: String,
    pub(crate) system: String,
    pub(crate) username: String,
    pub(crate) password: String,
    /// The trusted certificate; `None` for plain HTTP.
    pub(crate) ca: Option<String>,
}

impl Bmc {
    pub(crate) fn of_lab(lab: &endpoint::Endpoint, place: &endpoint::Place) -> Self {
        Self {
            address: place.redfish_address.clone(),
            system: place.redfish_system_id.clone(),
            username: lab.username.clone(),
            password: lab.password.clone(),
            ca: Some(lab.ca.clone()),
        }
    }

    fn driver_info(&self) -> Value {
        json!({
            "redfish_address": self.address,
            "redfish_system_id": self.system,
            "redfish_username": self.username,
            "redfish_password": self.password,
            "redfish_verify_ca": self.ca.as_ref().map_or(json!(false), |ca| json!(ca)),
        })
    }
}

/// The body that creates a fake node.
pub(crate) fn fake_node(name: &str) -> Value {
    let mut node = json!({ "driver": "fake-hardware", "name": name, "network_interface": "noop" });
    if let Some(fields) = node.as_object_mut() {
        for part in [
            "boot",
            "power",
            "management",
            "deploy",
            "bios",
            "raid",
            "vendor",
            "firmware",
            "rescue",
        ] {
            fields.insert(format!("{part}_interface"), "fake".into());
        }
        // The fake interface stores no inventory; this one waits for a ramdisk's data.
        fields.insert("inspect_interface".into(), "agent".into());
    }
    node
}

/// The body that creates a Redfish node.
pub(crate) fn redfish_node(level: Level, name: &str, bmc: &Bmc) -> Value {
    let agent = level == Level::Agent;
    json!({
        "driver": "redfish",
        "name": name,
        "network_interface": "noop",
        "boot_interface": "redfish-virtual-media",
        "deploy_interface": if agent { "direct" } else { "ramdisk" },
        "inspect_interface": if agent { "agent" } else { "redfish" },
        // Cleaning requires a ramdisk.
        "automated_clean": agent,
        "driver_info": bmc.driver_info(),
        "properties": { "capabilities": "boot_mode:uefi" },
    })
}

/// The data that a ramdisk posts when it inspects this machine.
#[must_use]
pub fn inspection_data(profile: &Profile, number: Number) -> Value {
    json!({ "inventory": inventory(profile, number) })
}

/// The part of Ironic's inventory that comes from a BMC, computed from the profile.
pub(crate) fn redfish_inventory(profile: &Profile, number: Number) -> Value {
    json!({
        "memory_mb": profile.memory_mib,
        "architecture": profile.architecture.as_str(),
        "cpu_model": profile.cpu.model,
        "cpu_count": profile.cpu.threads,
        "macs": sorted(profile.each_nic().map(|(index, _)| number.mac(index)).map(Value::from)),
        "disks": sorted(profile.each_disk().map(|(_, _, group)| Value::from(group.bytes))),
        "boot_mode": "uefi",
    })
}

/// The same part of the stored inventory.
pub(crate) fn redfish_part(stored: &Value) -> Value {
    let field = |pointer: &str| stored.pointer(pointer).cloned().unwrap_or_default();
    let each = |pointer: &str, name: &str| {
        let items = stored.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        sorted(items.filter_map(|item| item.get(name).cloned()))
    };
    json!({
        "memory_mb": field("/memory/physical_mb"),
        "architecture": field("/cpu/architecture"),
        "cpu_model": field("/cpu/model_name"),
        "cpu_count": field("/cpu/count"),
        "macs": each("/interfaces", "mac_address"),
        "disks": each("/disks", "size"),
        "boot_mode": field("/boot/current_boot_mode"),
    })
}

fn sorted(items: impl Iterator<Item = Value>) -> Value {
    let mut items: Vec<Value> = items.collect();
    items.sort_by_key(ToString::to_string);
    Value::Array(items)
}
