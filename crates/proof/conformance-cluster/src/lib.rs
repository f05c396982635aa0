//! What the simulator claims to do, as claims that are checked on it and on a real API server.
//!
//! A claim is a sentence and a function over a [`Subject`], which is no more than a client. A claim that holds here and
//! not on the real server is a lie of the simulator; one that cannot be kept is taken out, and the server answers 501.
//!
//! Claims need a server without controllers beside it, so that nothing but them writes. They share one kind (a CRD that
//! the suite installs and removes) and each has a namespace of its own.

mod claims;
mod differ;
mod matrix;
mod operation;
mod outcome;
mod subject;
mod tolerance;
mod webhook;

pub use differ::{Compared, differ};
pub use matrix::matrix;
pub use outcome::{Broken, Outcome};
pub use subject::{Reply, Subject};
pub use webhook::{Webhook, in_process, simulator};

use serde_json::Value;

use outcome::Check;

/// A sentence about the server that is true or not.
#[derive(Clone, Copy)]
pub struct Claim {
    /// What is done.
    pub verb: &'static str,
    /// The feature of the verb.
    pub feature: &'static str,
    /// The sentence.
    pub says: &'static str,
    check: Check,
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} / {}: {}", self.verb, self.feature, self.says)
    }
}

/// The matrix: every claim, by verb and feature.
#[must_use]
pub fn claims() -> Vec<Claim> {
    claims::all()
}

/// Checks every claim on a server, one after the other. Namespaces are named after the run; `webhook` is where the server
/// reaches the suite's conversion.
///
/// # Errors
/// When the suite's kind cannot be installed or removed: then nothing is known.
pub async fn check(client: kube::Client, run: &str, webhook: &Value) -> Result<Vec<Outcome>, Broken> {
    let stage = Subject::new(client, "default", webhook.clone());
    stage.install(&claims::definition()).await?;
    stage
        .install(&claims::converted_definition(&stage.conversion()))
        .await?;
    let mut outcomes = Vec::new();
    for (number, claim) in claims().into_iter().enumerate() {
        let subject = stage.in_namespace(&format!("{run}-{number}"));
        subject.make_namespace().await?;
        outcomes.push(Outcome {
            claim,
            broken: (claim.check)(subject).await.err(),
        });
    }
    stage.remove(claims::CONVERTED_DEFINITION).await?;
    stage.remove(claims::DEFINITION).await?;
    Ok(outcomes)
}
