//! The domain values of the project, independent of any cluster, server or file.
//!
//! Everything here is pure. Parsers are total: any text gives a value or an error that names the broken rule and the
//! cure. The crate has no Kubernetes types, no requests to Kubernetes or Ironic, no environment access and no logging;
//! the only side effect is reading [`clock::SystemClock`].
//!
//! A rule that follows the Go managers is marked as such: text that they accept keeps its meaning here.
#![warn(missing_docs)]

pub mod allowed;
pub mod bmc;
pub mod clock;
pub mod derived;
pub mod destination;
pub mod expression;
pub mod ids;
pub mod image;
pub mod ip;
pub mod mac;
pub mod names;
pub mod network_data;
pub mod objectives;
pub mod provider_id;
pub mod reason;
pub mod selector;
pub mod uri;
pub mod yaml;
