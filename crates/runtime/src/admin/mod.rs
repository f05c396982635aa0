//! Probes, metrics and the log level of a running program.
//!
//! Two routers, for two ports, as in the Go managers:
//!
//! - [`health`]: `/healthz` and `/readyz`, for probes, without TLS and authentication. The body always has the result
//!   of each check, so that a failed probe explains itself.
//! - [`diagnostics`]: `/metrics` and `/debug/flags/v`, the log level. Over TLS, for callers that the API server
//!   authenticates (TokenReview) and authorizes (SubjectAccessReview). [`insecure_diagnostics`] is for a flag:
//!   `/metrics` for every caller. differs: `diagnostics-certificate`: the certificate is that of the webhook server.
//!
//! [`crate::tls::Server`] serves them. The invariant: without a decision the caller is denied.

mod diagnostics;
mod gate;
mod health;
mod review;

pub use diagnostics::{diagnostics, insecure_diagnostics};
pub use gate::Gate;
pub use health::{CheckResult, Health, health};
pub use review::{AccessDecision, ClusterReviewer, Reviewer, SubjectReviewer};

#[cfg(test)]
mod tests;
