//! What the reports about BIOS settings and about firmware share: when a report is out of date, and who owns its object.

use chrono::{DateTime, Utc};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::kind::Kind;
use metal3_api::meta::{Condition, Time};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostFirmwareComponents, HostFirmwareSettings};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

/// Condition: the machine is not as it is asked to be.
pub(super) const CHANGE_DETECTED: &str = "ChangeDetected";
/// Condition: the machine can be as it is asked to be.
pub(super) const VALID: &str = "Valid";

/// When what is asked for is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Now, while the host is prepared.
    Now,
    /// When the host is rebooted, as its HostUpdatePolicy allows.
    Rebooted,
    /// When the host is prepared the next time.
    Prepared,
}

/// A kind whose status reports what Ironic has of a machine.
pub trait Reported: Kind {
    /// The conditions.
    fn conditions(&self) -> &[Condition];

    /// When Ironic was asked last.
    fn last_updated(&self) -> Option<Time>;

    /// Whether its spec asks for anything.
    fn asks(&self) -> bool;
}

impl Reported for HostFirmwareSettings {
    fn conditions(&self) -> &[Condition] {
        &self.status.conditions
    }

    fn last_updated(&self) -> Option<Time> {
        self.status.last_updated
    }

    fn asks(&self) -> bool {
        !self.spec.settings.is_empty()
    }
}

impl Reported for HostFirmwareComponents {
    fn conditions(&self) -> &[Condition] {
        &self.status.conditions
    }

    fn last_updated(&self) -> Option<Time> {
        self.status.last_updated
    }

    fn asks(&self) -> bool {
        !self.spec.updates.is_empty()
    }
}

/// A condition about the present spec.
pub(super) fn condition<'a>(object: &'a impl Reported, name: &str) -> Option<&'a Condition> {
    let mut conditions = object.conditions().iter();
    conditions.find(|condition| condition.type_ == name && condition.observed_generation == object.meta().generation)
}

/// Whether the status is about the present spec, and not older than what may have changed what Ironic reports.
#[must_use]
pub fn is_current(object: &impl Reported, node: &Node) -> bool {
    let is_observed = [CHANGE_DETECTED, VALID]
        .iter()
        .all(|name| condition(object, name).is_some());
    // The times of the API have whole seconds.
    let read = object.last_updated().map(|at| at.get().timestamp());
    let changed = changed_at(object, node).map(|at| at.timestamp());
    is_observed && read.is_some_and(|read| changed.is_none_or(|changed| changed <= read))
}

/// When that may have changed last. Ironic reads settings and versions when it verifies the BMC, when it inspects the machine, and
/// when a cleaning changed them. What an object asks for is compared once the node is at rest again; for others an inspection is
/// enough.
pub(super) fn changed_at(object: &impl Reported, node: &Node) -> Option<DateTime<Utc>> {
    let is_at_rest = matches!(node.provision_state, S::Manageable | S::Available | S::Active);
    let moved = node.provision_updated_at.filter(|_| object.asks() && is_at_rest);
    node.inspection_finished_at.max(moved)
}

/// Whether the spec changed since the last report.
#[must_use]
pub fn is_changed_since_report(object: &impl Reported) -> bool {
    let mut conditions = object.conditions().iter();
    let reported = conditions.find(|condition| condition.type_ == VALID);
    reported.is_some_and(|reported| reported.observed_generation != object.meta().generation)
}

/// The owner references with the host among them; `None`: it is. It is their controller if it may be, and no other is.
pub(crate) fn owners(meta: &ObjectMeta, host: &BareMetalHost, may_control: bool) -> Option<Vec<OwnerReference>> {
    let uid = host.metadata.uid.clone()?;
    let owners = meta.owner_references.iter().flatten();
    let is_host = |owner: &&OwnerReference| owner.kind == BareMetalHost::KIND;
    if owners.clone().filter(is_host).any(|owner| owner.uid == uid) {
        return None;
    }
    // One of a former host of the same name would have the object collected.
    let mut kept: Vec<_> = owners.filter(|owner| !is_host(owner)).cloned().collect();
    let is_free = kept.iter().all(|owner| owner.controller != Some(true));
    kept.push(OwnerReference {
        api_version: BareMetalHost::group_version(),
        kind: BareMetalHost::KIND.to_owned(),
        name: host.metadata.name.clone().unwrap_or_default(),
        uid,
        controller: (may_control && is_free).then_some(true),
        block_owner_deletion: None,
    });
    Some(kept)
}
