//! Compares the permissions of the three managers with their requests in the suite.

use metal3_ledger::{Log, Target};

use super::conflicts;
use super::env::{Part, TestEnv};
use super::foreign::provider;
use super::other_providers;
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::machines::access::{Account, MACHINES, used};

/// The manager of addresses. Its own suite uses each permission.
const ADDRESSES: Account = Account {
    user: "system:serviceaccount:metal3-ipam-system:ipam-manager",
    roles: &[
        "clusterroles,roles",
        "--all-namespaces",
        "--selector=cluster.x-k8s.io/provider=ipam-metal3",
    ],
    unused_grants: &[
        ("create ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("delete ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("get ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("patch ipaddresses.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("get ipaddressclaims.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("patch ipaddressclaims.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        ("patch ipaddressclaims/status.ipam.cluster.x-k8s.io", OTHER_CLAIMS),
        (
            "delete ippools.ipam.metal3.io",
            "checked when a Cluster becomes the owner of a pool, where permissions of owner references are enforced",
        ),
        ("get ipaddresses.ipam.metal3.io", "a lost response to its creation"),
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
    unused_grants: &[
        ("get hardwaredata.metal3.io", "a lost response to its creation"),
        ("patch hardwaredata.metal3.io", "a machine that is inspected again"),
        ("delete hardwaredata.metal3.io", OWNER),
        ("delete dataimages.metal3.io", OWNER),
        ("delete hostfirmwarecomponents.metal3.io", OWNER),
        ("delete hostfirmwaresettings.metal3.io", OWNER),
        ("delete hostupdatepolicies.metal3.io", OWNER),
        ("get bmceventsubscriptions.metal3.io", SUBSCRIPTIONS),
        ("patch bmceventsubscriptions.metal3.io", SUBSCRIPTIONS),
        ("patch bmceventsubscriptions/status.metal3.io", SUBSCRIPTIONS),
        ("get dataimages.metal3.io", DATA_IMAGES),
        ("patch dataimages.metal3.io", DATA_IMAGES),
        ("patch dataimages/status.metal3.io", DATA_IMAGES),
        ("create preprovisioningimages.metal3.io", AGENT_IMAGES),
        ("get preprovisioningimages.metal3.io", AGENT_IMAGES),
        ("patch preprovisioningimages.metal3.io", AGENT_IMAGES),
        ("patch preprovisioningimages/status.metal3.io", AGENT_IMAGES),
        ("get hostfirmwarecomponents.metal3.io", COMPONENTS),
        ("patch hostfirmwarecomponents.metal3.io", COMPONENTS),
        ("patch hostfirmwarecomponents/status.metal3.io", COMPONENTS),
        ("get hostfirmwaresettings.metal3.io", SETTINGS),
        ("patch hostfirmwaresettings.metal3.io", SETTINGS),
        ("patch hostfirmwaresettings/status.metal3.io", SETTINGS),
        ("create firmwareschemas.metal3.io", SETTINGS),
        ("get hostupdatepolicies.metal3.io", POLICY),
        ("patch hostupdatepolicies.metal3.io", POLICY),
        ("get baremetalswitches.metal3.io", SWITCHES),
        ("watch baremetalswitches.metal3.io", SWITCHES),
        ("patch baremetalswitches/status.metal3.io", SWITCHES),
        ("list ironics.ironic.metal3.io", IRONIC_RESOURCE),
        ("watch ironics.ironic.metal3.io", IRONIC_RESOURCE),
        ("patch events", AGAIN),
        ("create subjectaccessreviews.authorization.k8s.io", METRICS),
        ("create tokenreviews.authentication.k8s.io", METRICS),
    ],
};

/// A manager of the release and its leader election lease.
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

const OTHER_CLAIMS: &str = "claims of Cluster API's kind; a cluster of this template has none";
const AGAIN: &str = "a repeated event about the same object";
const OWNER: &str = "checked when a host becomes an owner, where permissions of owner references are enforced";
const COMPONENTS: &str = "a host with HostFirmwareComponents";
const SETTINGS: &str = "a host with HostFirmwareSettings";
const POLICY: &str = "a host with a HostUpdatePolicy";
const IRONIC_RESOURCE: &str = "an Ironic that IRONIC_NAME names";
const AGENT_IMAGES: &str = "--build-preprov-image, or an image of the Go manager that is deleted after a switch";
const DATA_IMAGES: &str = "a host with a DataImage";
const SWITCHES: &str = "IRONIC_NETWORKING_ENABLED";
const SUBSCRIPTIONS: &str = "a host with event subscriptions";
const ENDPOINT_TEMPLATE: &str =
    "the right to the template of an endpoint is a user's to grant, and is missing at first";
const METRICS: &str = "a client that reads metrics";

/// Requests that are rejected in a part, and the reason.
const REFUSED: &[(Part, &str, &str)] = &[
    (
        Part::Upgrade,
        "get leases.coordination.k8s.io",
        "clusterctl delete removes the roles before the Pods, which renew their leases until they end",
    ),
    (Part::Topology, "list configmaps", ENDPOINT_TEMPLATE),
    (Part::Topology, "watch configmaps", ENDPOINT_TEMPLATE),
    (
        Part::Foreign,
        "list testclusters.infrastructure.cluster.x-k8s.io",
        "a Metal3Cluster of another infrastructure reads the endpoint earlier with this permission, and works without it",
    ),
];

/// Requests of a part for what does not exist, and the reason.
const MISSING: &[(Part, &str, &str)] = &[
    (
        Part::Topology,
        "get metal3machinetemplates.infrastructure.cluster.x-k8s.io",
        "the topology controller deletes the templates of a deleted group, and a machine reads its template before its image is removed",
    ),
    (
        Part::Topology,
        "get baremetalhosts.metal3.io",
        "the host of the lost zone is deleted, and its machine reads it once more before it goes on without it",
    ),
];

/// Each grant is used or explained, and no request was forbidden.
pub(super) fn grants_are_used(env: &TestEnv<'_>) -> Proof {
    let (mut texts, mut wrong) = (Vec::new(), Vec::new());
    let known = REFUSED.iter().filter(|(part, ..)| env.parts.contains(part));
    let refused: Vec<&str> = known
        .map(|(_, target, why)| {
            println!("       may be forbidden: {target}: {why}");
            *target
        })
        .collect();
    for account in MANAGERS.iter().map(|manager| manager.account) {
        let name = account.user.rsplit(':').next().unwrap_or_default();
        match used(env.stack, account, &refused) {
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

/// No manager asked for an object that does not exist: an administrator's error rates count such answers. A Lease does not exist
/// before its first leader, and a list of a kind that is not served asks whether it is.
pub(super) fn nothing_is_asked_for_that_does_not_exist(env: &TestEnv<'_>) -> Proof {
    let log = Log::read(&std::fs::read_to_string(env.stack.places.log("audit"))?)?;
    let (mut wrong, mut requests) = (Vec::new(), 0_u64);
    let known = MISSING.iter().filter(|(part, ..)| env.parts.contains(part));
    let missing: Vec<&str> = known
        .map(|(_, target, why)| {
            println!("       may not exist: {target}: {why}");
            *target
        })
        .collect();
    for account in MANAGERS.iter().map(|manager| manager.account) {
        let counts = log.counts_of(account.user);
        requests = requests.saturating_add(counts.requests.values().sum());
        let is_expected = |target: &Target| {
            target.verb == "list" || target.resource == "leases" || missing.contains(&target.to_string().as_str())
        };
        let unexpected = counts.not_found.iter().filter(|(target, _)| !is_expected(target));
        wrong.extend(unexpected.map(|(target, count)| format!("{}: {count} x {target}", account.user)));
    }
    anyhow::ensure!(wrong.is_empty(), "{}", wrong.join("\n       "));
    anyhow::ensure!(requests > 0, "no manager sent a request");
    Ok(format!("{requests} requests"))
}

/// No write was refused because of another one of this program.
pub(super) fn no_write_conflicts_with_one_of_this_program(env: &TestEnv<'_>) -> Proof {
    for one in conflicts::expected() {
        println!("       may conflict: {one}");
    }
    let log = std::fs::read_to_string(env.stack.places.log("audit"))?;
    anyhow::ensure!(log.contains("\"capm3/"), "this program sent no request");
    conflicts::none_is_own(&conflicts::of(&log, 0))
}

/// This account sent requests, and none was forbidden.
pub(super) fn nothing_forbidden_for(stack: &Stack, account: &str) -> Proof {
    let log = Log::read(&std::fs::read_to_string(stack.places.log("audit"))?)?;
    let counts = log.counts_of(account);
    anyhow::ensure!(counts.forbidden.is_empty(), "{account}: {:?}", counts.forbidden);
    let requests: u64 = counts.requests.values().sum();
    anyhow::ensure!(requests > 0, "{account} sent no request");
    Ok(format!("{requests} requests"))
}

/// For runs that do not use the whole release: no request was forbidden, except lists of other providers' kinds, which a
/// Metal3Cluster reads for an earlier endpoint and does not require.
pub(super) fn no_request_was_forbidden(stack: &Stack) -> anyhow::Result<()> {
    let log = Log::read(&std::fs::read_to_string(stack.places.log("audit"))?)?;
    for manager in &MANAGERS {
        let mut forbidden = log.counts_of(manager.account.user).forbidden;
        forbidden.retain(|target| {
            let is_test_cluster = provider::RESOURCE == format!("{}.{}", target.resource, target.group);
            target.verb != "list"
                || !(is_test_cluster || other_providers::has_resource(&target.group, &target.resource))
        });
        anyhow::ensure!(forbidden.is_empty(), "{}: {forbidden:?}", manager.account.user);
    }
    Ok(())
}
