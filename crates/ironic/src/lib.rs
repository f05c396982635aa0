//! A client of Ironic's REST API.
//!
//! [`calls`] contains the requests, as values; [`model`] the responses; [`error`] the errors and how to handle each;
//! [`Client`] sends calls. Only the client uses the network. It decides nothing but the microversion and the retry of
//! harmless requests.
//!
//! [`feed`] polls for changed nodes instead of reading each node; [`slots`] bounds the number of busy hosts.
//!
//! This crate uses no Kubernetes object and keeps no state of a host: the host controller does.
#![warn(missing_docs)]

pub mod calls;
mod client;
mod credentials;
pub mod endpoint;
pub mod error;
mod failure;
pub mod feed;
pub mod model;
mod pinned;
pub mod request;
mod send_permit;
pub mod slots;
pub mod statistics;
pub mod text;
pub mod transport;
pub mod version;

pub use client::{Client, Response};
pub use credentials::SetupError;
pub use endpoint::{Endpoint, Settings};
pub use error::Error;
pub use send_permit::SendPermit;
