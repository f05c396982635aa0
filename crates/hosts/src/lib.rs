//! The BareMetalHost controller: from a BMC address to a running image and back, through Ironic.
//!
//! A decision is a pure function from [`facts::Facts`] to an [`action::Plan`]. [`node`] translates a host to a node and
//! an inspection result to hardware details. Invariant: nothing that runs is interrupted or erased unless the status
//! records it beforehand and live reads of host and node confirm it; unknown never counts as absent.
#![warn(missing_docs)]

pub mod action;
pub mod backoff;
mod conditions;
pub mod controller;
mod deletion;
mod detach;
mod error;
pub mod facts;
pub mod names;
pub mod needs;
pub mod node;
mod object;
mod ownership;
pub mod plan;
mod power;
mod rules;
mod safety;
pub mod settings;
pub mod state;
mod status;
#[cfg(test)]
mod tests;

pub use object::is_moving;
