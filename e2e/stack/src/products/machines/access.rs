//! The claim about what the manager of clusters and machines may do.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use metal3_ledger::{Grants, Log, Target};
use serde_json::Value;

use super::Proof;
use crate::claims::world::World;
use crate::products::access::LOOKED_UP;

/// Granted, and not needed by the life of one cluster on a calm day: what needs it instead. Each is struck in the tests
/// of the room that declares it.
const ELSEWHERE: Explained = &[
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
        "get metal3clusters.infrastructure.cluster.x-k8s.io",
        "the claim on an endpoint whose Metal3Cluster was forced to go",
    ),
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
    ("list awsmanagedcontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("watch awsmanagedcontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("list k0smotroncontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("watch k0smotroncontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("list kamajicontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("watch kamajicontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("list kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("watch kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("list rke2controlplanes.controlplane.cluster.x-k8s.io", SOURCE),
    ("watch rke2controlplanes.controlplane.cluster.x-k8s.io", SOURCE),
];

const SOURCE: &str = "a Metal3Cluster that is told no endpoint, beside a control plane of that kind";

/// Grants, as texts, and why each was not used.
type Explained = &'static [(&'static str, &'static str)];

/// A manager, as far as it is somebody who asks.
#[derive(Debug)]
pub(crate) struct Account {
    /// The user, as the audit log has it.
    pub(crate) user: &'static str,
    /// What kubectl is asked for its two roles.
    pub(crate) roles: &'static [&'static str],
    /// What it was granted and did not use.
    pub(crate) elsewhere: Explained,
}

/// The manager of clusters and machines.
pub(crate) const MACHINES: Account = Account {
    user: "system:serviceaccount:capm3-system:capm3-manager",
    roles: &[
        "clusterroles,roles",
        "--all-namespaces",
        "--selector=cluster.x-k8s.io/provider=infrastructure-metal3",
    ],
    elsewhere: ELSEWHERE,
};

pub(super) fn granted_is_used(world: &World, _: &Path) -> Proof {
    let used = used(world, &MACHINES, &[])?;
    let known = MACHINES.elsewhere.iter().map(|(known, _)| *known);
    let obsolete: Vec<&str> = known
        .filter(|known| used.unused.iter().all(|target| target != known))
        .collect();
    ensure!(obsolete.is_empty(), "explained and used: {obsolete:?}");
    for (target, why) in MACHINES.elsewhere {
        println!("       granted and not used: {target}: {why}");
    }
    Ok(format!(
        "{} grants, {} of them explained, all others used; {} requests, none forbidden",
        used.granted,
        used.unused.len(),
        used.requests
    ))
}

/// What somebody did with what was granted.
pub(crate) struct Used {
    /// How much it was.
    pub(crate) granted: usize,
    /// What of it was not used; each is explained.
    pub(crate) unused: Vec<String>,
    pub(crate) requests: u64,
}

/// What the audit log says of somebody. An error when a grant is not used and not explained, or something was asked for
/// that is not granted, or was refused, but for refusals that are known.
pub(crate) fn used(world: &World, account: &Account, refused: &[&str]) -> anyhow::Result<Used> {
    let text = fs::read_to_string(world.places.log("audit"))?;
    let tally = Log::read(&text)?.of(account.user);
    let mut granted = Grants::default();
    for role in roles(world, account.roles)? {
        granted.add(&role)?;
    }
    let texts = |targets: Vec<&Target>| -> Vec<String> { targets.iter().map(ToString::to_string).collect() };
    let is_seen = |target: &&Target| !target.resource.ends_with(LOOKED_UP);
    let unused = texts(granted.unused(&tally).filter(is_seen).collect());
    let surprising = |targets: Vec<&Target>| -> Vec<String> {
        let told = texts(targets).into_iter();
        told.filter(|target| !refused.contains(&target.as_str())).collect()
    };
    let missing = surprising(granted.missing(&tally).collect());
    let forbidden = surprising(tally.forbidden.iter().collect());
    let unexplained: Vec<&String> = unused
        .iter()
        .filter(|target| account.elsewhere.iter().all(|(known, _)| known != target))
        .collect();
    ensure!(
        unexplained.is_empty() && missing.is_empty() && forbidden.is_empty(),
        "{}: granted, not used and not explained: {unexplained:?}; used and not granted: {missing:?}; forbidden: \
         {forbidden:?}",
        account.user
    );
    Ok(Used {
        granted: granted.len(),
        unused,
        requests: tally.asked.values().sum(),
    })
}

/// The roles, read back from the cluster that they were installed into.
fn roles(world: &World, which: &[&str]) -> anyhow::Result<Vec<Value>> {
    let mut words = vec!["get", "--output=json"];
    words.extend(which);
    let mut list: Value = serde_json::from_str(&world.kubectl(&words)?)?;
    let roles = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    // What users fill with what they grant is there, too, where something is read of other providers.
    let own = roles.iter().filter(|role| role["aggregationRule"].is_null()).count();
    ensure!(own == 2, "the release brought {own} roles of its own");
    Ok(roles)
}
