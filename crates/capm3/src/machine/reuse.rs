//! The set of a machine: the control plane or MachineDeployment for whose next machine a released host is kept.
//!
//! The set and its template are read live before a host is deprovisioned and before it is released, and only while a
//! template of the namespace asks for node reuse. The template is the one that the set has now, as in the Go manager: for
//! a control plane the one of its next machine, for a MachineDeployment the one of the MachineSet of this machine.

use std::sync::Arc;

use kube_core::{ApiResource, GroupVersionKind, ObjectMeta};
use metal3_api::cluster::names::{CONTROL_PLANE_GROUP, CONTROL_PLANE_LABEL};
use metal3_api::cluster::{Machine, MachineDeployment, MachineSet};
use metal3_api::infrastructure::names::{NODE_REUSE_LABEL, REUSE_AFTER_CLEANING_ANNOTATION};
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::kind::Kind as _;
use metal3_api::meta::{IntOrString, Time};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::owner::{cluster_of, group_of, is_of_kind, label, node_reuse_owner};
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::plan::Observed;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::needs::Machines;

/// The owner that a Machine names, from which its set is found.
#[derive(Debug, Clone, PartialEq)]
pub enum SetOwner {
    /// The object of this kind and name is the set.
    ControlPlane(ApiResource, String, String),
    /// The MachineSet of this name and UID belongs to the set.
    MachineSet(String, String),
}

/// Whether a text can be the name of an object, and is no path or query.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    text.bytes().all(is_inner) && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// The owner of a Machine that leads to its set. `None` for a Machine that no set replaces.
///
/// # Errors
/// When the kind of the owner cannot be requested.
pub fn set_owner(machine: &Machine) -> Result<Option<SetOwner>, String> {
    let mut owners = machine.metadata.owner_references.iter().flatten();
    if label(&machine.metadata, CONTROL_PLANE_LABEL).is_none() {
        let set = owners.find(|owner| is_of_kind::<MachineSet>(owner) && is_name(&owner.name));
        return Ok(set.map(|owner| SetOwner::MachineSet(owner.name.clone(), owner.uid.clone())));
    }
    let Some(owner) = owners.find(|owner| group_of(&owner.api_version) == CONTROL_PLANE_GROUP) else {
        return Ok(None);
    };
    let version = owner.api_version.rsplit('/').next().unwrap_or_default();
    // Reserved characters would make this program read another path with its own rights.
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_plain(version) || !is_plain(&owner.kind) || !is_name(&owner.name) {
        return Err("an owner reference of the Machine is to a control plane that cannot exist; correct it".to_owned());
    }
    let kind = GroupVersionKind::gvk(CONTROL_PLANE_GROUP, version, &owner.kind);
    // Cluster API requires this plural of every kind of its contract.
    let kind = ApiResource::from_gvk(&kind);
    Ok(Some(SetOwner::ControlPlane(
        kind,
        owner.name.clone(),
        owner.uid.clone(),
    )))
}

/// The set of a machine, with what decides about its released hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// `cp-` and the control plane, or `md-` and the MachineDeployment: the value of the label.
    pub owner: String,
    /// The Metal3MachineTemplate that it has now.
    pub template: Arc<Metal3MachineTemplate>,
    /// Whether another machine takes the place of the deleted one, as far as this is known.
    pub replaces: bool,
}

impl Set {
    /// Whether released hosts are kept.
    #[must_use]
    pub fn reuses_hosts(&self) -> bool {
        self.template.spec.node_reuse == Some(true)
    }

    /// Whether the user accepts that the disks of a kept host are cleaned.
    #[must_use]
    pub fn accepts_cleaning(&self) -> bool {
        let annotations = self.template.metadata.annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(REUSE_AFTER_CLEANING_ANNOTATION))
    }
}

/// How many machines a set has and wants, and whether it may be replacing them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replicas {
    /// How many it wants; `None` when it does not say.
    pub wanted: Option<i64>,
    /// How many it has that are not being deleted.
    pub remaining: usize,
    /// Whether new machines are created before the old ones are deleted, as far as this is known.
    pub may_surge: bool,
    /// Whether the deleted machine is known to be as the set wants it.
    pub is_current: bool,
}

impl Replicas {
    /// Whether another machine takes the place of the deleted one. Not for a set that only becomes smaller: it has as many
    /// machines as it wants, and either no new ones came first, or the deleted one was as the set wants it.
    #[must_use]
    pub fn replaces(self) -> bool {
        let is_enough = self
            .wanted
            .is_some_and(|wanted| i64::try_from(self.remaining).unwrap_or(i64::MAX) >= wanted);
        !is_enough || (self.may_surge && !self.is_current)
    }
}

/// Whether a stated `maxSurge` creates machines before it deletes others. Cluster API defaults it to 1.
fn surges(stated: Option<&IntOrString>) -> bool {
    !match stated {
        Some(IntOrString::Int(number)) => *number == 0,
        Some(IntOrString::String(text)) => text.trim_end_matches('%').parse() == Ok(0),
        None => false,
    }
}

/// How far two clocks may differ, in seconds.
const CLOCKS: i64 = 300;

