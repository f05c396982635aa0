//! A way to Ironic without sockets: for simulators that live in the same process.
//!
//! With it no time passes outside the timers of the async runtime, so a test may hold the time still; sockets would let
//! a limit run out while an answer is on its way. It carries the same requests as HTTP does, headers included, but no
//! login: whoever is in the process is let in. Not for use outside tests and the sandbox.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// What comes of an exchange.
pub type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<http::Response<Vec<u8>>, ConnectionBroken>> + Send + 'a>>;

/// The connection broke before the answer was there. The request may have been carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionBroken(pub String);

/// Carries a request to Ironic, and its answer back.
pub trait Transport: fmt::Debug + Send + Sync {
    /// One exchange.
    fn exchange(&self, request: http::Request<Vec<u8>>) -> ResponseFuture<'_>;
}
