//! The lab's certificate: self-signed, created at start, for all BMC addresses and the agents' callback.

use std::{net::IpAddr, sync::Arc};

use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::{ServerConfig, pki_types::PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// TLS of a server, and the certificate that clients must trust.
pub struct Identity {
    /// Accepts connections.
    pub acceptor: TlsAcceptor,
    /// The trust anchor.
    pub pem: Arc<str>,
}

/// Creates a certificate for these addresses.
///
/// # Errors
/// When key or certificate cannot be created; not seen in practice.
pub fn identity(addresses: impl IntoIterator<Item = IpAddr>) -> anyhow::Result<Identity> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params
        .subject_alt_names
        .extend(addresses.into_iter().map(SanType::IpAddress));
    params.distinguished_name.push(rcgen::DnType::CommonName, "labhosts");
    let certificate = params.self_signed(&key)?;
    let private = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    Ok(Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        pem: certificate.pem().into(),
    })
}
