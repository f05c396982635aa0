//! The endpoint of a control plane that another provider may run: its sources and its consequences.
//!
//! | Step | Where |
//! |---|---|
//! | host and port, and their equality | [`address`] |
//! | the endpoint in the spec: set by the user or derived | [`spec_endpoint`] |
//! | the objects to read, and their values | [`source`] |
//! | an address claimed from a pool | [`pool`] |
//! | an existing claim, and its differences from the request | [`existing_claim`] |
//! | the finalizer of a claim, and its removal | [`held_claims`] |
//! | the effective endpoint, and the write to the spec | [`resolve`] |
//! | a template with the endpoint filled in | [`render`] |
//! | the existing Secret with it, without its content | [`rendered`] |
//! | conditions | [`conditions`] |
//!
//! It watches nothing and writes nothing.
//!
//! Invariants: the endpoint of the Cluster, once valid, is the source of truth and never changed here. A user's value
//! is never overwritten. A value is derived at most once per value of its source, and while the Cluster has no endpoint
//! at most once per [`WRITE_INTERVAL`](resolve::WRITE_INTERVAL). An unreadable source does not count as absent.

pub mod address;
pub mod conditions;
pub mod existing_claim;
pub mod held_claims;
pub mod pool;
pub mod render;
pub mod rendered;
pub mod resolve;
pub mod source;
pub mod spec_endpoint;

#[cfg(test)]
pub(crate) mod tests;
