//! Encoding of the Secret.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};

use super::state::CertificateState;

/// Key of the certificate state.
const STATE: &str = "ledger.json";
/// Key of the CA bundle: all authorities, concatenated.
const BUNDLE: &str = "ca.crt";
const SERVING: &str = "tls";

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Pair {
    certificate: String,
    key: SecretString,
}

impl Pair {
    pub(super) fn new(certificate: String, key: String) -> Self {
        Self {
            certificate,
            key: key.into(),
        }
    }

    /// The certificate.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// The private key, only for the TLS server.
    #[must_use]
    pub fn key(&self) -> &str {
        self.key.expose_secret()
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

/// The content of the Secret.
#[derive(Clone)]
pub(super) struct StoredCertificates {
    pub(super) state: CertificateState,
    pub(super) authorities: BTreeMap<String, Pair>,
    pub(super) serving: Pair,
}

impl StoredCertificates {
    /// Decodes a Secret; `None` when it is incomplete, which causes new certificates.
    pub(super) fn read(secret: &Value) -> Option<Self> {
        let text = |name: &str| -> Option<String> {
            let encoded = secret.get("data")?.get(name)?.as_str()?;
            String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
        };
        let pair = |name: &str| Some(Pair::new(text(&format!("{name}.crt"))?, text(&format!("{name}.key"))?));
        let state: CertificateState = serde_json::from_str(&text(STATE)?).ok()?;
        let authorities = state.authorities.iter();
        Some(Self {
            authorities: authorities
                .map(|authority| Some((authority.name.clone(), pair(&authority.name)?)))
                .collect::<Option<_>>()?,
            serving: pair(SERVING)?,
            state,
        })
    }

    /// The CA bundle.
    pub(super) fn bundle(&self) -> String {
        let names = self.state.authorities.iter().map(|authority| &authority.name);
        names
            .filter_map(|name| self.authorities.get(name))
            .map(Pair::certificate)
            .collect()
    }

    /// `data` of the Secret.
    pub(super) fn data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: String, text: &str| data.insert(name, STANDARD.encode(text).into());
        put(STATE.into(), &json!(self.state).to_string());
        put(BUNDLE.into(), &self.bundle());
        let own = [(SERVING, &self.serving)];
        let authorities = self.authorities.iter().map(|(name, pair)| (name.as_str(), pair));
        for (name, pair) in authorities.chain(own) {
            put(format!("{name}.crt"), pair.certificate());
            put(format!("{name}.key"), pair.key());
        }
        data
    }
}
