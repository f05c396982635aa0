//! The decisions of the kubelet: pure functions from what the API server says to what is to be done.
//!
//! Nothing in here reads a clock, a file or the network. What a Pod refers to is fetched before and handed in as
//! `Sources`, so a missing object is an answer like any other.

pub(crate) mod environment;
pub(crate) mod fields;
pub(crate) mod image;
pub(crate) mod probe;
pub(crate) mod quantity;
pub(crate) mod refusal;
pub(crate) mod restart;
pub(crate) mod sandbox;
pub(crate) mod sources;
pub(crate) mod status;
pub(crate) mod user;
pub(crate) mod volume;

#[cfg(test)]
pub(crate) mod fixtures;
