//! Trust in a bundle that may contain the certificate of the server itself.
//!
//! The Secret that an `Ironic` resource names has the server's certificate, not that of its CA. As a root alone it is
//! useless: a verifier looks for the issuer, and rejects a CA as a server. Who names a certificate trusts the server that has
//! its key, for the names in it. Its end is not compared: who replaces it replaces the bundle.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    Bundle,
    Identity,
}

/// The TLS settings with this bundle, and with a certificate and key of the client.
pub(crate) fn config(bundle: &[u8], identity: Option<&[u8]>) -> Result<ClientConfig, Unusable> {
    let (verifier, provider) = verifier(bundle).ok_or(Unusable::Bundle)?;
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|_| Unusable::Bundle)?.dangerous();
    let builder = builder.with_custom_certificate_verifier(Arc::new(verifier));
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some(identity) => {
            let (chain, key) = chain_and_key(identity).ok_or(Unusable::Identity)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|_| Unusable::Identity)
        }
    }
}

fn verifier(bundle: &[u8]) -> Option<(Pinned, Arc<CryptoProvider>)> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(bundle).collect::<Result<_, _>>().ok()?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    let provider = Arc::new(ring::default_provider());
    let by_authority = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let pinned = Pinned {
        by_authority: by_authority.build().ok()?,
        certificates,
    };
    Some((pinned, provider))
}

fn chain_and_key(pem: &[u8]) -> Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    Some((chain, PrivateKeyDer::from_pem_slice(pem).ok()?))
}

/// Verifies by the bundle as by CAs, and otherwise accepts what is in it.
#[derive(Debug)]
struct Pinned {
    by_authority: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let inner = &self.by_authority;
        let verified = inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if verified.is_err() && self.certificates.iter().any(|one| one.as_ref() == end_entity.as_ref()) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}
