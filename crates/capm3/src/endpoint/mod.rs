//! The endpoint of a control plane that somebody else may run: where it is known from, and what follows.
//!
//! | Step | Where |
//! |---|---|
//! | host and port, and when two are the same | [`address`] |
//! | what a Metal3Cluster says itself: typed by a person, or derived by us | [`own`] |
//! | which objects are to be looked at, and what they say | [`reading`] |
//! | an address that is claimed from a pool | [`pool`] |
//! | a claim that exists, and how it differs from what is asked for | [`claimed`] |
//! | what holds a claim, and when it is given back | [`hold`] |
//! | which endpoint counts, and what is written back | [`resolve`] |
//! | a text with it filled in | [`render`] |
//! | what is said of it | [`said`] |
//!
//! It watches nothing and writes nothing.
//!
//! Invariants: the endpoint of the Cluster, once it is valid, is the truth, and nothing here changes it. What a person
//! typed is never written over. A value is derived at most once for each value of its source, and before the Cluster
//! has an endpoint at most once in [`PACE`](resolve::PACE). What cannot be read is not absent.

pub mod address;
pub mod claimed;
pub mod hold;
pub mod own;
pub mod pool;
pub mod reading;
pub mod render;
pub mod resolve;
pub mod said;

#[cfg(test)]
mod tests;
