//! IP address management: pools, claims of both kinds on them, and the addresses granted.
//!
//! An IPPool is a list of ranges. An IPClaim, or an IPAddressClaim of Cluster API, asks for one address of it and is
//! answered with an IPAddress object of its own group. All that is granted can be read from those objects; the pool's
//! status shows it and records the grants under way.
//!
//! The invariant: no two claims that live hold one address of a pool, whoever else runs, however old the caches are and
//! however late a request arrives. [`plan::plan`] keeps it; nothing here relies on a leader.
#![warn(missing_docs)]

pub mod accounts;
pub mod action;
pub mod choice;
pub mod claim;
pub mod controller;
pub mod documents;
pub mod facts;
pub mod held;
pub mod names;
pub mod needs;
pub mod plan;
pub mod ranges;
mod rules;

#[cfg(test)]
mod tests;
