//! A host in Ironic's words, and a node in the API's.
//!
//! Everything here is a pure function between two records: what a host wants of its node ([`NodeRecord`],
//! [`Instance`], [`ports`], [`config_drive`]), what is to be changed of a node as it is found, and what an inspection
//! found ([`inventory`]). Nothing here knows where a host is in its life, decides that something is to be done, or
//! speaks to anybody.
//!
//! Invariants: a change that was made is not asked for again, whatever Ironic masks; text that Ironic masked is never
//! compared; what is not ours in a node's record stays as it is; a secret shows in no `Debug` and in no [`Refusal`].

pub mod bmc;
pub mod capabilities;
pub mod changes;
pub mod config_drive;
pub mod credentials;
mod document;
pub mod hints;
pub mod image;
pub mod instance;
pub mod inventory;
mod masked;
pub mod name;
pub mod not_yet;
pub mod ports;
pub mod profile;
pub mod ramdisk;
mod refusal;
pub mod registration;
mod secret;
mod settings;

pub use bmc::Controller;
pub use changes::{Changes, Passwords};
pub use credentials::Credentials;
pub use instance::{Instance, Occupant};
pub use not_yet::NotYet;
pub use ports::PortWish;
pub use ramdisk::{AgentNetwork, Ramdisk};
pub use refusal::Refusal;
pub use registration::NodeRecord;
pub use settings::NodeSettings;

#[cfg(test)]
mod tests;
