//! The BMC of a host: its address and the `driver_info` for it.
//!
//! Addresses are defined in [`metal3_domain::bmc`]. In addition, `fake://` selects Ironic's fake hardware for
//! laboratories; it is rejected unless a setting allows it.

use std::net::IpAddr;

use metal3_api::metal3::v1alpha1::BmcDetails;
use metal3_domain::bmc::{BmcAddress, BmcAddressError, CertificateVerification, DriverInfo, Interfaces, Profile};
use metal3_ironic::model::node::Node;
use serde_json::Value;

use super::credentials::Credentials;
use super::invalid_host::InvalidHost;
use super::settings::NodeSettings;

/// Ironic's driver without a machine.
pub(super) const FAKE_DRIVER: &str = "fake-hardware";
const FAKE: Option<&str> = Some("fake");
const FAKE_SCHEME: &str = "fake";

const FAKE_PROFILE: Profile = Profile {
    scheme: FAKE_SCHEME,
    driver: FAKE_DRIVER,
    interfaces: Interfaces {
        bios: FAKE,
        boot: FAKE,
        firmware: FAKE,
        inspect: None,
        management: FAKE,
        power: FAKE,
        raid: FAKE,
        vendor: FAKE,
    },
    needs_mac: false,
    secure_boot: false,
    iso_preprovisioning_image: false,
    requires_provisioning_network: true,
};

/// All keys of `driver_info` for address and credentials, of every BMC type.
const ACCESS_KEYS: [&str; 11] = [
    "ipmi_address",
    "ipmi_password",
    "ipmi_port",
    "ipmi_priv_level",
    "ipmi_username",
    "ipmi_verify_ca",
    "redfish_address",
    "redfish_password",
    "redfish_system_id",
    "redfish_username",
    "redfish_verify_ca",
];
/// Interfaces that answer for the boot device without a BMC.
const WITHOUT_BMC: [&str; 2] = ["fake", "noop"];
/// An operator's order to Ironic to answer with the boot device that it set last.
const FORCED_BOOT_DEVICE: &str = "ipmi_force_boot_device";

/// Whether Ironic logs in to the BMC for a read of the boot device.
pub(crate) fn tries_login(node: &Node) -> bool {
    let interface = node.management_interface.as_deref();
    let is_answered_from_record = match node.driver_info.get(FORCED_BOOT_DEVICE) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !["false", "no", "off", "0", ""].contains(&text.to_ascii_lowercase().as_str()),
        Some(_) => true,
    };
    !is_answered_from_record && !interface.is_some_and(|name| WITHOUT_BMC.contains(&name))
}

/// In place of credentials that were not read. Their keys are left out.
const NO_LOGIN: metal3_domain::bmc::Credentials<'_> = metal3_domain::bmc::Credentials {
    username: "",
    password: "",
};
/// The key for the URL of Ironic's images.
const EXTERNAL_URL: &str = "external_http_url";

fn is_login(key: &str) -> bool {
    key.ends_with("_username") || key.ends_with("_password")
}

/// Whether this key of `driver_info` determines where Ironic logs in, and whether it checks the certificate there.
pub(super) fn is_destination(key: &str) -> bool {
    ACCESS_KEYS.contains(&key) && !is_login(key)
}

/// The keys of `driver_info` that name a machine.
const MACHINE_KEYS: [&str; 4] = ["ipmi_address", "ipmi_port", "redfish_address", "redfish_system_id"];

/// Whether this key of `driver_info` determines which machine it is.
pub(super) fn is_machine(key: &str) -> bool {
    MACHINE_KEYS.contains(&key)
}

/// Names the machine behind the address of a BMC; the same for each way to it that Ironic knows. `None`: the address names none,
/// or one of Ironic's fake hardware.
#[must_use]
pub fn machine(address: &str) -> Option<String> {
    let address = BmcAddress::parse(address).ok()?;
    let access = address.driver_info(&NO_LOGIN, CertificateVerification::unless_disabled(false));
    machine_in(|key| access.get(key))
}

