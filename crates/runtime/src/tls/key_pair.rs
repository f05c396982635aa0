//! A certificate chain and its key, checked against each other.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

/// The files of a key pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPairFiles {
    /// The certificate chain, as PEM, the server's own first.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
}

impl KeyPairFiles {
    /// The files of a mounted Secret of type `kubernetes.io/tls`.
    #[must_use]
    pub fn mounted_at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
        }
    }
}

/// Why files contain no key pair. The messages contain nothing of their content.
#[derive(Debug, thiserror::Error)]
pub enum KeyPairError {
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is no certificate in it.
    #[error("find a certificate in {}: write the chain as PEM", .0.display())]
    Certificate(PathBuf),
    /// There is no private key in it.
    #[error("find a private key in {}: write it as PEM", .0.display())]
    Key(PathBuf),
    /// They cannot be used together.
    #[error("use the certificate of {} with the key of {}", certificate.display(), key.display())]
    Mismatch {
        /// The certificate file.
        certificate: PathBuf,
        /// The key file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// Reads and checks a key pair.
pub(super) async fn read(files: &KeyPairFiles) -> Result<Arc<CertifiedKey>, KeyPairError> {
    let read = async |path: &PathBuf| {
        tokio::fs::read(path).await.map_err(|source| KeyPairError::Read {
            path: path.clone(),
            source,
        })
    };
    let (chain, key) = (read(&files.certificate).await?, read(&files.key).await?);
    parse(files, &chain, &key)
}

/// Checks a key pair. `files` is for errors.
pub(super) fn parse(files: &KeyPairFiles, chain: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, KeyPairError> {
    let chain: Option<Vec<_>> = CertificateDer::pem_slice_iter(chain).map(Result::ok).collect();
    let chain = chain
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| KeyPairError::Certificate(files.certificate.clone()))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| KeyPairError::Key(files.key.clone()))?;
    let pair = CertifiedKey::from_der(chain, key, &ring::default_provider());
    pair.map(Arc::new).map_err(|source| KeyPairError::Mismatch {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        source,
    })
}
