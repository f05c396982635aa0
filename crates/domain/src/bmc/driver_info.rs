//! The access part of a node's `driver_info`: address and credentials of the controller.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::BmcAddress;

/// Port of an IPMI controller whose address names none.
const IPMI_PORT: &str = "623";
/// Printed instead of a password.
const HIDDEN: &str = "***";

/// User name and password of a controller. `Debug` hides the password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// Name to log in with.
    pub username: &'a str,
    /// The secret.
    pub password: &'a str,
}

impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("username", &self.username)
            .field("password", &HIDDEN)
            .finish()
    }
}

/// Whether the controller's certificate is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateVerification {
    /// Ironic checks it.
    Required,
    /// The host disables the check.
    Disabled,
}

impl CertificateVerification {
    /// From a host's `bmc.disableCertificateVerification`.
    #[must_use]
    pub const fn unless_disabled(disabled: bool) -> Self {
        if disabled { Self::Disabled } else { Self::Required }
    }
}

/// Keys and values for Ironic. `Debug` hides the password.
#[derive(Clone, PartialEq)]
pub struct DriverInfo(BTreeMap<&'static str, Value>);

impl BmcAddress {
    /// The access part of the node's `driver_info`.
    #[must_use]
    pub fn driver_info(&self, credentials: &Credentials<'_>, verification: CertificateVerification) -> DriverInfo {
        let (mut entries, [username, password, verify]) = if self.kind().is_ipmi() {
            (ipmi(self), ["ipmi_username", "ipmi_password", "ipmi_verify_ca"])
        } else {
            (
                redfish(self),
                ["redfish_username", "redfish_password", "redfish_verify_ca"],
            )
        };
        entries.insert(username, credentials.username.into());
        entries.insert(password, credentials.password.into());
        if verification == CertificateVerification::Disabled {
            entries.insert(verify, false.into());
        }
        DriverInfo(entries)
    }
}

impl DriverInfo {
    /// Every key and value, password included, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// The value of one key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// As a JSON object, password included: for the request to Ironic only.
    #[must_use]
    pub fn into_json(self) -> Value {
        Value::Object(self.0.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

impl fmt::Debug for DriverInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = Value::from(HIDDEN);
        f.debug_map()
            .entries(
                self.0
                    .iter()
                    .map(|(key, value)| (key, if key.ends_with("_password") { &hidden } else { value })),
            )
            .finish()
    }
}

fn ipmi(address: &BmcAddress) -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        ("ipmi_address", address.host().into()),
        ("ipmi_port", address.port().unwrap_or(IPMI_PORT).into()),
        ("ipmi_priv_level", address.privilege_level().into()),
    ])
}

fn redfish(address: &BmcAddress) -> BTreeMap<&'static str, Value> {
    let url = format!("{}://{}", address.transport().url_scheme(), address.authority());
    let mut entries = BTreeMap::from([("redfish_address", url.into())]);
    if let Some(system) = system_id(address) {
        entries.insert("redfish_system_id", system.into());
    }
    entries
}

/// The path is the system ID unless it is empty or the service root.
fn system_id(address: &BmcAddress) -> Option<&str> {
    // differs (`redfish-uefihttp-system-id`): for that kind the Go driver sends the path even when it is no system ID.
    // Here the key is left out, as for every other kind.
    let names_system = !matches!(address.path().trim_matches('/'), "" | "redfish/v1");
    names_system.then_some(address.path())
}
