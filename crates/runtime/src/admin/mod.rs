//! What an operator asks a running program: whether it lives, whether it is ready, how it does, and to say more.
//!
//! Two routers, for two ports, as the Go managers have them:
//!
//! - [`health`]: `/healthz` and `/readyz`, for probes, without TLS and without login. The body always says what was
//!   found: a probe that fails should not need a second request to be understood.
//! - [`diagnostics`]: `/metrics` and `/debug/flags/v`, the log level. Over TLS, and for those only whom the API server
//!   knows (TokenReview) and lets (SubjectAccessReview). [`insecure_diagnostics`] is for a flag: `/metrics`, to
//!   everybody. differs: `diagnostics-certificate`: the certificate is the one of the webhook server.
//!
//! [`crate::tls::Server`] serves them. The invariant: what cannot be decided is refused.

mod diagnostics;
mod gate;
mod health;
mod review;

pub use diagnostics::{diagnostics, insecure_diagnostics};
pub use gate::Gate;
pub use health::{CheckResult, Health, health};
pub use review::{AccessDecision, ClusterReviewer, Reviewer};

#[cfg(test)]
mod tests;
