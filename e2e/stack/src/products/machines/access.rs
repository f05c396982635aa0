//! The claim about the permissions of the manager of clusters and machines.

use std::fs;

use anyhow::ensure;
use metal3_ledger::{Grants, Log, Target};
use serde_json::Value;

use super::Candidate;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::access::is_admission_only;

/// Grants that the life cycle of one cluster does not use, and their purpose. The tests of the package that declares a
/// grant use it.
const UNUSED: Explained = &[
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
        "a lost response to its creation",
    ),
    ("patch ipaddressclaims.ipam.cluster.x-k8s.io", "its finalizer"),
    ("get ipclaims.ipam.metal3.io", "a lost response to a creation"),
    ("get metal3datas.infrastructure.cluster.x-k8s.io", "the same"),
    ("get machinesets.cluster.x-k8s.io", REUSE),
    ("get machinedeployments.cluster.x-k8s.io", REUSE),
    (
        "get metal3clusters.infrastructure.cluster.x-k8s.io",
        "the claim on an endpoint whose Metal3Cluster was force-deleted",
    ),
    (
        "delete metal3clusters.infrastructure.cluster.x-k8s.io",
        "a second Metal3Cluster of a Cluster that is deleted, without an owner",
    ),
    (
        "delete baremetalhosts.metal3.io",
        "checked by the admission of a removed owner, which a Go manager up to 1.13 wrote; no host is deleted",
    ),
    (
        "patch metal3machinetemplates/status.infrastructure.cluster.x-k8s.io",
        "a template of an autoscaled MachineDeployment",
    ),
    ("get metal3remediations.infrastructure.cluster.x-k8s.io", REMEDIATION),
    ("patch metal3remediations.infrastructure.cluster.x-k8s.io", REMEDIATION),
    (
        "patch metal3remediations/status.infrastructure.cluster.x-k8s.io",
        REMEDIATION,
    ),
    ("get clusters.cluster.x-k8s.io", REMEDIATION),
    ("get machines.cluster.x-k8s.io", REMEDIATION),
    ("patch machines/status.cluster.x-k8s.io", REMEDIATION),
    ("patch events", "a repeated event about the same object"),
    (
        "create subjectaccessreviews.authorization.k8s.io",
        "a client that reads metrics",
    ),
    (
        "create tokenreviews.authentication.k8s.io",
        "a client that reads metrics",
    ),
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

const REMEDIATION: &str = "a machine that a MachineHealthCheck considers unhealthy";
const SOURCE: &str = "a Metal3Cluster without an endpoint, with a control plane of that kind";

const REUSE: &str = "a machine that is deleted while a template of its namespace sets nodeReuse";

/// Grants with the reason why they are not used.
type Explained = &'static [(&'static str, &'static str)];

/// A manager as a client of the API server.
#[derive(Debug)]
pub(crate) struct Account {
    /// The user in the audit log.
    pub(crate) user: &'static str,
    /// The kubectl arguments that select its roles.
    pub(crate) roles: &'static [&'static str],
    /// Grants that it does not use.
    pub(crate) unused_grants: Explained,
}

/// The manager of clusters and machines.
pub(crate) const MACHINES: Account = Account {
    user: "system:serviceaccount:capm3-system:capm3-manager",
    roles: &[
        "clusterroles,roles",
        "--all-namespaces",
        "--selector=cluster.x-k8s.io/provider=infrastructure-metal3",
    ],
    unused_grants: UNUSED,
};

pub(super) fn grants_are_used(stack: &Stack, _: &Candidate<'_>) -> Proof {
    let used = used(stack, &MACHINES, &[])?;
    let known = MACHINES.unused_grants.iter().map(|(known, _)| *known);
    let obsolete: Vec<&str> = known
        .filter(|known| used.unused.iter().all(|target| target != known))
        .collect();
    ensure!(obsolete.is_empty(), "explained and used: {obsolete:?}");
    for (target, why) in MACHINES.unused_grants {
        println!("       granted and not used: {target}: {why}");
    }
    Ok(format!(
        "{} grants, {} of them explained, all others used; {} requests, none forbidden",
        used.granted,
        used.unused.len(),
        used.requests
    ))
}

/// The use of grants.
pub(crate) struct Used {
    pub(crate) granted: usize,
    /// Unused grants; each is explained.
    pub(crate) unused: Vec<String>,
    pub(crate) requests: u64,
}

/// Evaluates the audit log of a manager. Fails for an unused grant without explanation, for a request without grant, and for
/// a forbidden request that is not listed in `refused`.
pub(crate) fn used(stack: &Stack, account: &Account, refused: &[&str]) -> anyhow::Result<Used> {
    let text = fs::read_to_string(stack.places.log("audit"))?;
    let counts = Log::read(&text)?.counts_of(account.user);
    let mut granted = Grants::default();
    for role in roles(stack, account.roles)? {
        granted.add(&role)?;
    }
    let texts = |targets: Vec<&Target>| -> Vec<String> { targets.iter().map(ToString::to_string).collect() };
    let is_audited = |target: &&Target| !is_admission_only(target);
    let unused = texts(granted.unused(&counts).filter(is_audited).collect());
    let unexpected = |targets: Vec<&Target>| -> Vec<String> {
        let texts_of = texts(targets).into_iter();
        texts_of.filter(|target| !refused.contains(&target.as_str())).collect()
    };
    let missing = unexpected(granted.missing(&counts).collect());
    let forbidden = unexpected(counts.forbidden.iter().collect());
    let unexplained: Vec<&String> = unused
        .iter()
        .filter(|target| account.unused_grants.iter().all(|(known, _)| known != target))
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
        requests: counts.requests.values().sum(),
    })
}

fn roles(stack: &Stack, which: &[&str]) -> anyhow::Result<Vec<Value>> {
    let mut args = vec!["get", "--output=json"];
    args.extend(which);
    let mut list: Value = serde_json::from_str(&stack.kubectl(&args)?)?;
    let roles = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
    // Aggregated roles that users fill are listed, too.
    let own = roles.iter().filter(|role| role["aggregationRule"].is_null()).count();
    ensure!(own == 2, "the release has {own} roles of its own");
    Ok(roles)
}