/// The replicas of a MachineDeployment, one of whose MachineSets has the deleted machine.
#[must_use]
pub fn of_deployment(deployment: &MachineDeployment, set: &MachineSet, remaining: usize, now: Time) -> Replicas {
    let rollout = deployment.spec.rollout.as_ref();
    let strategy = rollout.and_then(|rollout| rollout.strategy.as_ref());
    let update = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
    let created = set
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|created| created.0.as_second());
    // An order to replace machines is for those of earlier MachineSets. The clock of Cluster API may be ahead.
    let is_done_or_later = |after: Time| {
        let (now, after) = (now.get().timestamp(), after.get().timestamp());
        after > now.saturating_add(CLOCKS) || created.is_some_and(|created| created > after)
    };
    Replicas {
        wanted: deployment.spec.replicas.map(i64::from),
        remaining,
        may_surge: surges(update.and_then(|update| update.max_surge.as_ref())),
        is_current: deployment.spec.template == set.spec.template
            && rollout.and_then(|rollout| rollout.after).is_none_or(is_done_or_later),
    }
}

/// The Metal3MachineTemplate of a MachineSet.
#[must_use]
pub fn template_of_set(set: &MachineSet) -> Option<&str> {
    let reference = &set.spec.template.spec.infrastructure_ref;
    let is_ours = reference.kind == Metal3MachineTemplate::KIND && reference.api_group == Metal3MachineTemplate::GROUP;
    Some(reference.name.as_str()).filter(|name| is_ours && is_name(name))
}

/// A control plane of any kind, reduced to what Cluster API's contract states about its machines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ControlPlane {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// The Metal3MachineTemplate of its machines; `None` for a control plane without such machines.
    pub template: Option<String>,
    /// How many machines it wants.
    pub replicas: Option<i64>,
    /// How many more it may have in a roll.
    pub max_surge: Option<IntOrString>,
}

impl ControlPlane {
    /// Its replicas. Whether a machine is as it wants it depends on the kind.
    #[must_use]
    pub fn replicas(&self, remaining: usize) -> Replicas {
        Replicas {
            wanted: self.replicas,
            remaining,
            may_surge: surges(self.max_surge.as_ref()),
            is_current: false,
        }
    }
}

impl<'de> Deserialize<'de> for ControlPlane {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut document = Value::deserialize(deserializer)?;
        let metadata = document.get_mut("metadata").map(Value::take).unwrap_or_default();
        let first = |paths: [&str; 2]| paths.into_iter().find_map(|path| document.pointer(path).cloned());
        // The second path of each is that of `v1beta1`.
        let template = first([
            "/spec/machineTemplate/spec/infrastructureRef",
            "/spec/machineTemplate/infrastructureRef",
        ]);
        let surge = first([
            "/spec/rollout/strategy/rollingUpdate/maxSurge",
            "/spec/rolloutStrategy/rollingUpdate/maxSurge",
        ]);
        let text = |member: &str| template.as_ref()?.get(member)?.as_str().map(ToOwned::to_owned);
        let is_ours = text("kind").as_deref() == Some(Metal3MachineTemplate::KIND);
        Ok(Self {
            metadata: serde_json::from_value(metadata).map_err(serde::de::Error::custom)?,
            template: text("name").filter(|name| is_ours && is_name(name)),
            replicas: document.pointer("/spec/replicas").and_then(Value::as_i64),
            max_surge: surge.and_then(|surge| serde_json::from_value(surge).ok()),
        })
    }
}

metal3_runtime::resource!(ControlPlane: of any kind);

/// The permission is that of [`EndpointSources`](crate::cluster::sources::EndpointSources), whose kinds are these.
impl Permits<verb::List, ControlPlane> for Machines {}

/// Whether an object that an owner reference names is that owner, and stays. The UID of a reference may be missing.
#[must_use]
pub fn stays(metadata: &ObjectMeta, uid: &str) -> bool {
    let is_same = uid.is_empty() || metadata.uid.as_deref() == Some(uid);
    is_same && metadata.deletion_timestamp.is_none()
}

/// Whether another Cluster of the namespace has a set of the name of this Machine's set, as the Machines show. False when no
/// host is kept for that name without its Cluster: then it decides nothing.
#[must_use]
pub fn has_namesake<'h, 'm>(
    machine: &Machine,
    hosts: impl IntoIterator<Item = &'h BareMetalHost>,
    machines: impl IntoIterator<Item = &'m Machine>,
) -> bool {
    let Some(owner) = node_reuse_owner(machine) else {
        return false;
    };
    let is_decided_by_it = |host: &BareMetalHost| {
        label(&host.metadata, NODE_REUSE_LABEL) == Some(owner.as_str()) && host.spec.consumer_ref.is_none()
    };
    let is_namesake = |other: &Machine| {
        other.metadata.namespace == machine.metadata.namespace
            && cluster_of(&other.metadata) != cluster_of(&machine.metadata)
            && node_reuse_owner(other).as_ref() == Some(&owner)
    };
    hosts.into_iter().any(is_decided_by_it) && machines.into_iter().any(is_namesake)
}

/// The facts about a set that are read. `Absent` when no set keeps hosts for the machine.
pub type ObservedSet = Observed<Set>;

#[cfg(test)]
mod tests;
