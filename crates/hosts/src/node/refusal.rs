//! Why a host cannot be said in Ironic's words.

use metal3_domain::bmc::{BmcAddressError, Kind};
use metal3_domain::image::{ImageFault, ImageField};
use metal3_domain::mac::MacError;
use metal3_domain::names::NameError;
use metal3_ironic::text::ControlCharacter;
use thiserror::Error;

use super::NotYet;
use super::settings::FAKE_FLAG;

/// Why a host cannot be said in Ironic's words. Each names a field and the cure, and shows no value that may be
/// secret. The beginnings of some messages are the Go manager's, since people search for them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The address of the BMC cannot be used.
    #[error("{}", address_words(.0))]
    Address(BmcAddressError),
    /// The address is that of no machine.
    #[error(
        "spec.bmc.address: fake:// has no machine behind it and is for laboratories; set the address of a BMC, or start \
         the manager with {FAKE_FLAG}"
    )]
    Fake,
    /// The login lacks a part.
    #[error(
        "Validation error with BMC credentials: the Secret that spec.bmc.credentialsName names has no {key:?}; set it"
    )]
    CredentialMissing {
        /// The Secret's key.
        key: &'static str,
    },
    /// A part of the login is no text, or no text for a command line.
    #[error(
        "Validation error with BMC credentials: {key:?} in the Secret that spec.bmc.credentialsName names {problem}; \
         write it as UTF-8 on one line"
    )]
    CredentialUnreadable {
        /// The Secret's key.
        key: &'static str,
        /// Why.
        problem: &'static str,
    },
    /// The BMC cannot be asked for the hardware.
    #[error(
        "BMC driver {driver} does not support fast (out-of-band) inspection; set spec.inspectionMode to agent or disabled"
    )]
    FastInspection {
        /// The address' scheme.
        driver: String,
    },
    /// Secure boot cannot be switched through this BMC.
    #[error("BMC driver {driver} does not support secure boot; set spec.bootMode to UEFI, or use a Redfish address")]
    SecureBoot {
        /// The address' scheme.
        driver: String,
    },
    /// The machine boots the agent from a network that does not exist.
    #[error(
        "BMC driver {driver} requires a provisioning network, and there is none; use an address that boots virtual \
         media in spec.bmc.address"
    )]
    ProvisioningNetwork {
        /// The address' scheme.
        driver: String,
    },
    /// The address from which the machine boots is not known and nothing will find it out.
    #[error("BMC driver {driver} requires a BootMACAddress value; set spec.bootMACAddress{}", if *.inspected { "" } else { ", or allow inspection" })]
    BootMacMissing {
        /// The address' scheme.
        driver: String,
        /// Whether the host is inspected.
        inspected: bool,
    },
    /// The boot address is none.
    #[error("spec.bootMACAddress: {0}")]
    BootMac(MacError),
    /// Ironic takes addresses of Ethernet only.
    #[error(
        "spec.bootMACAddress has more than 6 pairs, which Ironic does not take; set the Ethernet address of the port"
    )]
    BootMacLong,
    /// Ironic is too old to keep a machine from being switched off.
    #[error("spec.disablePowerOff needs an Ironic with API 1.95 or later; upgrade Ironic, or remove the field")]
    DisablePowerOff,
    /// A part of the host's name is none, or missing.
    #[error("metadata.{part}: {problem}")]
    Name {
        /// `namespace` or `name`.
        part: &'static str,
        /// Why.
        problem: NameError,
    },
    /// Ironic has no room for the name.
    #[error(
        "metadata.name: with its namespace it is {length} characters long, and Ironic takes 255; use shorter names"
    )]
    NameLength {
        /// Both and the mark between them.
        length: usize,
    },
    /// The host has no identity that Ironic takes.
    #[error("metadata.uid is not a UUID, so no instance can be told by it; create the host through an API server")]
    Uid,
    /// There is no such set of hints.
    #[error("{field}: there is no hardware profile {name:?}; set spec.rootDeviceHints and remove spec.hardwareProfile")]
    Profile {
        /// Where the name stands.
        field: &'static str,
        /// The name.
        name: String,
    },
    /// The image is not complete.
    #[error("{}: {}", image_field(.0), .0)]
    Image(ImageFault),
    /// Text for a command line has a control character.
    #[error("{field} has a control character (a line break, a tab or the like); remove it")]
    ControlCharacter {
        /// Where.
        field: String,
    },
    /// A reference leads into another namespace.
    #[error("{field}.namespace is not the namespace of the host; move the Secret there and remove the field")]
    OtherNamespace {
        /// The reference.
        field: &'static str,
    },
    /// A reference names nothing.
    #[error("{field}.name is empty; set it to the name of a Secret, or remove {field}")]
    Unnamed {
        /// The reference.
        field: &'static str,
    },
    /// The Secret lacks what it is for.
    #[error("the Secret that {field} names has neither {key:?} nor \"value\"; set one of them")]
    NoValue {
        /// The reference.
        field: &'static str,
        /// The key that is looked for first.
        key: &'static str,
    },
    /// The Secret's value is no text.
    #[error("the Secret that {field} names holds bytes that are not UTF-8 text; store plain text in it")]
    NotText {
        /// The reference.
        field: &'static str,
    },
    /// The Secret's value is no map.
    #[error("the Secret that {field} names holds no map in YAML or JSON{}; correct it", place(*.line))]
    NotMap {
        /// The reference.
        field: &'static str,
        /// Where reading it ended.
        line: Option<u64>,
    },
    /// What is asked for is not built.
    #[error(transparent)]
    NotYet(#[from] NotYet),
}

impl Refusal {
    /// The field of the host that is to be changed, or that leads to what is to be changed.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::Address(_) | Self::Fake | Self::ProvisioningNetwork { .. } => "spec.bmc.address",
            Self::CredentialMissing { .. } | Self::CredentialUnreadable { .. } => "spec.bmc.credentialsName",
            Self::FastInspection { .. } => "spec.inspectionMode",
            Self::SecureBoot { .. } => "spec.bootMode",
            Self::BootMacMissing { .. } | Self::BootMac(_) | Self::BootMacLong => "spec.bootMACAddress",
            Self::DisablePowerOff => "spec.disablePowerOff",
            Self::Name { part: "namespace", .. } => "metadata.namespace",
            Self::Name { .. } | Self::NameLength { .. } => "metadata.name",
            Self::Uid => "metadata.uid",
            Self::Image(fault) => image_field(fault),
            Self::ControlCharacter { field } => field,
            Self::Profile { field, .. }
            | Self::OtherNamespace { field }
            | Self::Unnamed { field }
            | Self::NoValue { field, .. }
            | Self::NotText { field }
            | Self::NotMap { field, .. } => field,
            Self::NotYet(not_yet) => not_yet.field(),
        }
    }
}

impl From<BmcAddressError> for Refusal {
    fn from(error: BmcAddressError) -> Self {
        Self::Address(error)
    }
}

impl From<ControlCharacter> for Refusal {
    fn from(found: ControlCharacter) -> Self {
        Self::ControlCharacter { field: found.field }
    }
}

/// The words of the error, and the cure where it names none.
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

const fn image_field(fault: &ImageFault) -> &'static str {
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