/// The same for the `driver_info` of a node.
pub(crate) fn machine_in<'a>(value: impl Fn(&str) -> Option<&'a Value>) -> Option<String> {
    let part = |key| value(key).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_lowercase));
    let redfish = part("redfish_address").map(|url| {
        match url.strip_prefix("https://").and_then(|host| host.strip_suffix(":443")) {
            Some(host) => format!("https://{host}"),
            None => url,
        }
    });
    let parts = [part("ipmi_address"), part("ipmi_port"), redfish];
    // Of a system the letters matter.
    let system = value("redfish_system_id").and_then(Value::as_str);
    let system = system.map(|path| path.trim_end_matches('/').to_owned());
    let parts: Vec<String> = parts.into_iter().flatten().chain(system).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// The endpoint that controls power and boot of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BmcEndpoint {
    /// A BMC.
    Bmc(BmcAddress),
    /// Ironic's fake hardware.
    Fake,
}

impl BmcEndpoint {
    /// Parses `spec.bmc.address`.
    ///
    /// # Errors
    /// When it is empty, invalid, not allowed, has a control character or an unknown scheme, or selects fake hardware
    /// without permission.
    pub fn of(address: &str, settings: &NodeSettings) -> Result<Self, InvalidHost> {
        if address.chars().any(char::is_control) {
            return Err(InvalidHost::ControlCharacter {
                field: "spec.bmc.address".to_owned(),
            });
        }
        match BmcAddress::parse(address) {
            // differs: `destinations-allowed`. The Go manager allows any BMC.
            Ok(address) if !settings.bmc_networks.controller(&address) => Err(InvalidHost::OtherNetwork),
            Ok(address) => Ok(Self::Bmc(address)),
            Err(BmcAddressError::UnknownType { scheme, .. }) if scheme == FAKE_SCHEME => {
                settings.fake_hardware.then_some(Self::Fake).ok_or(InvalidHost::Fake)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The profile of the BMC type.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        match self {
            Self::Bmc(address) => address.profile(),
            Self::Fake => FAKE_PROFILE,
        }
    }

    /// The type in messages: the scheme of the address.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Bmc(address) => address.type_name(),
            Self::Fake => FAKE_SCHEME.to_owned(),
        }
    }

    /// Whether the machine boots the agent from the provisioning network, so that it needs a busy-host slot.
    #[must_use]
    pub const fn loads_provisioning_network(&self) -> bool {
        self.profile().requires_provisioning_network
    }

    /// The keys of `driver_info` for address and credentials. `None`: the key is removed, because another BMC type left
    /// it. Without credentials their keys are left out.
    pub(super) fn driver_info(
        &self,
        bmc: &BmcDetails,
        credentials: Option<&Credentials>,
        settings: &NodeSettings,
    ) -> Vec<(&'static str, Option<Value>)> {
        let verification =
            CertificateVerification::unless_disabled(bmc.disable_certificate_verification.unwrap_or_default());
        let access = match self {
            Self::Bmc(address) => {
                let login = credentials.map_or(NO_LOGIN, Credentials::expose);
                Some(address.driver_info(&login, verification))
            }
            Self::Fake => None,
        };
        let value = |key: &str| access.as_ref().and_then(|access: &DriverInfo| access.get(key)).cloned();
        let mut keys: Vec<_> = ACCESS_KEYS.into_iter().map(|key| (key, value(key))).collect();
        keys.retain(|(key, value)| credentials.is_some() || value.is_none() || !is_login(key));
        if let Some(url) = &settings.external_url_v6 {
            // differs: external-url-names. The Go manager also resolves the name of a BMC; here only an IP address
            // counts, since a decision sends no requests.
            keys.push((EXTERNAL_URL, self.is_v6().then(|| url.as_str().into())));
        }
        keys
    }

    fn is_v6(&self) -> bool {
        match self {
            Self::Bmc(address) => address
                .ip()
                .is_some_and(|ip| matches!(ip.to_canonical(), IpAddr::V6(_))),
            Self::Fake => false,
        }
    }
}
