//! The login of a BMC.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::ByteString;
use metal3_domain::bmc;
use secrecy::{ExposeSecret as _, SecretString};

use super::Refusal;

/// Key of the name.
const USERNAME: &str = "username";
/// Key of the password.
const PASSWORD: &str = "password";

/// User name and password of a BMC. `Debug` shows neither, and the memory is wiped when they go.
#[derive(Clone)]
pub struct Credentials {
    username: SecretString,
    password: SecretString,
}

impl Credentials {
    /// Reads them from the values of a Secret. Blanks around them do not count.
    ///
    /// # Errors
    /// When one of them is missing, empty, no text, or has a control character, which Ironic would hand on.
    pub fn of(values: &BTreeMap<String, ByteString>) -> Result<Self, Refusal> {
        let part = |key: &'static str| {
            let bytes = values.get(key).ok_or(Refusal::CredentialMissing { key })?;
            let text = std::str::from_utf8(&bytes.0)
                .map_err(|_| Refusal::CredentialUnreadable {
                    key,
                    problem: "is not UTF-8 text",
                })?
                .trim();
            if text.is_empty() {
                return Err(Refusal::CredentialMissing { key });
            }
            if text.chars().any(char::is_control) {
                return Err(Refusal::CredentialUnreadable {
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

    /// For the node's record.
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
