//! `metal3.io/v1alpha1`, the only version.

mod attachment;
mod claim;
mod data_image;
mod firmware_components;
mod firmware_schema;
mod firmware_setting;
mod firmware_settings;
mod hardware;
mod hardware_data;
mod hardware_profile;
mod host;
mod image;
mod network_interface;
mod policy;
mod preprovisioning_image;
mod raid;
mod root_device;
mod subscription;
mod switch;
mod update_policy;

pub use attachment::{AttachmentMode, HostNetworkAttachment, HostNetworkAttachmentSpec};
pub use claim::{ClaimedObject, HostClaim, HostClaimSpec, HostClaimStatus, HostSelector, HostSelectorRequirement};
pub use data_image::{AttachedImage, DataImage, DataImageError, DataImageSpec, DataImageStatus};
pub use firmware_components::{
    FirmwareComponentStatus, FirmwareUpdate, HostFirmwareComponents, HostFirmwareComponentsSpec,
    HostFirmwareComponentsStatus,
};
pub use firmware_schema::{AttributeType, FirmwareSchema, FirmwareSchemaSpec, SettingSchema};
pub use firmware_setting::{SettingError, is_password};
pub use firmware_settings::{
    HostFirmwareSettings, HostFirmwareSettingsSpec, HostFirmwareSettingsStatus, SchemaReference,
};
pub use hardware::{Bios, Cpu, Firmware, HardwareDetails, HardwareSystemVendor, Lldp, Nic, Storage, StorageType, Vlan};
pub use hardware_data::{HardwareData, HardwareDataSpec};
pub use hardware_profile::HardwareProfile;
pub(crate) use host::reboot_annotations;
pub use host::{
    AutomatedCleaningMode, BareMetalHost, BareMetalHostSpec, BareMetalHostStatus, BmcDetails, BootMode, CleaningTime,
    CredentialsStatus, DetachRequest, DetachedDelete, ErrorType, FirmwareConfig, HostCleaning, InspectionMode,
    KeptDisk, OperationHistory, OperationMetric, OperationalStatus, ProvisionStatus, ProvisioningState, RebootMode,
    RebootRequest, RebootRequestError, Taint,
};
pub use image::{ChecksumType, CustomDeploy, DiskFormat, Image};
pub use network_interface::{HostNetworkAttachmentReference, NetworkInterface, SwitchPort};
pub use policy::{
    HostClaimNamespaces, HostDeployPolicy, HostDeployPolicySpec, HostDeployPolicyStatus, MetadataCopy, NamespaceLabel,
};
pub use preprovisioning_image::{
    PreprovisioningImage, PreprovisioningImageFormat, PreprovisioningImageSpec, PreprovisioningImageStatus,
    SecretVersion,
};
pub use raid::{HardwareRaidLevel, HardwareRaidVolume, RaidConfig, SoftwareRaidLevel, SoftwareRaidVolume};
pub use root_device::RootDeviceHints;
pub use subscription::{BMCEventSubscription, BMCEventSubscriptionSpec, BMCEventSubscriptionStatus};
pub use switch::{BareMetalSwitch, BareMetalSwitchSpec, BareMetalSwitchStatus, SwitchDriver};
pub use update_policy::{HostUpdatePolicy, HostUpdatePolicySpec, HostUpdatePolicyStatus, UpdateMoment};

/// A MAC address and nothing else.
pub(crate) const MAC_PATTERN: &str = "^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$";
/// Text with a MAC address in it. Longer addresses, such as those of InfiniBand, pass, and must: hosts have them.
pub(crate) const MAC_WITHIN_PATTERN: &str = "[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}";

/// Keeps the implied value of an absent member out of the schema: with a schema default the API server would write it
/// into every object.
const fn without_schema_default<T>(_: &T) -> bool {
    true
}
