//! The claims about IP address management.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::load::{claim, grants, has_address, list, pool};
use super::manager::{LONG, NAMESPACE, answers, the_deployment};
use super::release::Candidate;
use super::written::{delete_roles, labelled, next_image};
use super::{access, empty_root, one_namespace, own_writes, repair, rotation, self_managed};
use crate::claim::{Claim, Proof};
use crate::claims::stack::{Stack, TestNamespace};
use crate::wait::{Stopwatch, until};

const BURST: usize = 500;
const COMPONENTS: &str = "ipam-components.yaml";

macro_rules! claims {
    ($($name:ident: $proof:expr;)+) => {
        &[$((stringify!($name), $proof),)+]
    };
}

/// Proves a claim on a release that is installed from the candidate.
type Check = fn(&Stack, &Candidate) -> Proof;

/// In this order: each claim starts with the state that the previous one left.
pub(super) const CLAIMS: &[Claim<Check>] = claims! {
    clusterctl_init_installs_the_release_and_it_becomes_available: install;
    its_namespace_admits_its_pods_and_rejects_less_restricted_ones: access::restricted;
    its_program_runs_in_an_empty_read_only_root_and_resolves_names: empty_root::runs;
    webhooks_set_defaults_and_reject_with_field_and_remedy: webhooks;
    kubectl_get_shows_upstreams_columns: columns;
    claims_of_both_kinds_get_addresses: both_kinds;
    a_full_pool_is_reported_and_grants_when_an_address_is_released: full_pool;
    killing_the_manager_during_a_burst_of_claims_loses_nothing: killed;
    an_unavailable_address_is_refused_with_the_reason: repair::refused_twice;
    a_certificate_is_rotated_under_load_without_a_failed_request: rotation::rotated;
    a_removed_address_object_is_created_again: repair::removed;
    address_objects_without_a_claim_are_held_until_confirmed: repair::orphans;
    metrics_require_a_role: access::metrics;
    a_repeated_event_is_written_as_a_series: repair::event_series;
    clusterctl_upgrade_keeps_every_address: upgraded;
    each_permission_is_used_and_no_request_was_forbidden: access::grants_are_used;
    clusterctl_delete_removes_the_release: deleted;
    without_cert_manager_it_creates_its_certificates_and_webhooks_answer: self_managed::installed;
    an_emptied_certificate_secret_is_filled_again: self_managed::spoiled;
    each_permission_of_the_variant_without_cert_manager_is_used_and_no_request_was_forbidden: access::grants_are_used;
    its_account_writes_only_its_certificates_and_the_ca_of_its_webhooks: own_writes::of_addresses;
    the_account_of_all_products_writes_only_secrets_of_machines_and_labels: own_writes::of_all_products;
    a_process_of_one_namespace_works_with_the_roles_of_that_namespace: one_namespace::works;
};

fn install(stack: &Stack, candidate: &Candidate) -> Proof {
    let watch = Stopwatch::start();
    candidate.written().init(stack, "--ipam metal3")?;
    let took = watch.elapsed();
    let deployment = the_deployment(stack)?;
    let (wanted, there) = (
        &deployment["spec"]["replicas"],
        &deployment["status"]["availableReplicas"],
    );
    ensure!(wanted == there, "{there} of {wanted} replicas are available");
    Ok(format!("{wanted} replicas, {:.1} s", took.as_secs_f64()))
}

fn webhooks(stack: &Stack, _: &Candidate) -> Proof {
    answers(&stack.create_namespace("admission")?)
}

fn columns(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("columns")?;
    namespace.apply(&pool("shown", "10.64.0.10", "10.64.0.20"))?;
    namespace.apply(&claim("shown", 0))?;
    namespace.until("ipclaim/shown-claim-0", "granted", has_address)?;
    let mut seen = Vec::new();
    for (kind, wanted) in [
        ("ippool", "NAME CLUSTER AGE"),
        ("ipclaim", "NAME AGE"),
        ("ipaddresses.ipam.metal3.io", "NAME AGE"),
    ] {
        let table = namespace.kubectl(&["get", kind])?;
        let header: Vec<&str> = table.lines().next().unwrap_or_default().split_whitespace().collect();
        ensure!(header.join(" ") == wanted, "{kind}: {header:?}");
        seen.push(format!("{kind}: {wanted}"));
    }
    Ok(seen.join("; "))
}

fn both_kinds(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("kinds")?;
    namespace.apply(&pool("both", "10.64.1.10", "10.64.1.40"))?;
    for number in 0..4 {
        namespace.apply(&claim("both", number))?;
    }
    let held = all_granted(stack, &namespace, 4)?;
    Ok(held.into_values().collect::<Vec<_>>().join(" "))
}

