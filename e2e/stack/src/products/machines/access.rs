//! The claim about what the manager of clusters and machines may do.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use metal3_ledger::{Grants, Log, Target};
use serde_json::Value;

use super::Proof;
use crate::claims::world::World;

const ACCOUNT: &str = "system:serviceaccount:capm3-system:capm3-manager";

/// Granted, and not needed by the life of one cluster on a calm day: what needs it instead. Each is struck in the tests
/// of the room that declares it.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "create ipaddressclaims.ipam.cluster.x-k8s.io",
        "a data template that names a pool of another provider",
    ),
    (
        "delete ipaddressclaims.ipam.cluster.x-k8s.io",
        "the release of such a claim",
    ),
    (
        "get ipaddressclaims.ipam.cluster.x-k8s.io",
        "a lost answer to its creation",
    ),
    ("patch ipaddressclaims.ipam.cluster.x-k8s.io", "its finalizer"),
    ("get ipclaims.ipam.metal3.io", "a lost answer to a creation"),
    ("get metal3datas.infrastructure.cluster.x-k8s.io", "the same"),
    (
        "delete metal3clusters.infrastructure.cluster.x-k8s.io",
        "a second Metal3Cluster of a Cluster that goes, which nobody owns",
    ),
    ("patch events", "what happens again to the same object"),
    (
        "create subjectaccessreviews.authorization.k8s.io",
        "whoever reads metrics",
    ),
    ("create tokenreviews.authentication.k8s.io", "whoever reads metrics"),
];

pub(super) fn granted_is_used(world: &World, _: &Path) -> Proof {
    let text = fs::read_to_string(world.places.log("audit"))?;
    let tally = Log::read(&text)?.of(ACCOUNT);
    let mut granted = Grants::default();
    for role in roles(world)? {
        granted.add(&role)?;
    }
    let texts = |targets: Vec<&Target>| -> Vec<String> { targets.iter().map(ToString::to_string).collect() };
    let unused = texts(granted.unused(&tally).collect());
    let missing = texts(granted.missing(&tally).collect());
    let forbidden = texts(tally.forbidden.iter().collect());
    let unexplained: Vec<&String> = unused
        .iter()
        .filter(|target| ELSEWHERE.iter().all(|(known, _)| known != target))
        .collect();
    let obsolete: Vec<&str> = ELSEWHERE
        .iter()
        .map(|(known, _)| *known)
        .filter(|known| unused.iter().all(|target| target != known))
        .collect();
    ensure!(
        unexplained.is_empty() && missing.is_empty() && forbidden.is_empty() && obsolete.is_empty(),
        "granted, not used and not explained: {unexplained:?}; explained and used: {obsolete:?}; used and not granted: \
         {missing:?}; forbidden: {forbidden:?}"
    );
    let requests: u64 = tally.asked.values().sum();
    for (target, why) in ELSEWHERE {
        println!("       granted and not used: {target}: {why}");
    }
    Ok(format!(
        "{} grants, {} of them explained, all others used; {requests} requests, none forbidden",
        granted.len(),
        ELSEWHERE.len()
    ))
}

/// The roles, read back from the cluster that they were installed into.
fn roles(world: &World) -> anyhow::Result<Vec<Value>> {
    let selector = "--selector=cluster.x-k8s.io/provider=infrastructure-metal3";
    let words = [
        "get",
        "clusterroles,roles",
        "--all-namespaces",
        selector,
        "--output=json",
    ];
    let mut list: Value = serde_json::from_str(&world.kubectl(&words)?)?;
    let roles = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    ensure!(roles.len() == 2, "the release brought {} roles", roles.len());
    Ok(roles)
}
