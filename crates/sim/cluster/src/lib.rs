//! An in-process Kubernetes API server: for tests that are fast, deterministic and full of faults.
//!
//! [`Cluster`] is the server. [`Cluster::client`] gives a `kube::Client` that talks to it without sockets;
//! [`Cluster::serve`] does the same over HTTP on loopback. Inside is a state machine ([`Request`] in, answer out) that
//! knows no clock, task or socket; around it a thin shell that waits, streams watches and acts out the fault plan.
//!
//! It does **not** approximate: what it does not do it refuses with 501 and a `Status` that names it. Not here are
//! strategic merge patches, taking fields over from client-side apply, tables, foreground and orphan deletion, roles, and
//! all built-in kinds but a few. `metal3-conformance-cluster` states what is here as claims that hold on the real server too.
//!
//! Invariants: resource versions are comparable across all resources; the same seed, requests and times give the same
//! answers, names and uids.
#![warn(missing_docs)]

mod audit;
mod cluster;
mod http;
mod neighbours;
mod service;
mod store;
mod stream;
mod time;

pub use audit::{Audit, Count};
pub use cluster::{Cluster, Options, Written, provider_conversion};
pub use http::Serving;
pub use neighbours::cluster_api;
pub use service::Door;
pub use store::{
    Admission, Convert, Denial, Mutate, Operation, Refusal, Request, TAKEN_AS_GIVEN, Target, Validate, Verb,
};
pub use time::TokioClock;
