//! The kinds of a bundle, and what is left out of the objects of other providers.
//!
//! Nodes are not among them: they are in workload clusters.

use std::collections::BTreeSet;

use metal3_api::cluster::names::{CONTROL_PLANE_GROUP, GROUP as CLUSTER_GROUP};
use serde_json::Value;

use super::mask::MASK;
use crate::object::{KINDS, LISTED, ObjectId, SECRET, WITHOUT_WAITS};
use crate::read::Read;
use crate::snapshot::Snapshot;
use crate::values::text;

const BOOTSTRAP_GROUP: &str = "bootstrap.cluster.x-k8s.io";

/// Kinds of Cluster API that nothing else of this crate reads.
const OTHERS: [(&str, &str); 7] = [
    (CLUSTER_GROUP, "ClusterClass"),
    (CLUSTER_GROUP, "MachineHealthCheck"),
    (CLUSTER_GROUP, "MachinePool"),
    (CLUSTER_GROUP, "MachineDrainRule"),
    ("addons.cluster.x-k8s.io", "ClusterResourceSet"),
    (BOOTSTRAP_GROUP, "KubeadmConfig"),
    (BOOTSTRAP_GROUP, "KubeadmConfigTemplate"),
];

/// Places of references to objects of other providers.
const REFERENCES: [&str; 3] = [
    "/spec/infrastructureRef",
    "/spec/controlPlaneRef",
    "/spec/bootstrap/configRef",
];

/// Members of the spec of another provider's object that hold no data of a machine. The others may: files, users, scripts.
const PLAIN: [&str; 10] = [
    "replicas",
    "version",
    "clusterName",
    "controlPlaneEndpoint",
    "paused",
    "providerID",
    "machineTemplate",
    "rollout",
    "rolloutStrategy",
    "remediation",
];

/// The kinds that are read first.
pub(super) fn all() -> Vec<ObjectId> {
    let known = KINDS.iter().chain(WITHOUT_WAITS).chain(LISTED).chain([&SECRET]);
    let known = known.map(|known| ObjectId::foreign(known.group, known.kind, ""));
    let others = OTHERS.map(|(group, kind)| ObjectId::foreign(group, kind, ""));
    known.chain(others).collect()
}

/// The kinds that were read.
pub(super) fn of(snapshot: &Snapshot) -> BTreeSet<ObjectId> {
    let kinds = snapshot.answers().filter_map(|(read, _)| match read {
        Read::List { kind, .. } => Some(kind.clone()),
        Read::Object(_) | Read::Events(_) => None,
    });
    kinds.collect()
}

/// The kind of the object that an Event is about.
pub(super) fn of_event(event: &Value) -> ObjectId {
    let of = |member: &str| text(event, &format!("/involvedObject/{member}"));
    let group = of("apiVersion").split_once('/').map_or("", |(group, _)| group);
    ObjectId::foreign(group, of("kind"), "")
}

/// The kinds that a Cluster or a Machine refers to, by group or, in older versions, by group and version.
pub(super) fn referred(object: &Value) -> Vec<ObjectId> {
    let kind = |place: &&str| {
        let reference = object.pointer(place)?;
        let version = text(reference, "/apiVersion")
            .split_once('/')
            .map_or("", |(group, _)| group);
        let group = Some(text(reference, "/apiGroup"))
            .filter(|group| !group.is_empty())
            .unwrap_or(version);
        let kind = text(reference, "/kind");
        (!group.is_empty() && !kind.is_empty()).then(|| ObjectId::foreign(group, kind, ""))
    };
    REFERENCES.iter().filter_map(kind).collect()
}

/// The object without what another provider writes to machines: bootstrap data, and the patches of a ClusterClass.
pub(super) fn without_data(kind: &ObjectId, mut object: Value) -> Value {
    let mut known = KINDS.iter().chain(WITHOUT_WAITS).chain(LISTED);
    let is_known = known.any(|known| known.group == kind.group && known.kind == kind.kind);
    let is_own = is_known && kind.group != CONTROL_PLANE_GROUP;
    let is_class = kind.kind == "ClusterClass";
    let is_kept = |name: &str| match kind.group.as_str() {
        CLUSTER_GROUP => !(is_class && ["patches", "variables"].contains(&name)),
        _ => PLAIN.contains(&name) || name.ends_with("Ref"),
    };
    if let Some(spec) = object
        .get_mut("spec")
        .and_then(Value::as_object_mut)
        .filter(|_| !is_own)
    {
        for (name, member) in spec {
            if !is_kept(name) {
                *member = Value::from(MASK);
            }
        }
    }
    object
}
