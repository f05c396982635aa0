//! Why the process cannot run.

use metal3_runtime::lease::LeaseTimingsError;
use metal3_runtime::tls::{KeyPairError, TlsOptionsError};

/// Why the process cannot run. Each message contains an instruction.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An address cannot be listened on.
    #[error("{flag}: listen on {address}")]
    Listen {
        /// Its flag.
        flag: &'static str,
        /// The address.
        address: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The namespace of the process is unknown.
    #[error("{0}: needs the namespace of the process; set the environment variable POD_NAMESPACE")]
    NoNamespace(&'static str),
    /// The flags of the leader election contradict each other.
    #[error(transparent)]
    LeaseTimings(#[from] LeaseTimingsError),
    /// The flags of TLS contradict each other.
    #[error(transparent)]
    TlsOptions(#[from] TlsOptionsError),
    /// There is no certificate.
    #[error(
        "find a certificate for webhooks and metrics; mount one, or write --webhook-certificates=self-managed (with \
         --observe-only: --insecure-diagnostics or --diagnostics-address=0)"
    )]
    Certificate(#[from] KeyPairError),
    /// The credentials for the API server cannot be used.
    #[error("use the credentials for the API server")]
    Client(#[source] Box<kube::Error>),
    /// The Ironic endpoint is not configured.
    #[error("--controllers: hosts need Ironic; set the environment variable IRONIC_ENDPOINT")]
    NoIronic,
    /// TLS cannot be set up.
    #[error("set up TLS")]
    Tls(#[from] rustls::Error),
}
