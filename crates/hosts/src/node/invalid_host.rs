//! Why a host cannot be translated to a node.

use metal3_api::metal3::names::host_error::NOT_IN_BMC_NETWORKS;
use metal3_domain::bmc::{BmcAddressError, Kind};
use metal3_domain::image::{ImageError, ImageField};
use metal3_domain::mac::MacError;
use metal3_domain::names::NameError;
use metal3_ironic::text::ControlCharacter;
use thiserror::Error;

const FAKE_FLAG: &str = "--lab-fake-hardware";

/// Why a host cannot be translated to a node. Each message names a field and the remedy, and contains no value that may
/// be secret. Some messages begin like the Go manager's, since users search for them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InvalidHost {
    /// The BMC address is invalid.
    #[error("{}", address_words(.0))]
    Address(BmcAddressError),
    /// Fake hardware is not allowed.
    #[error(
        "spec.bmc.address: fake:// selects no real machine and is for laboratories only; set the address of a BMC, \
         or start the manager with {FAKE_FLAG}"
    )]
    Fake,
    /// The administrator does not allow the BMC.
    #[error(
        "spec.bmc.address {NOT_IN_BMC_NETWORKS}, so Ironic receives no request for \
         it; correct the address, or ask the administrator of this program to add its network to the flag"
    )]
    OtherNetwork,
    /// A key of the credentials is missing.
    #[error(
        "Validation error with BMC credentials: the Secret that spec.bmc.credentialsName names has no {key:?}; set it"
    )]
    CredentialMissing {
        /// The Secret's key.
        key: &'static str,
    },
    /// A value of the credentials is not usable text.
    #[error(
        "Validation error with BMC credentials: {key:?} in the Secret that spec.bmc.credentialsName names {problem}; \
         write it as UTF-8 on one line"
    )]
    CredentialUnreadable {
        /// The Secret's key.
        key: &'static str,
        /// The problem.
        problem: &'static str,
    },
    /// The BMC does not support fast inspection.
    #[error(
        "BMC driver {driver} does not support fast (out-of-band) inspection; set spec.inspectionMode to agent or disabled"
    )]
    FastInspection {
        /// The address' scheme.
        driver: String,
    },
    /// The BMC does not support secure boot.
    #[error("BMC driver {driver} does not support secure boot; set spec.bootMode to UEFI, or use a Redfish address")]
    SecureBoot {
        /// The address' scheme.
        driver: String,
    },
    /// The BMC type needs a provisioning network, and there is none.
    #[error(
        "BMC driver {driver} requires a provisioning network, and there is none; use an address that boots virtual \
         media in spec.bmc.address"
    )]
    ProvisioningNetwork {
        /// The address' scheme.
        driver: String,
    },
    /// The boot MAC address is required.
    #[error("BMC driver {driver} requires a BootMACAddress value; set spec.bootMACAddress{}", if *.inspected { "" } else { ", or allow inspection" })]
    BootMacMissing {
        /// The address' scheme.
        driver: String,
        /// Whether the host is inspected.
        inspected: bool,
    },
    /// The boot MAC address is invalid.
    #[error("spec.bootMACAddress: {0}")]
    BootMac(MacError),
    /// Ironic accepts Ethernet addresses only.
    #[error(
        "spec.bootMACAddress has more than 6 pairs, which Ironic does not accept; set the Ethernet address of the \
         port"
    )]
    BootMacLong,
    /// Ironic is too old for `disablePowerOff`.
    #[error("spec.disablePowerOff requires Ironic API 1.95 or later; upgrade Ironic, or remove the field")]
    DisablePowerOff,
    /// A part of the host's name is invalid or missing.
    #[error("metadata.{part}: {problem}")]
    Name {
        /// `namespace` or `name`.
        part: &'static str,
        /// The problem.
        problem: NameError,
    },
    /// The name is too long for Ironic.
    #[error(
        "metadata.name: with its namespace it is {length} characters long, and Ironic accepts 255; use shorter names"
    )]
    NameLength {
        /// The length of the node name.
        length: usize,
    },
    /// The UID of the host is not a UUID.
    #[error("metadata.uid is not a UUID, so it cannot identify an instance; create the host through an API server")]
    Uid,
    /// The hardware profile does not exist.
    #[error("{field}: there is no hardware profile {name:?}; set spec.rootDeviceHints and remove spec.hardwareProfile")]
    Profile {
        /// The field with the name.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// A RAID volume cannot be made.
    #[error("{field}: {problem}")]
    Raid {
        /// The field.
        field: String,
        /// The problem and its remedy.
        problem: &'static str,
    },
    /// The image is incomplete.
    #[error("{}: {}", image_field(.0), .0)]
    Image(ImageError),
    /// A value has a control character.
    #[error("{field} has a control character (a line break, a tab or the like); remove it")]
    ControlCharacter {
        /// The field.
        field: String,
    },
    /// The deploy step is one of Ironic itself.
    #[error(
        "spec.customDeploy.method: {method} is a step of Ironic itself, which installs no system; set it to the name of a deploy step \
         of the agent"
    )]
    OwnStep {
        /// The name of the step.
        method: String,
    },
    /// The name of the deploy step is too long.
    #[error(
        "spec.customDeploy.method: it is {length} characters long, and at most 255 are accepted; set it to the name of a deploy \
         step of the agent"
    )]
    MethodLength {
        /// The length of the name.
        length: usize,
    },
    /// A reference has another namespace.
    #[error("{field}.namespace is not the namespace of the host; move the Secret there and remove the field")]
    OtherNamespace {
        /// The reference.
        field: &'static str,
    },
    /// A reference has no name.
    #[error("{field}.name is empty; set it to the name of a Secret, or remove {field}")]
    Unnamed {
        /// The reference.
        field: &'static str,
    },
    /// The Secret lacks the key.
    #[error("the Secret that {field} names has neither {key:?} nor \"value\"; set one of them")]
    NoValue {
        /// The reference.
        field: &'static str,
        /// The expected key.
        key: &'static str,
    },
    /// The value of the Secret is not text.
    #[error("the Secret that {field} names contains bytes that are not UTF-8 text; store plain text in it")]
    NotText {
        /// The reference.
        field: &'static str,
    },
    /// The value of the Secret is not a map.
    #[error("the Secret that {field} names contains no map in YAML or JSON{}; correct it", place(*.line))]
    NotMap {
        /// The reference.
        field: &'static str,
        /// The line of the parse error.
        line: Option<u64>,
    },
}

