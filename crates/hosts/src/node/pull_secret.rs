//! The login to the registry of an image, from a Secret as `docker` stores it.
//!
//! It is sent to Ironic only, and only the login to the registry that the image comes from. No message contains a part of
//! the Secret.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use metal3_domain::image::RegistryImage;
use ring::digest;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use thiserror::Error;

/// The key of a Secret of type `kubernetes.io/dockerconfigjson`.
const CONFIG: &str = ".dockerconfigjson";
/// The key of a Secret of type `kubernetes.io/dockercfg`: the logins alone.
const OLD_CONFIG: &str = ".dockercfg";

/// The login to a registry. `Debug` does not show it, and the memory is wiped on drop.
#[derive(Clone)]
pub struct PullSecret {
    login: SecretString,
    identity: String,
}

/// Why a Secret has no login to the registry. Each message ends with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PullSecretError {
    /// The Secret is of another type.
    #[error(
        "has neither {CONFIG:?} nor {OLD_CONFIG:?}; create it with kubectl create secret docker-registry, or remove the field if \
         the registry needs no login"
    )]
    OtherType,
    /// Its text has another form.
    #[error("does not contain logins as docker stores them; create it with kubectl create secret docker-registry")]
    Unreadable,
    /// It names a program that knows the login.
    #[error(
        "names a program that knows the login to {registry}, and programs are not run here; store user name and password"
    )]
    Helper {
        /// The registry.
        registry: String,
    },
    /// It has no login to the registry.
    #[error(
        "has no login to {registry}, which spec.image.url names; add one, or remove the field if the registry needs none"
    )]
    NoLogin {
        /// The registry.
        registry: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Login>,
    #[serde(default)]
    cred_helpers: BTreeMap<String, String>,
    #[serde(default)]
    creds_store: String,
}

#[derive(Deserialize)]
struct Login {
    #[serde(default)]
    username: String,
    #[serde(default)]
    password: String,
    /// User name and password, encoded.
    #[serde(default)]
    auth: String,
    #[serde(default, rename = "identitytoken")]
    identity_token: String,
}

impl PullSecret {
    /// The login to the registry of an image, from the values of a Secret with this version.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(
        values: &BTreeMap<String, ByteString>,
        version: &str,
        image: &RegistryImage<'_>,
    ) -> Result<Self, PullSecretError> {
        let config = match (values.get(CONFIG), values.get(OLD_CONFIG)) {
            (Some(whole), _) => serde_json::from_slice(&whole.0).map_err(|_| PullSecretError::Unreadable)?,
            (None, Some(logins)) => Config {
                auths: serde_json::from_slice(&logins.0).map_err(|_| PullSecretError::Unreadable)?,
                cred_helpers: BTreeMap::new(),
                creds_store: String::new(),
            },
            (None, None) => return Err(PullSecretError::OtherType),
        };
        let registry = || image.registry().to_owned();
        // differs: `oci-login-of-repository`. The Go manager compares the registry alone, as it is written.
        let matching: Vec<_> = config
            .auths
            .iter()
            .filter_map(|(key, login)| Some((image.closeness(key)?, key, login)))
            .collect();
        // With a credential store `docker` leaves entries without a login.
        let usable = matching
            .iter()
            .filter_map(|(closeness, key, login)| Some((closeness, key, login.text()?)));
        // Of two keys for the same, that without a scheme is the present one.
        match usable.max_by_key(|(closeness, key, _)| (*closeness, !key.contains("://"))) {
            Some((_, key, login)) => Ok(Self {
                login,
                identity: identity(version, key),
            }),
            None if !config.creds_store.is_empty() || is_helped(&config, image) => {
                Err(PullSecretError::Helper { registry: registry() })
            }
            None if matching.is_empty() => Err(PullSecretError::NoLogin { registry: registry() }),
            None => Err(PullSecretError::Unreadable),
        }
    }

    /// The login as Ironic expects it.
    pub(super) fn expose(&self) -> &str {
        self.login.expose_secret()
    }

    /// Identifies the login without showing it: the version of the Secret, and which of its logins it is.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }
}

/// Of a version of a Secret and the key of the login in it.
fn identity(version: &str, key: &str) -> String {
    let digest = digest::digest(&digest::SHA256, format!("{version}\n{key}").as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_helped(config: &Config, image: &RegistryImage<'_>) -> bool {
    let mut registries = config.cred_helpers.keys();
    registries.any(|registry| image.closeness(registry).is_some())
}

impl Login {
    /// User name and password, or a token after an empty user name.
    fn text(&self) -> Option<SecretString> {
        let text = if !self.identity_token.is_empty() {
            format!(":{}", self.identity_token)
        } else if !self.username.is_empty() && !self.password.is_empty() {
            format!("{}:{}", self.username, self.password)
        } else {
            let decoded = String::from_utf8(STANDARD.decode(&self.auth).ok()?).ok()?;
            // Old versions of docker fill the password up with zeros.
            decoded.trim_end_matches('\0').to_owned()
        };
        let is_login = text.split_once(':').is_some_and(|(_, password)| !password.is_empty());
        (is_login && !text.chars().any(char::is_control)).then(|| SecretString::from(text))
    }
}

impl fmt::Debug for PullSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PullSecret(not shown)")
    }
}
