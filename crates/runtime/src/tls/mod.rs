//! Serving over TLS, with certificates that are renewed under a running server.
//!
//! - [`TlsOptions`]: versions and cipher suites, from the flags of the Go managers.
//! - [`Certificates`]: a certificate chain and its key, read from two files and read again every ten seconds. Both are
//!   checked *together* before they are used: a volume may be swapped between the two reads. What does not fit is
//!   counted and logged, and the pair before stays in use.
//! - [`Server`]: a router on a port, with or without TLS, that stops gracefully.
//!
//! A renewal never breaks a connection: those that exist keep what they agreed on, new ones see the new certificate.
//! No client certificates are asked for: who calls is found out above, by token.
//!
//! The invariant: there is always one whole pair in use.

mod certificates;
mod key_pair;
mod options;
mod server;

pub use certificates::{Certificates, RELOAD_PERIOD};
pub use key_pair::{KeyPairError, KeyPairFiles};
pub use options::{TlsOptions, TlsOptionsError};
pub use server::Server;

#[cfg(test)]
mod tests;
