//! A machine from its mould: bootstrap configuration, infrastructure, and the Machine that names both.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_api::cluster::names::{CLONED_FROM_GROUP_KIND_ANNOTATION, CLONED_FROM_NAME_ANNOTATION, CLUSTER_NAME_LABEL};
use serde_json::{Map, Value, json};

use crate::kinds::{CONFIG, Kind, MACHINE, made_of};
use crate::view::{Object, World};
use crate::write::{Write, owner};

/// What machines are made of.
pub(crate) struct Mould<'a> {
    /// Who makes them.
    pub(crate) kind: &'static Kind,
    /// The same.
    pub(crate) maker: &'a Object,
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

/// So many new machines. Names follow from who makes them and from all that happened before.
pub(crate) fn machines(world: &World, mould: &Mould<'_>, count: i64) -> Vec<Write> {
    // Of a template that nobody knows nothing is made.
    let Some(made) = made_of(mould.template.kind()) else {
        return Vec::new();
    };
    let names = (0..count).map(|number| format!("{}-{}", mould.maker.name(), suffix(world, mould.maker, number)));
    names.flat_map(|name| one(mould, made, &name)).collect()
}

fn suffix(world: &World, maker: &Object, number: i64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    // Its keys are fixed, so the same history gives the same names.
    let mut hasher = DefaultHasher::new();
    (maker.uid(), world.version(), number).hash(&mut hasher);
    let mut rest = hasher.finish();
    let letters = (0..5).map(|_| {
        let count = u64::try_from(LETTERS.len()).unwrap_or(1);
        let place = usize::try_from(rest % count).unwrap_or_default();
        rest /= count;
        LETTERS.get(place).copied().map_or('x', char::from)
    });
    letters.collect()
}

fn one(mould: &Mould<'_>, made: &'static Kind, name: &str) -> [Write; 3] {
    let mut labels = mould.labels.clone();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), mould.cluster.into());
    let namespace = mould.maker.namespace();
    let interim = owner(mould.kind, mould.maker, false);
    let config = json!({
        "apiVersion": CONFIG.api_version(), "kind": CONFIG.kind, "spec": mould.config,
        "metadata": { "name": name, "namespace": namespace, "labels": labels, "ownerReferences": [interim] },
    });
    let infrastructure = infrastructure(mould, (made, name), &labels, &interim);
    let group = |kind: &Kind| json!({ "apiGroup": kind.group, "kind": kind.kind, "name": name });
    let mut spec = json!({
        "clusterName": mould.cluster, "bootstrap": { "configRef": group(CONFIG) },
        "infrastructureRef": group(made),
    });
    for (member, value) in [("version", &mould.version), ("failureDomain", &mould.domain)] {
        if let Some(spec) = spec.as_object_mut().filter(|_| !value.is_null()) {
            spec.insert(member.to_owned(), value.clone());
        }
    }
    let machine = json!({
        "apiVersion": MACHINE.api_version(), "kind": MACHINE.kind,
        "metadata": {
            "name": name, "namespace": namespace, "labels": labels,
            "ownerReferences": [owner(mould.kind, mould.maker, true)],
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
    mould: &Mould<'_>,
    (made, name): (&Kind, &str),
    labels: &Map<String, Value>,
    interim: &Value,
) -> Value {
    let template = mould.template;
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
            "name": name, "namespace": mould.maker.namespace(), "labels": all, "annotations": annotations,
            "ownerReferences": [interim],
        },
        "spec": template.part("/spec/template/spec"),
    })
}
