//! Translation between a host and a node.
//!
//! Pure functions: the desired node of a host ([`NodeRecord`], [`Instance`], [`ports`], [`config_drive`]), the changes
//! that an observed node needs, and the hardware details of an inspection ([`inventory`]). Nothing here depends on the
//! state of a host, decides on an action or sends a request.
//!
//! Invariants: an applied change is not requested again, whatever Ironic masks; masked text is never compared;
//! unmanaged fields of a node record are kept; no `Debug` and no [`InvalidHost`] contains a secret.

pub mod agent;
pub mod bios;
pub mod bmc;
pub mod capabilities;
pub mod changes;
pub mod cleaning;
pub mod config_drive;
pub mod credentials;
pub mod deployment;
pub mod drive;
pub(crate) mod failed_step;
pub mod firmware;
pub mod hints;
pub mod image;
pub mod instance;
mod invalid_host;
pub mod inventory;
pub(crate) mod kept;
mod logical_disks;
mod masked;
pub mod name;
pub mod ports;
pub mod profile;
mod pull_secret;
pub mod raid;
pub mod ramdisk;
pub mod registration;
pub mod reported;
mod secret;
mod settings;

pub use agent::{Agent, AgentFiles};
pub use bmc::BmcEndpoint;
pub(crate) use bmc::tries_login;
pub(crate) use changes::takes_changes;
pub use changes::{Changes, Passwords};
pub(crate) use cleaning::is_cleaned;
pub use cleaning::restrictions;
pub use credentials::Credentials;
pub use deployment::Deployment;
pub use failed_step::FailedStep;
pub use instance::{Instance, InstanceOwner};
pub use invalid_host::InvalidHost;
pub(crate) use masked::may_be;
pub use ports::DesiredPort;
pub use pull_secret::{PullSecret, PullSecretError};
pub use ramdisk::{AgentNetwork, Ramdisk, Ramdisks};
pub use registration::NodeRecord;
pub use settings::NodeSettings;

#[cfg(test)]
mod tests;
