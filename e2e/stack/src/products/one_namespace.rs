//! The claim about a process of one namespace, with the roles and webhooks of `ipam-namespaced-self-managed.yaml`.

use std::fs;

use anyhow::{Context, ensure};
use metal3_ledger::Log;
use serde_json::json;

use super::access;
use super::load::{claim, has_address, pool};
use super::manager::{NAMESPACE, answers};
use super::release::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;

const WATCHED: &str = "one-namespace";
const KIND: &str = "ippools.ipam.metal3.io";

/// Each kind is granted in its namespace and in no other, and it works.
pub(super) fn works(stack: &Stack, candidate: &Candidate) -> Proof {
    let namespace = stack.create_namespace(WATCHED)?;
    let elsewhere = stack.create_namespace("another-namespace")?;
    ensure!(
        may_list(stack, &elsewhere.name)?,
        "the components grant no namespace but theirs"
    );
    let roles = candidate.file("ipam-namespaced-self-managed.yaml");
    let text = fs::read_to_string(&roles).with_context(|| format!("read {}", roles.display()))?;
    let apply = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--namespace",
        WATCHED,
        "--filename",
        "-",
    ];
    let unnamed = stack.run("kubectl", &apply, Some(&text));
    ensure!(unnamed.is_err(), "webhooks of a namespace without a name are accepted");
    stack.run("kubectl", &apply, Some(&text.replace("${WATCHED_NAMESPACE}", WATCHED)))?;
    let deployment = super::manager::the_deployment(stack)?;
    let name = super::load::name(&deployment);
    let argument = format!("--namespace={WATCHED}");
    let patch = json!([{ "op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": argument }]);
    let own = ["--namespace", NAMESPACE];
    let patch = patch.to_string();
    stack.kubectl(
        &[
            &["patch", "deployment", &name, "--type=json", "--patch", &patch],
            &own[..],
        ]
        .concat(),
    )?;
    stack.kubectl(&[&["rollout", "status", "deployment", &name, "--timeout=180s"], &own[..]].concat())?;
    // The process that watched all namespaces has ended, so what follows is the work of the other.
    let before = forbidden(stack)?;
    ensure!(
        may_list(stack, WATCHED)? && !may_list(stack, &elsewhere.name)?,
        "the roles are of all namespaces"
    );
    answers(&namespace)?;
    // The process sees no address of another namespace, so it reviews none of its pools.
    elsewhere.apply(&pool("foreign", "10.64.20.10", "10.64.20.20"))?;
    elsewhere.apply(&pool("foreign", "10.64.20.15", "10.64.20.30"))?;
    elsewhere.kubectl(&["delete", "ippool", "foreign", "--wait=false"])?;
    namespace.apply(&pool("single", "10.64.10.10", "10.64.10.20"))?;
    namespace.apply(&claim("single", 0))?;
    let granted = namespace.until("ipclaim/single-claim-0", "granted", has_address)?;
    namespace.kubectl(&["delete", "ipclaim", "single-claim-0", "--timeout=60s"])?;
    let refused = forbidden(stack)?;
    ensure!(refused == before, "forbidden: {refused:?}, before: {before:?}");
    Ok(format!("{} from its roles alone", granted["status"]["address"]["name"]))
}

fn may_list(stack: &Stack, namespace: &str) -> anyhow::Result<bool> {
    let arguments = [
        "auth",
        "can-i",
        "list",
        KIND,
        "--namespace",
        namespace,
        "--as",
        access::ACCOUNT,
    ];
    let output = stack.output("kubectl", &arguments, None)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim() == "yes")
}

/// The requests of the account that were forbidden.
fn forbidden(stack: &Stack) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(stack.places.log("audit"))?;
    let counts = Log::read(&text)?.counts_of(access::ACCOUNT);
    Ok(counts.forbidden.iter().map(ToString::to_string).collect())
}
