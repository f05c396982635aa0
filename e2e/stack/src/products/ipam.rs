//! The claims about IP address management.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use super::load::{claim, grants, list, name, pool};
use super::release::{Candidate, FIRST, NEXT};
use super::{Claim, Proof, access, empty_root, repair, rotation, self_managed};
use crate::claims::world::{Room, World};
use crate::wait::{Stopwatch, until};

pub(super) const NAMESPACE: &str = "metal3-ipam-system";
/// A burst of claims on two cores that also run the API server.
pub(super) const LONG: Duration = Duration::from_secs(180);
const BURST: usize = 500;

macro_rules! claims {
    ($($name:ident: $proof:expr;)+) => {
        &[$(Claim { name: stringify!($name), proof: $proof },)+]
    };
}

/// In this order: each finds the cluster as the one before has left it.
pub(super) const CLAIMS: &[Claim] = claims! {
    clusterctl_init_installs_the_release_and_it_becomes_available: install;
    its_namespace_admits_its_pods_and_no_less_restricted_ones: access::restricted;
    its_program_runs_alone_in_an_empty_sealed_root_and_resolves_names: empty_root::runs;
    webhooks_fill_in_and_refuse_with_field_and_cure: webhooks;
    kubectl_get_shows_upstreams_columns: columns;
    claims_of_both_kinds_get_addresses: both_kinds;
    a_full_pool_says_so_and_grants_when_an_address_frees: full_pool;
    killing_the_manager_amid_a_burst_of_claims_loses_nothing: killed;
    an_address_that_cannot_be_had_is_refused_with_the_reason: repair::refused_twice;
    a_certificate_is_rotated_under_load_without_a_failed_request: rotation::rotated;
    an_address_object_that_somebody_removed_comes_back: repair::removed;
    address_objects_without_a_claim_are_held_until_confirmed: repair::orphans;
    metrics_are_shown_to_those_who_may_see_them: access::metrics;
    what_happened_twice_is_told_as_a_series: repair::told_as_series;
    clusterctl_upgrade_keeps_every_address: upgraded;
    what_is_granted_is_used_and_nothing_was_forbidden: access::granted_is_used;
    clusterctl_delete_removes_the_release: deleted;
    without_cert_manager_it_makes_its_certificates_and_webhooks_answer: self_managed::installed;
    a_spoiled_certificate_is_made_anew: self_managed::spoiled;
    what_the_form_without_cert_manager_grants_is_used_and_nothing_was_forbidden: access::granted_is_used;
};

fn install(world: &World, candidate: &Candidate) -> Proof {
    candidate.publish(world, FIRST)?;
    let watch = Stopwatch::start();
    world.run("clusterctl", &["init", "--ipam", "metal3", "--wait-providers"], None)?;
    let took = watch.elapsed();
    let deployment = the_deployment(world)?;
    let (wanted, there) = (
        &deployment["spec"]["replicas"],
        &deployment["status"]["availableReplicas"],
    );
    ensure!(wanted == there, "{there} of {wanted} replicas are available");
    Ok(format!("{wanted} replicas, {:.1} s", took.as_secs_f64()))
}

fn webhooks(world: &World, _: &Candidate) -> Proof {
    answers(&world.room("admission")?)
}

/// Webhooks of both sorts answer.
pub(super) fn answers(room: &Room<'_>) -> Proof {
    let mut reversed = pool("reversed", "10.64.0.20", "10.64.0.10");
    let refused = room.apply(&reversed).err().context("a reversed range was admitted")?;
    ensure!(format!("{refused:#}").contains("spec.pools[0]"), "{refused:#}");
    reversed["spec"]["pools"][0]["end"] = json!("10.64.0.30");
    room.apply(&reversed)?;
    let strategy = room.get("ippool/reversed")?["spec"]["allocationStrategy"].clone();
    ensure!(strategy == "sequential", "allocationStrategy is {strategy}");
    let renamed = json!({"spec": {"namePrefix": "other"}}).to_string();
    let refused = room
        .kubectl(&["patch", "ippool", "reversed", "--type=merge", "--patch", &renamed])
        .err()
        .context("namePrefix could be changed")?;
    ensure!(format!("{refused:#}").contains("spec.namePrefix"), "{refused:#}");
    let nameless = json!({"apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPClaim", "metadata": {"name": "x"},
        "spec": {"pool": {"name": ""}}});
    let refused = room
        .apply(&nameless)
        .err()
        .context("a claim without a pool was admitted")?;
    Ok(format!("{refused:#}").lines().next().unwrap_or_default().to_owned())
}

fn columns(world: &World, _: &Candidate) -> Proof {
    let room = world.room("columns")?;
    room.apply(&pool("shown", "10.64.0.10", "10.64.0.20"))?;
    room.apply(&claim("shown", 0))?;
    room.until("ipclaim/shown-claim-0", "granted", has_address)?;
    let mut seen = Vec::new();
    for (kind, wanted) in [
        ("ippool", "NAME CLUSTER AGE"),
        ("ipclaim", "NAME AGE"),
        ("ipaddresses.ipam.metal3.io", "NAME AGE"),
    ] {
        let table = room.kubectl(&["get", kind])?;
        let header: Vec<&str> = table.lines().next().unwrap_or_default().split_whitespace().collect();
        ensure!(header.join(" ") == wanted, "{kind}: {header:?}");
        seen.push(format!("{kind}: {wanted}"));
    }
    Ok(seen.join("; "))
}

