//! The controller toolkit: what every controller needs and none should write twice.
//!
//! Each part is a pure state machine with, where it must wait, a thin shell around it. Time comes in through
//! [`metal3_domain::clock::Clock`]. Nothing here knows a product's kinds or makes a product's decisions.
#![warn(missing_docs)]

pub mod access;
pub mod admin;
pub mod cache;
pub mod client;
pub mod clock;
pub mod condition;
pub mod events;
pub mod guard;
pub mod lease;
pub mod logs;
pub mod metrics;
pub mod object_reader;
pub mod patch;
pub mod plan;
pub mod queue;
pub mod reason;
mod safety_rules;
pub mod tls;
pub mod version;
pub mod watch;
pub mod work;
pub mod write;
