//! The way to a machine: the address of its BMC and what Ironic is told to speak to it.
//!
//! The addresses and their kinds are the vocabulary's ([`metal3_domain::bmc`]). Here is one more, which leads to no
//! machine: `fake://` selects Ironic's fake hardware. It is for laboratories and refused unless a setting lets it in.

use std::net::IpAddr;

use metal3_api::metal3::v1alpha1::BmcDetails;
use metal3_domain::bmc::{BmcAddress, BmcAddressError, CertificateVerification, DriverInfo, Interfaces, Profile};
use serde_json::Value;

use super::{Credentials, NodeSettings, Refusal};

/// Ironic's driver without a machine.
pub(super) const FAKE_DRIVER: &str = "fake-hardware";
/// Its interfaces.
const FAKE: Option<&str> = Some("fake");
/// The scheme that selects it.
const FAKE_SCHEME: &str = "fake";

/// What is true of the fake hardware.
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

/// The keys of `driver_info` that say where a BMC is and how to log in, of every kind of BMC.
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
/// The key that says where a machine reaches Ironic's images.
const EXTERNAL_URL: &str = "external_http_url";

/// What controls a machine's power and boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Controller {
    /// A BMC.
    Bmc(BmcAddress),
    /// Nothing: Ironic pretends.
    Fake,
}

impl Controller {
    /// Reads a host's `spec.bmc.address`.
    ///
    /// # Errors
    /// When it is empty, cannot be read or has a control character, when nothing drives such a controller, or when it is
    /// for laboratories and this is none.
    pub fn of(address: &str, settings: &NodeSettings) -> Result<Self, Refusal> {
        if address.chars().any(char::is_control) {
            return Err(Refusal::ControlCharacter {
                field: "spec.bmc.address".to_owned(),
            });
        }
        match BmcAddress::parse(address) {
            Ok(address) => Ok(Self::Bmc(address)),
            Err(BmcAddressError::UnknownType { scheme, .. }) if scheme == FAKE_SCHEME => {
                settings.fake_hardware.then_some(Self::Fake).ok_or(Refusal::Fake)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What is true of every controller of its kind.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        match self {
            Self::Bmc(address) => address.profile(),
            Self::Fake => FAKE_PROFILE,
        }
    }

    /// What messages call its type: the scheme of the address.
    #[must_use]
    pub fn type_name(&self) -> String {
        match self {
            Self::Bmc(address) => address.type_name(),
            Self::Fake => FAKE_SCHEME.to_owned(),
        }
    }

    /// Whether the machine loads the provisioning network when its agent boots, so that it has to wait for its turn.
    #[must_use]
    pub const fn loads_provisioning_network(&self) -> bool {
        self.profile().requires_provisioning_network
    }

    /// What `driver_info` says of the way to it, key by key. `None`: the key shall not be there, because another kind
    /// of BMC left it.
    pub(super) fn driver_info(
        &self,
        bmc: &BmcDetails,
        credentials: &Credentials,
        settings: &NodeSettings,
    ) -> Vec<(&'static str, Option<Value>)> {
        let verification =
            CertificateVerification::unless_disabled(bmc.disable_certificate_verification.unwrap_or_default());
        let access = match self {
            Self::Bmc(address) => Some(address.driver_info(&credentials.expose(), verification)),
            Self::Fake => None,
        };
        let value = |key: &str| access.as_ref().and_then(|access: &DriverInfo| access.get(key)).cloned();
        let mut keys: Vec<_> = ACCESS_KEYS.into_iter().map(|key| (key, value(key))).collect();
        if let Some(url) = &settings.external_url_v6 {
            // differs: external-url-names. The Go manager also asks the DNS for the first address of a BMC that has a
            // name; here only an address counts, since a decision asks nobody.
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
