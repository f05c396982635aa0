//! The vocabulary of the project: values that mean something before any cluster, server or file is involved.
//!
//! Everything here is pure. Parsers are total: any text gives a value or an error that names the rule it broke and the
//! cure. Nothing here talks to Kubernetes or Ironic, knows a Kubernetes type, reads the environment or logs; the one
//! contact with the outside is [`clock::SystemClock`].
//!
//! Where a rule exists because the Go managers answer that way, the module says so: text that they accept keeps its
//! meaning here.
#![warn(missing_docs)]

pub mod bmc;
pub mod clock;
pub mod derived;
pub mod destination;
pub mod ids;
pub mod image;
pub mod ip;
pub mod mac;
pub mod names;
pub mod network_data;
pub mod provider_id;
pub mod selector;
pub mod uri;
