//! The certificate in use, and its renewal.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::key_pair::{self, KeyPairError, KeyPairFiles};
use super::validity::valid_until;
use crate::metrics::CertificateMetrics;

/// How often the files are read again. Polling, because Kubernetes swaps a symbolic link above the files, which file
/// notifications do not report.
pub const RELOAD_PERIOD: Duration = Duration::from_secs(10);

/// The certificate in use; clones share it.
#[derive(Clone)]
pub struct Certificates {
    files: KeyPairFiles,
    pair: Arc<ArcSwap<CertifiedKey>>,
    metrics: CertificateMetrics,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads the first key pair.
    ///
    /// # Errors
    /// When the files contain no key pair.
    pub async fn read(files: KeyPairFiles, metrics: CertificateMetrics) -> Result<Self, KeyPairError> {
        let pair = key_pair::read(&files).await;
        count(&metrics, &pair);
        Ok(Self {
            files,
            pair: Arc::new(ArcSwap::new(pair?)),
            metrics,
        })
    }

    /// A key pair from memory. `origin` replaces the directory in errors.
    ///
    /// # Errors
    /// When it is no key pair.
    pub fn from_pem(origin: &str, chain: &str, key: &str, metrics: CertificateMetrics) -> Result<Self, KeyPairError> {
        let files = KeyPairFiles::mounted_at(origin);
        let pair = key_pair::parse(&files, chain.as_bytes(), key.as_bytes());
        count(&metrics, &pair);
        Ok(Self {
            files,
            pair: Arc::new(ArcSwap::new(pair?)),
            metrics,
        })
    }

    /// Replaces the key pair.
    ///
    /// # Errors
    /// When it is no key pair: the one before stays in use.
    pub fn replace(&self, chain: &str, key: &str) -> Result<(), KeyPairError> {
        let pair = key_pair::parse(&self.files, chain.as_bytes(), key.as_bytes());
        count(&self.metrics, &pair);
        self.pair.store(pair?);
        Ok(())
    }

    /// Reads the files again. Returns whether the key pair changed.
    ///
    /// # Errors
    /// When the files contain no key pair: the one before stays in use.
    pub async fn reload(&self) -> Result<bool, KeyPairError> {
        let pair = key_pair::read(&self.files).await;
        count(&self.metrics, &pair);
        let pair = pair?;
        if self.pair.load().cert == pair.cert {
            return Ok(false);
        }
        self.pair.store(pair);
        Ok(true)
    }

    /// Reads the files periodically, for ever; drop the future to end it.
    pub async fn reload_periodically(self) {
        let mut failing = false;
        loop {
            tokio::time::sleep(RELOAD_PERIOD).await;
            let path = self.files.certificate.display();
            match self.reload().await {
                Ok(changed) => {
                    if changed || failing {
                        tracing::info!(%path, "certificate in use is the one in the files");
                    }
                    failing = false;
                }
                Err(fault) => {
                    // Once, not every ten seconds: the counter continues.
                    if !failing {
                        let source = std::error::Error::source(&fault)
                            .map(ToString::to_string)
                            .unwrap_or_default();
                        tracing::error!(%path, %fault, source, "certificate not renewed: the one before stays in use");
                    }
                    failing = true;
                }
            }
        }
    }
}

/// Counts a read, and reports how long the certificate in use is valid.
fn count(metrics: &CertificateMetrics, pair: &Result<Arc<CertifiedKey>, KeyPairError>) {
    metrics.read(pair.is_ok());
    if let Ok(pair) = pair {
        metrics.expires(pair.cert.first().and_then(|own| valid_until(own)));
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.pair.load_full())
    }
}