impl InvalidHost {
    /// The field of the host to change, or the reference to follow.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::Address(_) | Self::OtherNetwork | Self::Fake | Self::ProvisioningNetwork { .. } => "spec.bmc.address",
            Self::CredentialMissing { .. } | Self::CredentialUnreadable { .. } => "spec.bmc.credentialsName",
            Self::FastInspection { .. } => "spec.inspectionMode",
            Self::SecureBoot { .. } => "spec.bootMode",
            Self::BootMacMissing { .. } | Self::BootMac(_) | Self::BootMacLong => "spec.bootMACAddress",
            Self::DisablePowerOff => "spec.disablePowerOff",
            Self::Name { part: "namespace", .. } => "metadata.namespace",
            Self::Name { .. } | Self::NameLength { .. } => "metadata.name",
            Self::Uid => "metadata.uid",
            Self::MethodLength { .. } | Self::OwnStep { .. } => "spec.customDeploy.method",
            Self::Image(fault) => image_field(fault),
            Self::ControlCharacter { field } | Self::Raid { field, .. } => field,
            Self::Profile { field, .. }
            | Self::OtherNamespace { field }
            | Self::Unnamed { field }
            | Self::NoValue { field, .. }
            | Self::NotText { field }
            | Self::NotMap { field, .. } => field,
        }
    }
}

impl From<BmcAddressError> for InvalidHost {
    fn from(error: BmcAddressError) -> Self {
        Self::Address(error)
    }
}

impl From<ControlCharacter> for InvalidHost {
    fn from(found: ControlCharacter) -> Self {
        Self::ControlCharacter { field: found.field }
    }
}

/// The message of the error, with a remedy if it has none.
fn address_words(error: &BmcAddressError) -> String {
    match error {
        BmcAddressError::Missing | BmcAddressError::Host { .. } => error.to_string(),
        BmcAddressError::Malformed { source, .. } => {
            format!("{error}: {source}; write it like redfish://192.0.2.7/redfish/v1/Systems/1")
        }
        BmcAddressError::UnknownType { .. } => {
            let schemes = Kind::ALL.map(|kind| kind.profile().scheme).join(", ");
            format!("{error}; begin spec.bmc.address with one of {schemes}")
        }
    }
}

const fn image_field(fault: &ImageError) -> &'static str {
    match fault.field() {
        ImageField::Image => "spec.image",
        ImageField::Url => "spec.image.url",
        ImageField::Checksum => "spec.image.checksum",
        ImageField::ChecksumType => "spec.image.checksumType",
        ImageField::DiskFormat => "spec.image.format",
    }
}

fn place(line: Option<u64>) -> String {
    line.map(|line| format!(" (line {line})")).unwrap_or_default()
}
