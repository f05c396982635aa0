//! A node and its sub-resources.

use chrono::{DateTime, Utc};
use metal3_domain::ids::NodeUuid;
use serde::Deserialize;
use serde_json::Value;

use super::state::{PowerState, ProvisionState};
use super::{Fields, blank_is_none, null_is_default};

/// A node.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Node {
    /// Its UUID.
    pub uuid: NodeUuid,
    /// Its name, if it has one.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub name: Option<String>,
    /// The hardware type.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub driver: Option<String>,
    /// The provision state.
    pub provision_state: ProvisionState,
    /// The target of the transition. Empty text and null both mean none.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_provision_state: Option<String>,
    /// The power state, as of Ironic's last check.
    #[serde(default)]
    pub power_state: Option<PowerState>,
    /// The target of a power change.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_power_state: Option<String>,
    /// The last error of any operation; a later operation may clear it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub last_error: Option<String>,
    /// Whether the node is in maintenance.
    #[serde(default, deserialize_with = "null_is_default")]
    pub maintenance: bool,
    /// The reason, as the client set it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub maintenance_reason: Option<String>,
    /// The fault that Ironic set: `power failure`, `clean failure`.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub fault: Option<String>,
    /// The conductor that holds its lock.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub reservation: Option<String>,
    /// The conductor that manages it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub conductor: Option<String>,
    /// The instance on it.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub instance_uuid: Option<String>,
    /// Whether it is cleaned between instances; absent: Ironic's default.
    #[serde(default)]
    pub automated_clean: Option<bool>,
    /// Whether power off is forbidden. Absent in old microversions.
    #[serde(default)]
    pub disable_power_off: Option<bool>,
    /// The health that the BMC reports. Absent in old microversions.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub health: Option<String>,
    /// Address and credentials of the BMC, and ramdisk parameters. Ironic masks secrets.
    #[serde(default)]
    pub driver_info: Fields,
    /// Hardware properties.
    #[serde(default)]
    pub properties: Fields,
    /// The image to deploy.
    #[serde(default)]
    pub instance_info: Fields,
    /// The network configuration of the ramdisk.
    #[serde(default)]
    pub network_data: Fields,
    /// The current RAID configuration.
    #[serde(default)]
    pub raid_config: Fields,
    /// The wanted RAID configuration.
    #[serde(default)]
    pub target_raid_config: Fields,
    /// The interface for BIOS settings.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub bios_interface: Option<String>,
    /// The interface for boot.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub boot_interface: Option<String>,
    /// The interface for deployment.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub deploy_interface: Option<String>,
    /// The interface for firmware updates.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub firmware_interface: Option<String>,
    /// The interface for inspection.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub inspect_interface: Option<String>,
    /// The interface for the boot device.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub management_interface: Option<String>,
    /// The interface for power.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub power_interface: Option<String>,
    /// The interface for RAID.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub raid_interface: Option<String>,
    /// The interface for vendor-specific calls.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub vendor_interface: Option<String>,
    /// The running cleaning step.
    #[serde(default)]
    pub clean_step: Fields,
    /// The running deploy step.
    #[serde(default)]
    pub deploy_step: Fields,
    /// The running service step.
    #[serde(default)]
    pub service_step: Fields,
    /// When it was created.
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    /// When its record last changed, with the precision of the database. Null until the first change.
    #[serde(default)]
    pub updated_at: Option<DateTime<Utc>>,
    /// When its provision state last changed.
    #[serde(default)]
    pub provision_updated_at: Option<DateTime<Utc>>,
    /// When the last inspection ended.
    #[serde(default)]
    pub inspection_finished_at: Option<DateTime<Utc>>,
}

/// The response of `validate`: one result per interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation(pub Vec<(String, InterfaceCheck)>);

/// Whether an interface can work with the node as it is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InterfaceCheck {
    /// Valid, invalid, or not supported (null).
    #[serde(default)]
    pub result: Option<bool>,
    /// The reason of an invalid interface.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub reason: Option<String>,
}

impl Node {
    /// Whether Ironic is changing the node, so that its record changes without a request.
    #[must_use]
    pub const fn is_in_transition(&self) -> bool {
        self.provision_state.is_transitional() || self.target_power_state.is_some() || self.reservation.is_some()
    }
}

impl<'de> Deserialize<'de> for Validation {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let map = std::collections::BTreeMap::<String, InterfaceCheck>::deserialize(from)?;
        Ok(Self(map.into_iter().collect()))
    }
}

impl Validation {
    /// The reasons why the node cannot be deployed: those of `boot` and `deploy`.
    #[must_use]
    pub fn deploy_errors(&self) -> Vec<&str> {
        self.0
            .iter()
            .filter(|(interface, check)| matches!(interface.as_str(), "boot" | "deploy") && check.result == Some(false))
            .map(|(interface, check)| check.reason.as_deref().unwrap_or(interface))
            .collect()
    }
}

/// The states of a node: the smallest response that contains them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct States {
    /// The provision state.
    pub provision_state: ProvisionState,
    /// The target of the transition.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_provision_state: Option<String>,
    /// The power state.
    #[serde(default)]
    pub power_state: Option<PowerState>,
    /// The target of a power change.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub target_power_state: Option<String>,
    /// The last error.
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
    /// For every boot, or for the next one only; absent when the BMC does not report it.
    #[serde(default)]
    pub persistent: Option<bool>,
}

/// An entry of the node history, which keeps errors after `last_error` was cleared.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct HistoryEntry {
    /// Its UUID.
    pub uuid: String,
    /// When.
    #[serde(default)]
    pub created_at: Option<DateTime<Utc>>,
    /// `ERROR` and others.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub severity: Option<String>,
    /// The message.
    #[serde(default, deserialize_with = "blank_is_none")]
    pub event: Option<String>,
}

/// An attached network.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Vif {
    /// The UUID of the network port.
    pub id: String,
    /// Other fields of the network interface.
    #[serde(flatten)]
    pub more: serde_json::Map<String, Value>,
}
