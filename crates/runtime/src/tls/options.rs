//! TLS versions and cipher suites of a server, from the flags of the Go managers.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::{ResolvesServerCert, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

/// Versions and cipher suites.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    versions: Vec<&'static SupportedProtocolVersion>,
    provider: Arc<CryptoProvider>,
    ignored: Vec<String>,
    /// The CA of client certificates.
    client_ca: Option<Arc<RootCertStore>>,
}

/// Why flags are invalid. Each message names the flag and its valid values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsOptionsError {
    /// Unknown version.
    #[error("--tls-min-version, --tls-max-version: {0:?} is not a TLS version; use VersionTLS12 or VersionTLS13")]
    Version(String),
    /// No certificate in the file of the CA.
    #[error("--webhook-client-ca-file: {0}; write the PEM certificates of the CA that signs the client certificates")]
    ClientCa(String),
    /// No version is left between the two.
    #[error("--tls-max-version: must not be older than --tls-min-version")]
    Order,
    /// Unknown cipher suite.
    #[error("--tls-cipher-suites: {name:?} is not a cipher suite; use one of {possible}")]
    Suite {
        /// The requested name.
        name: String,
        /// The valid names.
        possible: String,
    },
    /// All requested suites are known and too weak.
    #[error("--tls-cipher-suites: none of the suites is supported; use {0}")]
    NoSuite(String),
    /// Unknown key exchange.
    #[error("--tls-curve-preferences: {0:?} is not a curve; use X25519, CurveP256 or CurveP384")]
    Curve(String),
    /// All requested key exchanges are known and not implemented.
    #[error("--tls-curve-preferences: none of the curves is supported; use X25519, CurveP256 or CurveP384")]
    NoCurve,
}

