//! Ironic over its REST API.
//!
//! [`calls`] says what can be asked, as values; [`model`] what is answered; [`error`] what can go wrong and what to do
//! about each; [`Client`] carries calls out. Only the client touches the network, and it makes no decisions beyond
//! the dialect to speak and sending a harmless request again.
//!
//! Instead of asking after each node, [`feed`] asks which nodes changed; [`slots`] counts who may be busy.
//!
//! This crate knows no Kubernetes object and keeps no state of a host's life: that is the host controller's.
#![warn(missing_docs)]

pub mod calls;
mod client;
mod credentials;
pub mod endpoint;
pub mod error;
mod failure;
pub mod feed;
pub mod model;
pub mod request;
pub mod slots;
pub mod text;
pub mod transport;
pub mod version;

pub use client::{Client, Response};
pub use credentials::SetupError;
pub use endpoint::{Endpoint, Settings};
pub use error::Error;
