//! Creates a machine: bootstrap configuration, infrastructure, and the Machine that refers to both.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_api::cluster::names::{CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL};
use serde_json::{Map, Value, json};

use crate::kinds::{CONFIG, Kind, MACHINE, target_kind};
use crate::view::{Object, Snapshot};
use crate::write::{Write, owner};

/// Source of new machines.
pub(crate) struct MachineSource<'a> {
    /// Kind of the creator.
    pub(crate) kind: &'static Kind,
    /// The creator: a MachineSet or a control plane.
    pub(crate) creator: &'a Object,
    /// Name of their Cluster.
    pub(crate) cluster: &'a str,
    /// Labels of all three objects.
    pub(crate) labels: Map<String, Value>,
    /// The template of their infrastructure.
    pub(crate) template: &'a Object,
    /// Spec of their bootstrap configuration.
    pub(crate) config: Value,
    /// Version of Kubernetes.
    pub(crate) version: Value,
    /// Failure domain.
    pub(crate) domain: Value,
}

/// Creates `count` machines. Names are derived from the creator and the snapshot.
pub(crate) fn machines(snapshot: &Snapshot, source: &MachineSource<'_>, count: i64) -> Vec<Write> {
    // A template of an unknown kind creates nothing.
    let Some(made) = target_kind(source.template.kind()) else {
        return Vec::new();
    };
    let names =
        (0..count).map(|number| format!("{}-{}", source.creator.name(), suffix(snapshot, source.creator, number)));
    names.flat_map(|name| one(source, made, &name)).collect()
}

fn suffix(snapshot: &Snapshot, creator: &Object, number: i64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    // The hasher has fixed keys, so the same history gives the same names.
    let mut hasher = DefaultHasher::new();
    (creator.uid(), snapshot.version(), number).hash(&mut hasher);
    let mut rest = hasher.finish();
    let letters = (0..5).map(|_| {
        let count = u64::try_from(LETTERS.len()).unwrap_or(1);
        let place = usize::try_from(rest % count).unwrap_or_default();
        rest /= count;
        LETTERS.get(place).copied().map_or('x', char::from)
    });
    letters.collect()
}

fn one(source: &MachineSource<'_>, made: &'static Kind, name: &str) -> [Write; 3] {
    let mut labels = source.labels.clone();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), source.cluster.into());
    let namespace = source.creator.namespace();
    let interim = owner(source.kind, source.creator, false);
    let config = json!({
        "apiVersion": CONFIG.api_version(), "kind": CONFIG.kind, "spec": source.config,
        "metadata": { "name": name, "namespace": namespace, "labels": labels, "ownerReferences": [interim] },
    });
    let infrastructure = infrastructure(source, (made, name), &labels, &interim);
    let group = |kind: &Kind| json!({ "apiGroup": kind.group, "kind": kind.kind, "name": name });
    let mut spec = json!({
        "clusterName": source.cluster, "bootstrap": { "configRef": group(CONFIG) },
        "infrastructureRef": group(made),
    });
    for (member, value) in [("version", &source.version), ("failureDomain", &source.domain)] {
        if let Some(spec) = spec.as_object_mut().filter(|_| !value.is_null()) {
            spec.insert(member.to_owned(), value.clone());
        }
    }
    let machine = json!({
        "apiVersion": MACHINE.api_version(), "kind": MACHINE.kind,
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels,
            "ownerReferences": [owner(source.kind, source.creator, true)],
        },
        "spec": spec,
    });
    [
        Write::Create(CONFIG, config),
        Write::Create(made, infrastructure),
        Write::Create(MACHINE, machine),
    ]
}

fn infrastructure(
    source: &MachineSource<'_>,
    (made, name): (&Kind, &str),
    labels: &Map<String, Value>,
    interim: &Value,
) -> Value {
    let template = source.template;
    let members = |at: &str| template.part(at).as_object().cloned().unwrap_or_default();
    let mut all = members("/spec/template/metadata/labels");
    all.extend(labels.clone());
    let mut annotations = members("/spec/template/metadata/annotations");
    let from = format!("{}.{}", template.kind(), made.group);
    annotations.insert(CLONED_FROM_NAME_ANNOTATION.to_owned(), template.name().into());
    annotations.insert(CLONED_FROM_GROUP_KIND_ANNOTATION.to_owned(), from.into());
    json!({
        "apiVersion": made.api_version(), "kind": made.kind,
        "metadata": {
            "name": name, "namespace": source.creator.namespace(), "labels": all, "annotations": annotations,
            "ownerReferences": [interim],
        },
        "spec": template.part("/spec/template/spec"),
    })
}
