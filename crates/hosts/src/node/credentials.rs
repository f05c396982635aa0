//! BMC credentials.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use metal3_domain::bmc;
use secrecy::{ExposeSecret as _, SecretString};

use super::invalid_host::InvalidHost;

const USERNAME: &str = "username";
const PASSWORD: &str = "password";

/// User name and password of a BMC. `Debug` shows neither, and the memory is wiped on drop.
#[derive(Clone)]
pub struct Credentials {
    username: SecretString,
    password: SecretString,
}

impl Credentials {
    /// Reads the credentials from the values of a Secret. Surrounding whitespace is removed.
    ///
    /// # Errors
    /// When one is missing, empty, not UTF-8, or has a control character, which Ironic would pass on.
    pub fn of(values: &BTreeMap<String, ByteString>) -> Result<Self, InvalidHost> {
        let part = |key: &'static str| {
            let bytes = values.get(key).ok_or(InvalidHost::CredentialMissing { key })?;
            let text = std::str::from_utf8(&bytes.0)
                .map_err(|_| InvalidHost::CredentialUnreadable {
                    key,
                    problem: "is not UTF-8 text",
                })?
                .trim();
            if text.is_empty() {
                return Err(InvalidHost::CredentialMissing { key });
            }
            if text.chars().any(char::is_control) {
                return Err(InvalidHost::CredentialUnreadable {
                    key,
                    problem: "has a control character",
                });
            }
            Ok(SecretString::from(text))
        };
        Ok(Self {
            username: part(USERNAME)?,
            password: part(PASSWORD)?,
        })
    }

    pub(super) fn expose(&self) -> bmc::Credentials<'_> {
        bmc::Credentials {
            username: self.username.expose_secret(),
            password: self.password.expose_secret(),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(not shown)")
    }
}
