//! The API surface: every kind of every group and version that the provider serves, and the parts of other groups'
//! kinds that it reads.
//!
//! Used by controllers, webhooks, simulators and `xtask`, which writes the CRD manifests from the tables here.
//!
//! It contains no cluster access, no clock and no reconcile logic. It compiles without tokio and without a Kubernetes
//! client; a test over the dependency graph enforces that.
//!
//! Invariants:
//! - these CRDs accept and keep whatever the Go managers' CRDs accept and keep (`parity crd-diff`);
//! - every object decodes when `spec` or `status` is absent, because the Go managers' schemas allow it;
//! - unknown fields may be dropped on decode, because writes are patches, never whole objects.

#![warn(missing_docs)]

pub mod catalog;
pub mod cluster;
pub mod crd;
mod dropped;
pub mod infrastructure;
pub mod ipam;
pub mod kind;
pub mod meta;
pub mod metal3;
pub mod rules;