fn full_pool(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("full")?;
    namespace.apply(&pool("full", "10.64.2.10", "10.64.2.10"))?;
    namespace.apply(&claim("full", 0))?;
    namespace.until("ipclaim/full-claim-0", "granted", has_address)?;
    namespace.apply(&claim("full", 2))?;
    let waiting = namespace.until("ipclaim/full-claim-2", "with the error of a full pool", |claim| {
        claim["status"]["errorMessage"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    })?;
    namespace.kubectl(&["delete", "ipclaim", "full-claim-0", "--timeout=60s"])?;
    let granted = namespace.until("ipclaim/full-claim-2", "granted", has_address)?;
    ensure!(
        granted["status"]["errorMessage"]
            .as_str()
            .unwrap_or_default()
            .is_empty(),
        "{}",
        granted["status"]
    );
    Ok(waiting["status"]["errorMessage"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

fn killed(stack: &Stack, _: &Candidate) -> Proof {
    let namespace = stack.create_namespace("burst")?;
    // Paused until all claims exist: webhooks cannot admit claims while no replica runs.
    let mut resting = pool("burst", "10.65.0.1", "10.65.255.254");
    resting["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    namespace.apply(&resting)?;
    let all: Vec<Value> = (0..BURST).map(|number| claim("burst", number)).collect();
    stack.send(&["--namespace", &namespace.name, "create"], &all)?;
    namespace.kubectl(&["annotate", "ippool", "burst", "cluster.x-k8s.io/paused-"])?;
    let watch = Stopwatch::start();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let before = seen.last().copied().unwrap_or_default();
        let some = until(LONG, "more addresses", || {
            // Nothing is granted while it is counted, however long that takes on a busy machine.
            signal_all(stack, "STOP")?;
            let granted = list(stack, "burst", "ipaddresses.ipam.metal3.io")?.len();
            if granted > before {
                return Ok(Some(granted));
            }
            signal_all(stack, "CONT")?;
            Ok(None)
        })?;
        signal_all(stack, "KILL")?;
        // Counted after the kill: this is the total of those processes.
        let granted = list(stack, "burst", "ipaddresses.ipam.metal3.io")?.len();
        ensure!(
            granted < BURST / 2,
            "the burst ended before the replicas were killed: nothing is proved"
        );
        seen.push(some);
    }
    all_granted(stack, &namespace, BURST)?;
    namespace.keep();
    Ok(format!(
        "{BURST} claims, every replica killed when {seen:?} of {} IPClaims had an address, all granted once after {:.1} s",
        BURST / 2,
        watch.elapsed().as_secs_f64()
    ))
}

fn upgraded(stack: &Stack, candidate: &Candidate) -> Proof {
    let before = grants(stack, "burst")?;
    let first = image(stack)?;
    let args = ["upgrade", "apply", "--ipam", "metal3:v1.15.1", "--wait-providers"];
    candidate.written().next(stack)?.clusterctl(stack, &[], &args)?;
    let next = image(stack)?;
    ensure!(next == next_image(&first)?, "{next} after {first}");
    let namespace = stack.create_namespace("upgraded")?;
    namespace.apply(&pool("after", "10.64.4.10", "10.64.4.20"))?;
    namespace.apply(&claim("after", 0))?;
    namespace.until("ipclaim/after-claim-0", "granted", has_address)?;
    namespace.keep();
    ensure!(
        before.len() == BURST && grants(stack, "burst")? == before,
        "an address changed its claim"
    );
    Ok(format!("{} grants as before", before.len()))
}

/// The image of the only Deployment.
fn image(stack: &Stack) -> anyhow::Result<String> {
    let deployment = the_deployment(stack)?;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    Ok(image.as_str().context("a container without an image")?.to_owned())
}

fn deleted(stack: &Stack, candidate: &Candidate) -> Proof {
    let written = candidate.written();
    let there = written.existing(stack, COMPONENTS)?.len();
    let args = ["delete", "--ipam", "metal3", "--include-crd", "--include-namespace"];
    written.clusterctl(stack, &[], &args)?;
    until(LONG, "the end of kinds and namespace", || {
        let left = stack.kubectl(&["get", "customresourcedefinitions,namespaces", "--output=name"])?;
        Ok((!left.contains("ipam.metal3.io") && !left.contains(NAMESPACE)).then_some(()))
    })?;
    let roles = delete_roles(stack, "ipam-metal3")?;
    let left = [written.existing(stack, COMPONENTS)?, labelled(stack, "ipam-metal3")?].concat();
    ensure!(left.is_empty(), "clusterctl left {left:?}");
    Ok(format!(
        "of {there} objects none is left, after the command for {roles} roles of the cluster"
    ))
}

fn all_granted(stack: &Stack, namespace: &TestNamespace<'_>, count: usize) -> anyhow::Result<BTreeMap<String, String>> {
    let mut last = 0;
    until(LONG, &format!("{count} grants"), || {
        let held = grants(stack, &namespace.name)?;
        last = held.len();
        Ok((held.len() == count).then_some(held))
    })
    .with_context(|| format!("{last} claims had an address"))
}

/// Signals the process of each container of the manager.
fn signal_all(stack: &Stack, signal: &str) -> anyhow::Result<()> {
    let pods = list(stack, NAMESPACE, "pods")?;
    let id = |pod: &Value| {
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str()?;
        id.strip_prefix("process://").map(str::to_owned)
    };
    let processes: Vec<String> = pods.iter().filter_map(id).collect();
    ensure!(!processes.is_empty(), "no process to signal");
    let signal = format!("-{signal}");
    let mut arguments = vec![signal.as_str()];
    arguments.extend(processes.iter().map(String::as_str));
    stack.run("kill", &arguments, None).map(drop)
}
