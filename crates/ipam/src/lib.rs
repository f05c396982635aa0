//! IP address management: pools, claims of both kinds, and allocated addresses.
//!
//! An IPPool lists ranges. An IPClaim, or an IPAddressClaim of Cluster API, requests one address of a pool; the
//! controller creates an IPAddress object of the claim's group. These objects are the source of truth; the pool's
//! status shows the allocations and records the pending ones.
//!
//! Invariant: no two live claims have the same address of a pool, with any number of replicas, stale caches and delayed
//! requests. [`plan::decide`] maintains it without relying on leader election.
#![warn(missing_docs)]

pub mod action;
pub mod address;
pub mod allocator;
pub mod claim;
pub mod documents;
pub mod facts;
pub mod index;
pub mod names;
pub mod needs;
pub mod plan;
pub mod ranges;
pub mod reconciler;
mod rules;

// Examples include test files, which name this crate.
#[cfg(test)]
extern crate self as metal3_ipam;
#[cfg(test)]
mod tests;
