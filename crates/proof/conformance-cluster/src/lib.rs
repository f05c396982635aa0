//! Claims about the behaviour of the simulated API server, checked on it and on a real API server.
//!
//! A claim is a sentence and a check with a [`Subject`], which is a client with a namespace. A claim that holds on the
//! simulator and not on the real server is a defect of the simulator, which answers 501 for behaviour without a claim.
//!
//! Claims need a server without controllers, so that nothing else writes. They share one CRD, which the suite installs
//! and removes, and each uses a separate namespace.

mod claims;
mod differ;
mod matrix;
mod operation;
mod outcome;
mod subject;
mod tolerance;
mod webhook;

pub use differ::{Comparison, differ};
pub use matrix::matrix;
pub use outcome::{Outcome, Violation};
pub use subject::{Reply, Subject};
pub use webhook::{Webhook, in_process, simulator};

use serde_json::Value;

use outcome::Check;

/// A statement about the server.
#[derive(Clone, Copy)]
pub struct Claim {
    /// The verb.
    pub verb: &'static str,
    /// The feature of the verb.
    pub feature: &'static str,
    /// The sentence.
    pub text: &'static str,
    check: Check,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} / {}: {}", self.verb, self.feature, self.text)
    }
}

/// The matrix: every claim, by verb and feature.
#[must_use]
pub fn claims() -> Vec<Claim> {
    claims::all()
}

/// Checks all claims on a server in sequence. `run` is the prefix of namespaces; `webhook` is the client configuration of
/// the suite's conversion webhook.
///
/// # Errors
/// When the suite's kinds cannot be installed or removed.
pub async fn check(client: kube::Client, run: &str, webhook: &Value) -> Result<Vec<Outcome>, Violation> {
    let suite = Subject::new(client, "default", webhook.clone());
    suite.install(&claims::definition()).await?;
    suite
        .install(&claims::converted_definition(&suite.conversion()))
        .await?;
    let mut outcomes = Vec::new();
    for (number, claim) in claims().into_iter().enumerate() {
        let subject = suite.in_namespace(&format!("{run}-{number}"));
        subject.make_namespace().await?;
        outcomes.push(Outcome {
            claim,
            violation: (claim.check)(subject).await.err(),
        });
    }
    suite.remove(claims::CONVERTED_DEFINITION).await?;
    suite.remove(claims::DEFINITION).await?;
    Ok(outcomes)
}
