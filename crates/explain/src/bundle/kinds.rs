//! The kinds of a bundle, and what is left out of the objects of other providers.
//!
//! Nodes are not among them: they are in workload clusters.

use std::collections::BTreeSet;

use metal3_api::cluster::names::{CONTROL_PLANE_GROUP, GROUP as CLUSTER_GROUP};
use serde_json::Value;

use super::mask::MASK;
use crate::object::{KINDS, LISTED, ObjectId, SECRET, WITHOUT_WAITS};
use crate::order;
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

/// Members of the status of another provider's object that say how it is. Another one may hold a kubeconfig or a key.
const PLAIN_STATUS: [&str; 27] = [
    "addresses",
    "availableReplicas",
    "bootstrapReady",
    "conditions",
    "controlPlaneEndpoint",
    "dataSecretName",
    "deprecated",
    "errorMessage",
    "externalManagedControlPlane",
    "failureDomains",
    "failureMessage",
    "failureReason",
    "initialization",
    "initialized",
    "ipAddresses",
    "lastRemediation",
    "observedGeneration",
    "phase",
    "ready",
    "readyReplicas",
    "replicas",
    "selector",
    "unavailableReplicas",
    "upToDateReplicas",
    "updatedReplicas",
    "v1beta2",
    "version",
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
    order::set(kinds)
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
    if is_own {
        return object;
    }
    let is_kept = |part: &str, name: &str| match (kind.group.as_str(), part) {
        (CLUSTER_GROUP, _) => !(is_class && ["patches", "variables"].contains(&name)),
        (_, "spec") => PLAIN.contains(&name) || name.ends_with("Ref"),
        _ => PLAIN_STATUS.contains(&name),
    };
    for (part, value) in object.as_object_mut().into_iter().flatten() {
        match (part.as_str(), value) {
            ("apiVersion" | "kind" | "metadata", _) => {}
            ("spec" | "status", Value::Object(members)) => {
                let others = members.iter_mut().filter(|(name, _)| !is_kept(part, name));
                others.for_each(|(_, member)| *member = Value::from(MASK));
            }
            (_, Value::Null) => {}
            (_, value) => *value = Value::from(MASK),
        }
    }
    object
}
