//! The manager: flags and wiring of the products.
//!
//! Start order, in [`run`]: probes; webhooks; discovery of the kinds; watches on every replica; controllers on the
//! leader. Stop order is the reverse: running reconciles finish, the lease is released, servers close.
//!
//! Invariants: the process writes nothing before kinds, guard and lease allow it; `/readyz` reports every
//! obstacle with an instruction.
#![warn(missing_docs)]

pub mod cluster;
mod drain_events;
pub mod error;
pub mod hand_back;
pub mod hosts_config;
mod lead;
pub mod machines;
pub mod notice;
mod output;
#[cfg(feature = "plugin")]
pub mod plugin;
pub mod pod;
pub mod preflight;
pub mod product;
#[cfg(feature = "plugin")]
mod reader;
pub mod run;
pub mod select;
pub mod served;
mod servers;
pub mod session;
#[cfg(feature = "plugin")]
pub mod why;
