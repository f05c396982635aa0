//! A transport without sockets, for simulators in the same process.
//!
//! No time passes outside the timers of the async runtime, so a test may pause time; with sockets a timeout could
//! expire while a response is in flight. It sends the same requests as HTTP, headers included, without a login. Only
//! for tests and the sandbox.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// The response to a request.
pub type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<http::Response<Vec<u8>>, ConnectionBroken>> + Send + 'a>>;

/// The connection broke before the response. The request may have taken effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionBroken(pub String);

/// Sends a request to Ironic.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends one request.
    fn exchange(&self, request: http::Request<Vec<u8>>) -> ResponseFuture<'_>;
}
