//! Self-managed certificates, for clusters without cert-manager: an authority and a serving pair in a Secret, and the
//! CA bundle in every configuration that refers to the webhook.
//!
//! [`plan`] determines the next step from the stored state and the time; [`controller`] runs it. Replicas share the
//! Secret without leader election: each write has a precondition, and a replica with a conflict reads again.
//!
//! Invariants:
//! - the serving pair is signed by an authority that is already in the CA bundle;
//! - an authority is removed only when no replica serves a pair signed by it;
//! - keys are only in the Secret and the server, never in a log or an error.

mod client;
pub mod controller;
pub mod inject;
mod issue;
pub mod plan;
mod secret;
pub mod state;

pub use client::SelfManaged;
pub use controller::{CertificateController, CertificateScope};
pub use issue::IssueError;
pub use secret::Pair;
