//! The decisions of the kubelet: pure functions of API objects.
//!
//! They read no clock, file or network. The objects that a Pod refers to are fetched before and passed as `Sources`; a
//! missing object is a regular input.

pub(crate) mod environment;
pub(crate) mod fields;
pub(crate) mod image;
pub(crate) mod layer;
pub(crate) mod probe;
pub(crate) mod pull;
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
