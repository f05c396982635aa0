//! A node and its sub-resources.

use std::fmt;

use chrono::{DateTime, Utc};
use metal3_domain::ids::NodeUuid;
use serde::Deserialize;
use serde_json::Value;

use super::Fields;
use super::state::{PowerState, ProvisionState};
use crate::calls::provision::Step;

lenient! {
    /// A node.
    pub struct Node {
        required {
            /// Its UUID.
            pub uuid: NodeUuid,
            /// The provision state.
            pub provision_state: ProvisionState,
        }
        /// Its name, if it has one.
        pub name: Option<String>,
        /// The hardware type.
        pub driver: Option<String>,
        /// The target of the transition. Empty text and null both mean none.
        pub target_provision_state: Option<String>,
        /// The power state, as of Ironic's last check.
        pub power_state: Option<PowerState>,
        /// The target of a power change.
        pub target_power_state: Option<String>,
        /// The last error of any operation; a later operation may clear it.
        pub last_error: Option<String>,
        /// Whether the node is in maintenance.
        pub maintenance: bool,
        /// The reason, as the client set it.
        pub maintenance_reason: Option<String>,
        /// The fault that Ironic set: `power failure`, `clean failure`.
        pub fault: Option<String>,
        /// The conductor that holds its lock.
        pub reservation: Option<String>,
        /// The instance on it.
        pub instance_uuid: Option<String>,
        /// Whether it is cleaned between instances; absent: Ironic's default.
        pub automated_clean: Option<bool>,
        /// Whether power off is forbidden. Absent in old microversions.
        pub disable_power_off: Option<bool>,
        /// The health that the BMC reports. Absent in old microversions.
        pub health: Option<String>,
        /// Address and credentials of the BMC, and ramdisk parameters. Ironic masks secrets.
        pub driver_info: Fields,
        /// Hardware properties.
        pub properties: Fields,
        /// What clients store.
        pub extra: Fields,
        /// The image to deploy.
        pub instance_info: Fields,
        /// The network configuration of the ramdisk.
        pub network_data: Fields,
        /// The RAID configuration in force, as far as it was reported.
        pub raid_config: Fields,
        /// The wanted RAID configuration.
        pub target_raid_config: Fields,
        /// The interface for BIOS settings.
        pub bios_interface: Option<String>,
        /// The interface for boot.
        pub boot_interface: Option<String>,
        /// The interface for deployment.
        pub deploy_interface: Option<String>,
        /// The interface for firmware updates.
        pub firmware_interface: Option<String>,
        /// The interface for inspection.
        pub inspect_interface: Option<String>,
        /// The interface for the boot device.
        pub management_interface: Option<String>,
        /// The interface for power.
        pub power_interface: Option<String>,
        /// The interface for RAID.
        pub raid_interface: Option<String>,
        /// The interface for vendor-specific calls.
        pub vendor_interface: Option<String>,
        /// What Ironic keeps for itself, as far as it is read.
        pub driver_internal_info: InternalInfo,
        /// The running clean step. Its arguments may contain secrets.
        pub clean_step: Fields,
        /// The running deploy step. Its arguments may contain secrets.
        pub deploy_step: Fields,
        /// The running service step.
        pub service_step: Fields,
        /// When its record was created.
        pub created_at: Option<DateTime<Utc>>,
        /// When its record last changed, with the precision of the database. Null until the first change.
        pub updated_at: Option<DateTime<Utc>>,
        /// When its provision state last changed.
        pub provision_updated_at: Option<DateTime<Utc>>,
        /// When the last inspection ended.
        pub inspection_finished_at: Option<DateTime<Utc>>,
    }
}

/// What is read of Ironic's notes about a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct InternalInfo {
    /// The updates of the firmware that have not ended: the one that the BMC performs, and those after it.
    #[serde(default, deserialize_with = "updates")]
    redfish_fw_updates: Vec<LeftUpdate>,
    /// The steps of a cleaning. Ironic keeps those of one that failed until the next one has begun.
    #[serde(default, deserialize_with = "steps")]
    clean_steps: Vec<Step>,
    /// The same of a service.
    #[serde(default, deserialize_with = "steps")]
    service_steps: Vec<Step>,
    /// How many steps a deployment has.
    #[serde(default, deserialize_with = "length")]
    deploy_steps: usize,
    /// The place of the running step in the list of its kind, counted from 0.
    #[serde(default, deserialize_with = "place")]
    clean_step_index: Option<usize>,
    #[serde(default, deserialize_with = "place")]
    deploy_step_index: Option<usize>,
    #[serde(default, deserialize_with = "place")]
    service_step_index: Option<usize>,
}

never_blank!(InternalInfo);

/// An update of the firmware that has not ended.
#[derive(Clone, PartialEq, Eq)]
pub struct LeftUpdate {
    /// The component.
    pub component: String,
    /// Where its firmware is. It may contain credentials: `Debug` does not show it.
    pub url: String,
}

impl fmt::Debug for LeftUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeftUpdate")
            .field("component", &self.component)
            .finish_non_exhaustive()
    }
}

/// Ironic adds notes to each; other forms are no updates.
fn updates<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<LeftUpdate>, D::Error> {
    let list = Value::deserialize(from)?;
    let text = |update: &Value, name: &str| update.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let all = list.as_array().into_iter().flatten();
    Ok(all
        .map(|update| LeftUpdate {
            component: text(update, "component"),
            url: text(update, "url"),
        })
        .collect())
}

