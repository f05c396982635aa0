//! The BareMetalHost controller: from a BMC address to a running image and back, through Ironic.
//!
//! A decision is a pure function from [`facts::Facts`] to an [`action::Plan`]. [`node`] translates a host to a node and
//! an inspection result to hardware details. Invariant: nothing that runs is interrupted or erased unless the status
//! records it beforehand and live reads of host and node confirm it; unknown never counts as absent.
#![warn(missing_docs)]

pub mod action;
pub mod agent_image;
pub mod claims;
pub mod data_image;
pub mod facts;
pub mod ironic_resource;
pub mod ironics;
pub mod live;
pub mod names;
pub mod needs;
pub mod node;
pub mod plan;
pub mod reconciler;
mod secret_use;
pub mod settings;
pub mod subscription;
pub mod switches;
#[cfg(test)]
mod tests;
pub mod unserved;
