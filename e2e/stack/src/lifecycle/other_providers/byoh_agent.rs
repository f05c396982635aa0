//! The agents on BYOH hosts: what a host runs, and its cleanup after its machine is deleted.

use std::collections::BTreeMap;

use anyhow::Context;
use k8s_openapi::ByteString;
use metal3_sim_capi::byoh;
use metal3_sim_capi::view::Object;
use serde_json::Value;

use crate::claims::stack::Stack;
use crate::lifecycle::drive::{self, Boot};

const RESOURCE: &str = "byohosts.infrastructure.cluster.x-k8s.io";

/// A host by namespace and name.
pub(crate) type Host = (String, String);

/// The hosts with a task and their bootstrap Secret, and the hosts to clean up.
pub(crate) fn tasks(stack: &Stack) -> anyhow::Result<(BTreeMap<Host, String>, Vec<Host>)> {
    let listed = stack.kubectl(&["get", RESOURCE, "--all-namespaces", "--output=json"])?;
    let listed: Value = serde_json::from_str(&listed)?;
    let (mut runs, mut leaves) = (BTreeMap::new(), Vec::new());
    for host in listed["items"].as_array().into_iter().flatten() {
        let host = Object(host.clone());
        let key = (host.namespace().to_owned(), host.name().to_owned());
        match byoh::agent_task(&host) {
            byoh::AgentTask::CleanUp => leaves.push(key),
            byoh::AgentTask::Run(secret) => drop(runs.insert(key, secret.to_owned())),
            byoh::AgentTask::Idle => {}
        }
    }
    Ok((runs, leaves))
}

/// Reads the boot configuration of a host from its bootstrap Secret.
pub(crate) fn read(stack: &Stack, (namespace, name): &Host, secret: &str) -> anyhow::Result<Boot> {
    let args = ["--namespace", namespace, "get", "secret", secret, "--output=json"];
    let found: Value = serde_json::from_str(&stack.kubectl(&args)?)?;
    let ByteString(bytes) = serde_json::from_value(found["data"]["value"].clone()).context("no bootstrap data")?;
    drive::read(
        &String::from_utf8(bytes)?,
        &Value::Object(byoh::template_variables(name)),
    )
}

/// Resets a host to its state without a machine.
pub(crate) fn clear(stack: &Stack, (namespace, name): &Host) -> anyhow::Result<()> {
    let [status, rest] = byoh::reset_patches();
    let patch = |change: &Value, more: &[&str]| {
        let change = change.to_string();
        let args = [
            "--namespace",
            namespace,
            "patch",
            RESOURCE,
            name,
            "--type=merge",
            "--patch",
            &change,
        ];
        stack.kubectl(&[&args, more].concat())
    };
    patch(&status, &["--subresource=status"])?;
    patch(&rest, &[]).map(drop)
}