/// Other forms are no steps.
fn steps<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<Step>, D::Error> {
    let list = Value::deserialize(from)?;
    let text = |step: &Value, name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let all = list.as_array().into_iter().flatten();
    Ok(all
        .map(|step| Step {
            interface: text(step, "interface"),
            step: text(step, "step"),
            args: step.get("args").and_then(Value::as_object).cloned().unwrap_or_default(),
            priority: None,
        })
        .collect())
}

/// The number of steps. Of a deployment no step is kept, since a node has them for as long as it is in use.
fn length<'de, D: serde::Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    Ok(Value::deserialize(from)?.as_array().map_or(0, Vec::len))
}

/// Other forms are no place.
fn place<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    let place = Value::deserialize(from)?.as_u64();
    Ok(place.and_then(|place| usize::try_from(place).ok()))
}

/// The step that Ironic executes on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningStep<'a> {
    /// `clean`, `deploy` or `service`.
    pub kind: &'static str,
    /// Its interface.
    pub interface: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its number, counted from 1, and the number of all steps. `None`: not known.
    pub number: Option<(usize, usize)>,
}

/// The response of `validate`: one result per interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validation(pub Vec<(String, InterfaceCheck)>);

lenient! {
    /// Whether an interface can work with the node as it is.
    #[derive(Eq)]
    pub struct InterfaceCheck {
        /// Valid, invalid, or not supported (null).
        pub result: Option<bool>,
        /// The reason of an invalid interface.
        pub reason: Option<String>,
    }
}

impl Node {
    /// The updates of the firmware that have not ended. In a state in which Ironic does not clean, those that an earlier cleaning
    /// left.
    #[must_use]
    pub fn firmware_left(&self) -> &[LeftUpdate] {
        &self.driver_internal_info.redfish_fw_updates
    }

    /// The steps of the cleaning or service that is under way, or of one that failed. Empty: they are not known.
    #[must_use]
    pub fn last_steps(&self) -> &[Step] {
        match self.provision_state {
            ProvisionState::CleanFailed => &self.driver_internal_info.clean_steps,
            ProvisionState::ServiceFailed => &self.driver_internal_info.service_steps,
            _ => self.steps_under_way(),
        }
    }

    /// The steps of the cleaning or service that is under way. Empty: there is none, or its steps are not known yet. Those of an
    /// earlier one are shown while the next one begins, but no longer when that waits for its agent or has begun with a step.
    #[must_use]
    pub fn steps_under_way(&self) -> &[Step] {
        let notes = &self.driver_internal_info;
        match self.provision_state {
            ProvisionState::CleanWait => &notes.clean_steps,
            ProvisionState::Cleaning if !self.clean_step.0.is_empty() => &notes.clean_steps,
            ProvisionState::ServiceWait => &notes.service_steps,
            ProvisionState::Servicing if !self.service_step.0.is_empty() => &notes.service_steps,
            _ => &[],
        }
    }

    /// The step that Ironic executes, or that waits for the agent of the machine.
    #[must_use]
    pub fn running_step(&self) -> Option<RunningStep<'_>> {
        use ProvisionState as S;
        let notes = &self.driver_internal_info;
        let (kind, step, index, all) = match self.provision_state {
            S::Cleaning | S::CleanWait | S::CleanHold => (
                "clean",
                &self.clean_step,
                notes.clean_step_index,
                notes.clean_steps.len(),
            ),
            S::Deploying | S::WaitCallBack | S::DeployHold => {
                ("deploy", &self.deploy_step, notes.deploy_step_index, notes.deploy_steps)
            }
            S::Servicing | S::ServiceWait | S::ServiceHold => (
                "service",
                &self.service_step,
                notes.service_step_index,
                notes.service_steps.len(),
            ),
            _ => return None,
        };
        let number = index
            .and_then(|index| index.checked_add(1))
            .filter(|number| *number <= all);
        Some(RunningStep {
            kind,
            interface: step.text("interface")?,
            name: step.text("step")?,
            number: number.map(|number| (number, all)),
        })
    }

    /// Whether Ironic is changing the node, so that its record changes without a request. It changes the power with a
    /// reservation: a target without one was left by a conductor that died.
    #[must_use]
    pub const fn is_in_transition(&self) -> bool {
        self.provision_state.is_transitional() || self.reservation.is_some()
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

lenient! {
    /// The states of a node: the smallest response that contains them.
    #[derive(Eq)]
    pub struct States {
        required {
            /// The provision state.
            pub provision_state: ProvisionState,
        }
        /// The target of the transition.
        pub target_provision_state: Option<String>,
        /// The power state.
        pub power_state: Option<PowerState>,
        /// The target of a power change.
        pub target_power_state: Option<String>,
        /// The last error.
        pub last_error: Option<String>,
        /// `uefi` or `bios`, if the driver reports it.
        pub boot_mode: Option<String>,
        /// Whether secure boot is on, if the driver reports it.
        pub secure_boot: Option<bool>,
    }

    /// The device that the machine boots from.
    #[derive(Eq)]
    pub struct BootDevice {
        /// `disk`, `cdrom`, `pxe` and others.
        pub boot_device: Option<String>,
        /// For every boot, or for the next one only; absent when the BMC does not report it.
        pub persistent: Option<bool>,
    }

    /// An entry of the node history, which keeps errors after `last_error` was cleared.
    #[derive(Eq)]
    pub struct HistoryEntry {
        required {
            /// Its UUID.
            pub uuid: String,
        }
        /// `ERROR` and others.
        pub severity: Option<String>,
        /// The message.
        pub event: Option<String>,
    }
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
