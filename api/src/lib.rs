//! The API surface: every kind of every group and version that the provider serves, and the parts of foreign kinds
//! that it reads.
//!
//! For whom: controllers, webhooks, simulators and `xtask`, which writes the CRD manifests from the tables here.
//!
//! What it does not do: talk to a cluster, read a clock, decide anything about a running system. It compiles without
//! tokio and without a Kubernetes client, and a test over the dependency graph keeps it so.
//!
//! Invariants:
//! - whatever the Go managers' CRDs accept and keep, ours accept and keep (`parity crd-diff`);
//! - every object decodes when `spec` or `status` is absent, because the Go managers' schemas allow it;
//! - unknown fields may be dropped on decode, because writes are patches and never send a whole object back.

#![warn(missing_docs)]

pub mod catalog;
pub mod cluster;
pub mod crd;
pub mod infrastructure;
pub mod ipam;
pub mod kind;
pub mod meta;
pub mod metal3;
pub mod rules;
