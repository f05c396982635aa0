//! Bare metal hosts: from the address of a BMC to a running image and back, through Ironic.
//!
//! A decision is made from [`facts::Facts`] alone and is an [`action::Plan`]. [`node`] says in Ironic's words what a host
//! asks for, and in the API's words what Ironic found. The invariant: nothing that runs is cut off or erased unless the
//! host's own status says so beforehand and a live look at host and node confirms it; what is unknown never counts as
//! absent.
#![warn(missing_docs)]

pub mod action;
pub mod backoff;
mod brakes;
mod claim;
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
pub mod plan;
mod power;
mod rules;
pub mod settings;
pub mod state;
mod status;
#[cfg(test)]
mod tests;

pub use object::is_moving;
