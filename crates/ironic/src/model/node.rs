//! A node, and what can be asked about it in one answer.

use chrono::{DateTime, Utc};
use metal3_domain::ids::NodeUuid;
use serde::Deserialize;
use serde_json::Value;

use super::state::{PowerState, ProvisionState};
use super::{Fields, blank_is_none, null_is_default};

/// A machine as Ironic knows it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Node {
    /// Its identity.
    pub uuid: NodeUuid,
    /// Its name, if it has one.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub name: Option<String>,
    /// The hardware type.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub driver: Option<String>,
    /// Where it is in its life.
    pub provision_state: ProvisionState,
    /// Where it is heading. Empty text and null both mean nowhere.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_provision_state: Option<String>,
    /// Whether it runs, as of Ironic's last look.
    #[serde(default)]
    pub power_state: Option<PowerState>,
    /// Which power change goes on.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_power_state: Option<String>,
    /// The last failure of anything at all; later work may clear it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub last_error: Option<String>,
    /// Whether Ironic leaves it alone.
    #[serde(default, deserialize_with = "null_is_default")]
    pub maintenance: bool,
    /// Why, in someone's words.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub maintenance_reason: Option<String>,
    /// Why, in Ironic's own: `power failure`, `clean failure`.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub fault: Option<String>,
    /// The conductor that holds its lock.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub reservation: Option<String>,
    /// The conductor that looks after it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub conductor: Option<String>,
    /// Who uses it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub instance_uuid: Option<String>,
    /// Whether it is cleaned between users; absent: Ironic's default.
    #[serde(default)]
    pub automated_clean: Option<bool>,
    /// Whether it may not be switched off. Absent in old dialects.
    #[serde(default)]
    pub disable_power_off: Option<bool>,
    /// What the BMC says of its health. Absent in old dialects.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub health: Option<String>,
    /// The way to the BMC and the ramdisk. Secrets are masked by Ironic.
    #[serde(default)]
    pub driver_info: Fields,
    /// What the machine is.
    #[serde(default)]
    pub properties: Fields,
    /// What is to be deployed.
    #[serde(default)]
    pub instance_info: Fields,
    /// The network while a ramdisk runs.
    #[serde(default)]
    pub network_data: Fields,
    /// RAID as Ironic believes it is.
    #[serde(default)]
    pub raid_config: Fields,
    /// RAID as asked for.
    #[serde(default)]
    pub target_raid_config: Fields,
    /// How its BIOS is set.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub bios_interface: Option<String>,
    /// How it is booted.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub boot_interface: Option<String>,
    /// How it is deployed.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub deploy_interface: Option<String>,
    /// How its firmware is updated.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub firmware_interface: Option<String>,
    /// How it is inspected.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub inspect_interface: Option<String>,
    /// How its boot device is chosen.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub management_interface: Option<String>,
    /// How it is switched on and off.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub power_interface: Option<String>,
    /// How its RAID is set.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub raid_interface: Option<String>,
    /// How what only its vendor offers is reached.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub vendor_interface: Option<String>,
    /// The cleaning step that runs.
    #[serde(default)]
    pub clean_step: Fields,
    /// The deploy step that runs.
    #[serde(default)]
    pub deploy_step: Fields,
    /// The service step that runs.
    #[serde(default)]
    pub service_step: Fields,
    /// When it came.
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    /// When its record last changed. Null until the first change, and one of the database's precision.
    #[serde(default)]
    pub updated_at: Option<DateTime<Utc>>,
    /// When its provision state last changed.
    #[serde(default)]
    pub provision_updated_at: Option<DateTime<Utc>>,
    /// When the last inspection ended.
    #[serde(default)]
    pub inspection_finished_at: Option<DateTime<Utc>>,
}

/// The answer of `validate`: one check per interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation(pub Vec<(String, InterfaceCheck)>);

/// Whether an interface could do its work with the node as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InterfaceCheck {
    /// Yes, no, or not supported (null).
    #[serde(default)]
    pub result: Option<bool>,
    /// Why not.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub reason: Option<String>,
}

impl<'de> Deserialize<'de> for Validation {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let map = std::collections::BTreeMap::<String, InterfaceCheck>::deserialize(from)?;
        Ok(Self(map.into_iter().collect()))
    }
}

impl Validation {
    /// Why the node cannot be deployed: the reasons of `boot` and `deploy`, or nothing.
    #[must_use]
    pub fn deploy_errors(&self) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(interface, check)| matches!(interface.as_str(), "boot" | "deploy") && check.result == Some(false))
            .map(|(interface, check)| check.reason.as_deref().unwrap_or(interface))
            .collect()
    }
}

/// The states of a node alone: the smallest read that shows them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct States {
    /// Where it is in its life.
    pub provision_state: ProvisionState,
    /// Where it is heading.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_provision_state: Option<String>,
    /// Whether it runs.
    #[serde(default)]
    pub power_state: Option<PowerState>,
    /// Which power change goes on.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_power_state: Option<String>,
    /// The last failure.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub last_error: Option<String>,
    /// `uefi` or `bios`, where the driver can tell.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub boot_mode: Option<String>,
    /// Whether secure boot is on, where the driver can tell.
    #[serde(default)]
    pub secure_boot: Option<bool>,
}

/// The device that the machine boots from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct BootDevice {
    /// `disk`, `cdrom`, `pxe` and others.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub boot_device: Option<String>,
    /// For every boot, or the next alone; absent when the BMC does not say.
    #[serde(default)]
    pub persistent: Option<bool>,
}

/// One line of a node's history: what went wrong, kept although `last_error` was cleared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HistoryEntry {
    /// Its identity.
    pub uuid: String,
    /// When.
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    /// `ERROR` and others.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub severity: Option<String>,
    /// The words.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub event: Option<String>,
}

/// The attached networks, as Ironic lists them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Vif {
    /// The network port's identity.
    pub id: String,
    /// Whatever else the network interface tells.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}
