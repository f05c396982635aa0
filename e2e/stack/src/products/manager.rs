//! The manager of addresses as it is installed: its namespace, its Deployment and its webhooks.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::load::{list, pool};
use crate::claim::Proof;
use crate::claims::stack::{Stack, TestNamespace};

pub(super) const NAMESPACE: &str = "metal3-ipam-system";
/// A burst of claims on two cores that also run the API server.
pub(super) const LONG: Duration = Duration::from_secs(180);

pub(super) fn the_deployment(stack: &Stack) -> anyhow::Result<Value> {
    let deployments = list(stack, NAMESPACE, "deployments")?;
    ensure!(
        deployments.len() == 1,
        "{} Deployments in {NAMESPACE}",
        deployments.len()
    );
    deployments.into_iter().next().context("no Deployment")
}

/// Checks validating and defaulting webhooks.
pub(super) fn answers(namespace: &TestNamespace<'_>) -> Proof {
    let mut reversed = pool("reversed", "10.64.0.20", "10.64.0.10");
    let refused = namespace
        .apply(&reversed)
        .err()
        .context("a reversed range was admitted")?;
    ensure!(format!("{refused:#}").contains("spec.pools[0]"), "{refused:#}");
    reversed["spec"]["pools"][0]["end"] = json!("10.64.0.30");
    namespace.apply(&reversed)?;
    let strategy = namespace.get("ippool/reversed")?["spec"]["allocationStrategy"].clone();
    ensure!(strategy == "sequential", "allocationStrategy is {strategy}");
    let renamed = json!({"spec": {"namePrefix": "other"}}).to_string();
    let refused = namespace
        .kubectl(&["patch", "ippool", "reversed", "--type=merge", "--patch", &renamed])
        .err()
        .context("namePrefix could be changed")?;
    ensure!(format!("{refused:#}").contains("spec.namePrefix"), "{refused:#}");
    let unnamed = json!({"apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPClaim", "metadata": {"name": "x"},
        "spec": {"pool": {"name": ""}}});
    let refused = namespace
        .apply(&unnamed)
        .err()
        .context("a claim without a pool was admitted")?;
    Ok(format!("{refused:#}").lines().next().unwrap_or_default().to_owned())
}
