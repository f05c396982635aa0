//! Bare metal hosts: from the address of a BMC to a running image and back, through Ironic.
//!
//! [`node`] says in Ironic's words what a host asks for, and in the API's words what Ironic found.
#![warn(missing_docs)]

pub mod node;