fn both_kinds(world: &World, _: &Candidate) -> Proof {
    let room = world.room("kinds")?;
    room.apply(&pool("both", "10.64.1.10", "10.64.1.40"))?;
    for number in 0..4 {
        room.apply(&claim("both", number))?;
    }
    let held = all_granted(world, &room, 4)?;
    Ok(held.into_values().collect::<Vec<_>>().join(" "))
}

fn full_pool(world: &World, _: &Candidate) -> Proof {
    let room = world.room("full")?;
    room.apply(&pool("full", "10.64.2.10", "10.64.2.10"))?;
    room.apply(&claim("full", 0))?;
    room.until("ipclaim/full-claim-0", "granted", has_address)?;
    room.apply(&claim("full", 2))?;
    let waiting = room.until("ipclaim/full-claim-2", "told that the pool is full", |claim| {
        claim["status"]["errorMessage"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    })?;
    room.kubectl(&["delete", "ipclaim", "full-claim-0", "--timeout=60s"])?;
    let granted = room.until("ipclaim/full-claim-2", "granted", has_address)?;
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

fn killed(world: &World, _: &Candidate) -> Proof {
    let room = world.room("burst")?;
    // Paused until all claims are there: webhooks cannot admit a claim while nobody runs.
    let mut resting = pool("burst", "10.65.0.1", "10.65.255.254");
    resting["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    room.apply(&resting)?;
    let all: Vec<Value> = (0..BURST).map(|number| claim("burst", number)).collect();
    room.create_all(&json!({"apiVersion": "v1", "kind": "List", "items": all}))?;
    room.kubectl(&["annotate", "ippool", "burst", "cluster.x-k8s.io/paused-"])?;
    let watch = Stopwatch::start();
    let mut seen = Vec::new();
    for _ in 0..2 {
        let before = seen.last().copied().unwrap_or_default();
        let some = until(LONG, "more addresses", || {
            let granted = list(world, "burst", "ipaddresses.ipam.metal3.io")?.len();
            Ok((granted > before).then_some(granted))
        })?;
        kill_all(world)?;
        // Counted after the kill: what was granted by then is all that those processes did.
        let granted = list(world, "burst", "ipaddresses.ipam.metal3.io")?.len();
        ensure!(
            granted < BURST / 2,
            "the burst was over when the replicas were killed: nothing is proved"
        );
        seen.push(some);
    }
    all_granted(world, &room, BURST)?;
    room.stays();
    Ok(format!(
        "{BURST} claims, every replica killed when {seen:?} of {} IPClaims had an address, all granted once after {:.1} s",
        BURST / 2,
        watch.elapsed().as_secs_f64()
    ))
}

fn upgraded(world: &World, candidate: &Candidate) -> Proof {
    let before = grants(world, "burst")?;
    candidate.publish(world, NEXT)?;
    world.run(
        "clusterctl",
        &["upgrade", "apply", "--ipam", "metal3:v1.15.1", "--wait-providers"],
        None,
    )?;
    let image = the_deployment(world)?["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    ensure!(image.as_str().is_some_and(|image| image.ends_with(NEXT)), "{image}");
    let room = world.room("upgraded")?;
    room.apply(&pool("after", "10.64.4.10", "10.64.4.20"))?;
    room.apply(&claim("after", 0))?;
    room.until("ipclaim/after-claim-0", "granted", has_address)?;
    room.stays();
    ensure!(
        before.len() == BURST && grants(world, "burst")? == before,
        "an address changed hands"
    );
    Ok(format!("{} grants as before", before.len()))
}

fn deleted(world: &World, _: &Candidate) -> Proof {
    world.run(
        "clusterctl",
        &["delete", "--ipam", "metal3", "--include-crd", "--include-namespace"],
        None,
    )?;
    until(LONG, "the end of kinds and namespace", || {
        let left = world.kubectl(&["get", "customresourcedefinitions,namespaces", "--output=name"])?;
        Ok((!left.contains("ipam.metal3.io") && !left.contains(NAMESPACE)).then_some(()))
    })?;
    Ok(String::new())
}

pub(super) fn has_address(claim: &Value) -> bool {
    claim["status"]["address"]["name"]
        .as_str()
        .is_some_and(|name| !name.is_empty())
}

fn all_granted(world: &World, room: &Room<'_>, count: usize) -> anyhow::Result<BTreeMap<String, String>> {
    let mut last = 0;
    until(LONG, &format!("{count} grants"), || {
        let held = grants(world, &room.name)?;
        last = held.len();
        Ok((held.len() == count).then_some(held))
    })
    .with_context(|| format!("{last} claims had an address"))
}

pub(super) fn the_deployment(world: &World) -> anyhow::Result<Value> {
    let deployments = list(world, NAMESPACE, "deployments")?;
    ensure!(
        deployments.len() == 1,
        "{} Deployments in {NAMESPACE}",
        deployments.len()
    );
    deployments.into_iter().next().context("no Deployment")
}

/// `kill -9` of every container of the manager.
fn kill_all(world: &World) -> anyhow::Result<()> {
    let mut killed = 0;
    for pod in list(world, NAMESPACE, "pods")? {
        let id = pod["status"]["containerStatuses"][0]["containerID"]
            .as_str()
            .unwrap_or_default();
        if let Some(process) = id.strip_prefix("process://") {
            world.run("kill", &["-9", process], None).with_context(|| name(&pod))?;
            killed += 1;
        }
    }
    if killed == 0 {
        bail!("no process to kill");
    }
    Ok(())
}
