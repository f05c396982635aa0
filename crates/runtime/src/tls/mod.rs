//! Serves TLS, with certificates that are renewed without a restart.
//!
//! - [`TlsOptions`]: versions and cipher suites, from the flags of the Go managers.
//! - [`Certificates`]: a certificate chain and its key, read from two files every ten seconds. Both are checked
//!   *together* before use: a volume may be swapped between the two reads. A mismatch is counted and logged, and the
//!   key pair before stays in use.
//! - [`Server`]: a router on a port, with or without TLS, that stops gracefully.
//!
//! A renewal breaks no connection: open ones keep their session, new ones get the new certificate.
//!
//! Client certificates are requested where a CA is given for them, and never required by the handshake: a handler decides
//! by the [`ClientName`] of the request. The number and the age of connections, and what they may send unread, are
//! limited.
//!
//! The invariant: there is always one complete key pair in use.

mod certificates;
mod client;
mod connections;
mod key_pair;
mod options;
mod server;
mod validity;

pub use certificates::{Certificates, RELOAD_PERIOD};
pub use client::{ClientAddress, ClientName};
pub use key_pair::{KeyPairError, KeyPairFiles};
pub use options::{TlsOptions, TlsOptionsError};
pub use server::Server;

#[cfg(test)]
mod tests;
