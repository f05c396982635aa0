//! Desired state of a host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::{CustomDeploy, Image, MAC_WITHIN_PATTERN, NetworkInterface, RaidConfig, RootDeviceHints};
use super::cleaning::HostCleaning;
use crate::meta::{ObjectReference, SecretReference, Time};

/// Desired state of a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BareMetalHostSpec {
    /// Whether the machine should be powered on. An image is only deployed when it is.
    pub online: bool,
    /// The management controller. Absent or empty: the host is recorded and not managed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bmc: Option<BmcDetails>,
    /// MAC address of the card that boots from the network. It cannot be changed once it is set. Some management
    /// controllers need it, and every host that is not inspected.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "bootMACAddress")]
    #[schemars(regex(pattern = MAC_WITHIN_PATTERN))]
    pub boot_mac_address: Option<String>,
    /// How the machine boots. Absent: `UEFI`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_mode: Option<BootMode>,
    /// Processor architecture. Filled in after inspection where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Image to deploy. Set: the host is provisioned. Removed: it is deprovisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Deployment that is not the writing of an image, or that does more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
    /// Secret with the first-boot configuration, such as cloud-init or Ignition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// Secret with the network configuration of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// Secret with the metadata of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// Secret with the network configuration of the agent that inspects, cleans and deploys. The operating system
    /// gets it too where `networkData` is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preprovisioning_network_data_name: Option<String>,
    /// Which disk the image goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_device_hints: Option<RootDeviceHints>,
    /// Logical disks to make before the image is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid: Option<RaidConfig>,
    /// Removed; a value is rejected. Use HostFirmwareSettings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<FirmwareConfig>,
    /// Name of a set of root device hints: `unknown`, `libvirt`, `dell`, `dell-raid`, `openstack` or `empty`. Write the
    /// hints instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_profile: Option<String>,
    /// How disks are wiped before use and after release of the host. `metadata` wipes partition tables; `disabled` wipes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "metadata"))]
    pub automated_cleaning_mode: Option<AutomatedCleaningMode>,
    /// Which disks are kept when the machine is cleaned, and when it is cleaned. Absent: none, and always. An object of the Go
    /// managers does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleaning: Option<HostCleaning>,
    /// Whether something else deployed the machine. Such a host is adopted and only its power is managed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub externally_provisioned: Option<bool>,
    /// Who uses the host. A host with a consumer is not given to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ObjectReference>,
    /// Marks that keep consumers away. They are recorded and not acted upon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Text for people, such as the location of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether the machine must never be powered off; it is rebooted instead. The host must be `online`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_power_off: Option<bool>,
    /// How the machine is inspected. Absent: by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inspection_mode: Option<InspectionMode>,
    /// How its network cards should be connected. Recorded; no controller acts on it yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network_interfaces: Vec<NetworkInterface>,
}

/// A management controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BmcDetails {
    /// URL of the controller. The scheme selects the driver, as in
    /// `redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1`.
    pub address: String,
    /// Secret in the namespace of the host with `username` and `password`.
    pub credentials_name: String,
    /// Whether the certificate of the controller is not verified. The connection is then open to interception.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_certificate_verification: Option<bool>,
}

/// How a machine boots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum BootMode {
    /// UEFI firmware.
    #[default]
    #[serde(rename = "UEFI")]
    Uefi,
    /// UEFI firmware that boots only signed software.
    #[serde(rename = "UEFISecureBoot")]
    UefiSecureBoot,
    /// BIOS.
    #[serde(rename = "legacy")]
    Legacy,
}

/// How disks are wiped before use and after release of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AutomatedCleaningMode {
    /// Partition tables and signatures are wiped.
    #[default]
    Metadata,
    /// Nothing is wiped: the next user can read what the last one left.
    Disabled,
}

/// How a machine is inspected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InspectionMode {
    /// It is not.
    Disabled,
    /// By the agent, booted on the machine.
    #[default]
    Agent,
    /// By the management controller; the machine is not booted.
    Fast,
}

/// Firmware settings of old.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FirmwareConfig {
    /// Whether guests may use the processor's support for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [true, false]))]
    pub virtualization_enabled: Option<bool>,
    /// Whether a core runs several threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [true, false]))]
    pub simultaneous_multithreading_enabled: Option<bool>,
    /// Whether network cards may be shared out to guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [true, false]))]
    pub sriov_enabled: Option<bool>,
}

/// A mark that keeps consumers away.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Name of the mark.
    pub key: String,
    /// What it does to those who do not tolerate it: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
    /// Value of the mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// When it was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<Time>,
}
