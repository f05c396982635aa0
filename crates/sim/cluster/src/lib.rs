//! An in-process Kubernetes API server for fast, deterministic tests with fault injection.
//!
//! [`Cluster`] is the server. [`Cluster::client`] returns a `kube::Client` without sockets; [`Cluster::serve`] serves
//! HTTP on loopback. The core is a state machine without clock, tasks or sockets; a thin layer around it waits, streams
//! watches and injects the faults of a plan.
//!
//! It does **not** approximate: an unsupported request gets 501 and a `Status` that names the feature. Not supported
//! are tables, and kinds of Kubernetes that no client of the tests needs; roles count for impersonated users, and for owners with
//! [`Cluster::enforce_owner_permissions`]. The claims of `metal3-conformance-cluster` hold on this server and on a real one.
//!
//! Invariants: resource versions are comparable across all resources; the same seed, requests and times produce the
//! same answers, names and uids.
#![warn(missing_docs)]

mod audit;
mod cluster;
mod cluster_api;
mod http;
mod service;
mod store;
mod stream;
mod time;

pub use audit::{Audit, Count};
pub use cluster::{Cluster, Options, WriteEvent, provider_conversion};
pub use cluster_api::cluster_api;
pub use http::HttpServer;
pub use service::ClientService;
pub use store::{
    Access, Admission, Convert, Denial, Identity, May, Mutate, Operation, Refusal, Request, TAKEN_AS_GIVEN, Target,
    Validate, Verb,
};
pub use time::TokioClock;
