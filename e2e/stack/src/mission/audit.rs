//! What the three managers of the release may do, against what they did in the mission.

use metal3_ledger::Log;

use super::{Part, Scene, foreign, guests};
use crate::claims::world::World;
use crate::products::Proof;
use crate::products::machines::access::{Account, MACHINES, used};

/// The manager of addresses. Its own suite uses all of it.
const ADDRESSES: Account = Account {
    user: "system:serviceaccount:metal3-ipam-system:ipam-manager",
    roles: &[
        "clusterroles,roles",
        "--all-namespaces",
        "--selector=cluster.x-k8s.io/provider=ipam-metal3",
    ],
    elsewhere: &[
        ("create ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("delete ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("get ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("patch ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("get ipaddressclaims.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("patch ipaddressclaims.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("patch ipaddressclaims/status.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("get ipaddresses.ipam.metal3.io", "a lost answer to its creation"),
        ("get ipclaims.ipam.metal3.io", "a write that does not show"),
        ("patch events", AGAIN),
        ("create subjectaccessreviews.authorization.k8s.io", METRICS),
        ("create tokenreviews.authentication.k8s.io", METRICS),
    ],
};

/// The manager of hosts.
const HOSTS: Account = Account {
    user: "system:serviceaccount:baremetal-operator-system:baremetal-operator-controller-manager",
    roles: &[
        "--namespace=baremetal-operator-system",
        "clusterrole/baremetal-operator-manager-role",
        "role/baremetal-operator-leader-election-role",
    ],
    elsewhere: &[
        ("get hardwaredata.metal3.io", "a lost answer to its creation"),
        ("patch hardwaredata.metal3.io", "a machine that is inspected again"),
        ("patch events", AGAIN),
        ("create subjectaccessreviews.authorization.k8s.io", METRICS),
        ("create tokenreviews.authentication.k8s.io", METRICS),
    ],
};

/// A manager of the release, and the lease of whoever leads.
pub(super) struct Manager {
    pub(super) account: &'static Account,
    pub(super) namespace: &'static str,
    pub(super) lease: &'static str,
}

pub(super) static MANAGERS: [Manager; 3] = [
    Manager {
        account: &MACHINES,
        namespace: "capm3-system",
        lease: "controller-leader-election-capm3",
    },
    Manager {
        account: &ADDRESSES,
        namespace: "metal3-ipam-system",
        lease: "controller-leader-election-ipam-capm3",
    },
    Manager {
        account: &HOSTS,
        namespace: "baremetal-operator-system",
        lease: "baremetal-operator",
    },
];

const OTHER_CLAIMS: &str = "claims of Cluster API's kind, of which a cluster by this template has none";
const AGAIN: &str = "what happens again to the same object";
const METRICS: &str = "whoever reads metrics";

/// What was refused in a part, and why that is as it should be.
const REFUSED: &[(Part, &str, &str)] = &[
    (
        Part::Upgrade,
        "get leases.coordination.k8s.io",
        "clusterctl delete takes the roles away before the Pods, which try to renew until they end",
    ),
    (
        Part::Foreign,
        "list witnessclusters.infrastructure.cluster.x-k8s.io",
        "a Metal3Cluster of another infrastructure would learn the endpoint earlier there, and does without",
    ),
];

/// Each grant is used or explained, and nothing was asked for that is not granted.
pub(super) fn granted_is_used(scene: &Scene<'_>) -> Proof {
    let (mut texts, mut wrong) = (Vec::new(), Vec::new());
    let known = REFUSED.iter().filter(|(part, ..)| scene.parts.contains(part));
    let refused: Vec<&str> = known
        .map(|(_, target, why)| {
            println!("       may be refused: {target}: {why}");
            *target
        })
        .collect();
    for account in MANAGERS.iter().map(|manager| manager.account) {
        let name = account.user.rsplit(':').next().unwrap_or_default();
        match used(scene.world, account, &refused) {
            Ok(used) => texts.push(format!(
                "{name}: {} grants, {} explained, {} requests",
                used.granted,
                used.unused.len(),
                used.requests
            )),
            Err(error) => wrong.push(format!("{error:#}")),
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{}", wrong.join("\n       "));
    Ok(texts.join("; "))
}

/// Where not all of the release is put to use: nothing was asked for that is not granted, but for the lists of kinds of other
/// providers, from which a Metal3Cluster would learn the endpoint earlier, and without which it does.
pub(super) fn nothing_was_forbidden(world: &World) -> anyhow::Result<()> {
    let log = Log::read(&std::fs::read_to_string(world.places.log("audit"))?)?;
    for manager in &MANAGERS {
        let mut forbidden = log.of(manager.account.user).forbidden;
        forbidden.retain(|target| {
            let is_witness = foreign::provider::RESOURCE == format!("{}.{}", target.resource, target.group);
            target.verb != "list" || !(is_witness || guests::has_resource(&target.group, &target.resource))
        });
        anyhow::ensure!(forbidden.is_empty(), "{}: {forbidden:?}", manager.account.user);
    }
    Ok(())
}
