//! Bare metal hosts: from the address of a BMC to a running image and back, through Ironic.
//!
//! A decision is made from [`facts::Facts`] alone and is an [`action::Plan`]. [`node`] says in Ironic's words what a host
//! asks for, and in the API's words what Ironic found. The invariant: nothing that runs is cut off or erased unless the
//! host's own status says so beforehand and a live look at host and node confirms it; what is unknown never counts as
//! absent.
#![warn(missing_docs)]

pub mod action;
pub mod facts;
pub mod node;
pub mod settings;