/// The configurable suites of TLS 1.2, by Go's names. Those of TLS 1.3 are always enabled.
const NAMES: [(&str, SupportedCipherSuite); 8] = {
    use ring::cipher_suite as suite;
    [
        (
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
        (
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ),
        (
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        (
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
            suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        (
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ),
        (
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ),
        (
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        (
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
            suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
    ]
};

/// Always enabled, so naming them has no effect.
const ALWAYS: [&str; 3] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// Known to Go, without forward secrecy or authenticated encryption.
const WEAK: [&str; 16] = [
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
];

/// Key exchanges, by Go's names and numbers; `None` where the TLS library has none.
const CURVES: [(&[&str], Option<&'static dyn SupportedKxGroup>); 5] = [
    (&["X25519", "29"], Some(ring::kx_group::X25519)),
    (&["CurveP256", "P256", "23"], Some(ring::kx_group::SECP256R1)),
    (&["CurveP384", "P384", "24"], Some(ring::kx_group::SECP384R1)),
    (&["CurveP521", "P521", "25"], None),
    (&["X25519MLKEM768", "4588"], None),
];

impl Default for TlsOptions {
    /// TLS 1.2 and 1.3 with every suite of the library.
    fn default() -> Self {
        Self {
            versions: vec![&TLS13, &TLS12],
            provider: Arc::new(ring::default_provider()),
            ignored: Vec::new(),
            client_ca: None,
        }
    }
}

impl TlsOptions {
    /// The options of `--tls-min-version`, `--tls-max-version` (empty: the newest) and `--tls-cipher-suites` (empty:
    /// all).
    ///
    /// # Errors
    /// When a value is invalid, or no version or suite is left.
    pub fn from_flags(min_version: &str, max_version: &str, suites: &[String]) -> Result<Self, TlsOptionsError> {
        let (oldest, newest) = (version(min_version, 2)?, version(max_version, 3)?);
        if newest < oldest {
            return Err(TlsOptionsError::Order);
        }
        let known = [(3, &TLS13), (2, &TLS12)];
        let versions = known.into_iter().filter(|(minor, _)| (oldest..=newest).contains(minor));
        let mut options = Self {
            versions: versions.map(|(_, version)| version).collect(),
            ..Self::default()
        };
        options.restrict(suites)?;
        Ok(options)
    }

    /// The same with the key exchanges of `--tls-curve-preferences` only, in their order (empty: all).
    ///
    /// # Errors
    /// When a value is invalid, or no key exchange is left.
    pub fn with_curves(mut self, curves: &[String]) -> Result<Self, TlsOptionsError> {
        let wanted: Vec<&str> = named(curves);
        if wanted.is_empty() {
            return Ok(self);
        }
        let mut chosen = Vec::new();
        for name in wanted {
            match CURVES.iter().find(|(names, _)| names.contains(&name)) {
                Some((_, Some(group))) => chosen.push(*group),
                Some((_, None)) => self.ignored.push(name.to_owned()),
                None => return Err(TlsOptionsError::Curve(name.to_owned())),
            }
        }
        if chosen.is_empty() {
            return Err(TlsOptionsError::NoCurve);
        }
        let mut provider = CryptoProvider::clone(&self.provider);
        provider.kx_groups = chosen;
        self.provider = Arc::new(provider);
        Ok(self)
    }

    /// The same, with a request for client certificates of this CA. The handshake of a client without one succeeds.
    ///
    /// # Errors
    /// When the text has no certificate, or one that cannot be used.
    pub fn with_client_ca(mut self, pem: &[u8]) -> Result<Self, TlsOptionsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| TlsOptionsError::ClientCa(error.to_string()))?;
            let added = roots.add(certificate);
            added.map_err(|error| TlsOptionsError::ClientCa(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(TlsOptionsError::ClientCa("the file has no certificate".to_owned()));
        }
        self.client_ca = Some(Arc::new(roots));
        Ok(self)
    }

    /// Requested suites and curves that are not offered. The caller logs them.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    fn restrict(&mut self, wanted: &[String]) -> Result<(), TlsOptionsError> {
        let wanted = named(wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        let mut chosen = Vec::new();
        for name in wanted {
            if let Some((_, suite)) = NAMES.iter().find(|(known, _)| *known == name) {
                chosen.push(*suite);
            } else if WEAK.contains(&name) {
                self.ignored.push(name.to_owned());
            } else if !ALWAYS.contains(&name) {
                return Err(TlsOptionsError::Suite {
                    name: name.to_owned(),
                    possible: possible(),
                });
            }
        }
        let newest_is_on = self.versions.contains(&&TLS13);
        if chosen.is_empty() && !newest_is_on {
            return Err(TlsOptionsError::NoSuite(possible()));
        }
        let mut provider = ring::default_provider();
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || chosen.contains(suite));
        if chosen.is_empty() {
            // Without a suite the version cannot be used.
            self.versions.retain(|version| **version == TLS13);
        }
        self.provider = Arc::new(provider);
        Ok(())
    }

    /// The rustls configuration of these options.
    pub(super) fn server(&self, certificates: Arc<dyn ResolvesServerCert>) -> Result<ServerConfig, rustls::Error> {
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider));
        let builder = builder.with_protocol_versions(&self.versions)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let provider = Arc::clone(&self.provider);
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider);
                let verifier = verifier.allow_unauthenticated().build();
                builder.with_client_cert_verifier(verifier.map_err(|error| rustls::Error::General(error.to_string()))?)
            }
        };
        let mut config = builder.with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn named(values: &[String]) -> Vec<&str> {
    let trimmed = values.iter().map(|name| name.trim());
    trimmed.filter(|name| !name.is_empty()).collect()
}

/// The minor version of a flag value, in both spellings of the three Go managers.
fn version(flag: &str, default: u8) -> Result<u8, TlsOptionsError> {
    match flag.strip_prefix("Version").unwrap_or(flag) {
        "" => Ok(default),
        // differs: `tls-oldest-version`: the Go managers allow older versions; here the oldest supported one replaces
        // them, so that the program starts.
        "TLS10" | "TLS11" | "TLS12" => Ok(2),
        "TLS13" => Ok(3),
        _ => Err(TlsOptionsError::Version(flag.to_owned())),
    }
}

fn possible() -> String {
    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).chain(ALWAYS).collect();
    names.join(", ")
}
