//! Snapshot of the management cluster: every object of every watched kind, and the workload clusters.

mod object;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_runtime::cache::Key;
use serde_json::Value;

use crate::kinds::{CLUSTER, Kind, SECRET, find};

pub use object::Object;
pub(crate) use object::text_of;

/// Observed state of one workload cluster.
#[derive(Debug, Clone, Default)]
pub struct WorkloadView {
    /// Whether the API server answers.
    pub is_up: bool,
    /// Its Nodes.
    pub nodes: Vec<Object>,
}

/// Input of every decision.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    objects: BTreeMap<(&'static str, Key), Object>,
    /// Workload clusters by their endpoint, `host:port`.
    pub workloads: BTreeMap<String, WorkloadView>,
    /// Timestamp for writes.
    pub now: DateTime<Utc>,
}

impl Snapshot {
    /// Stores an object, unless a newer version is stored. Returns whether the snapshot changed.
    pub fn put(&mut self, kind: &'static Kind, object: Object) -> bool {
        let place = (kind.kind, object.key());
        let is_newer = self
            .objects
            .get(&place)
            .is_none_or(|known| known.version() < object.version());
        if is_newer {
            self.objects.insert(place, object);
        }
        is_newer
    }

    /// Removes an object. Returns whether it was stored.
    pub fn remove(&mut self, kind: &'static Kind, key: &Key) -> bool {
        self.objects.remove(&(kind.kind, key.clone())).is_some()
    }

    /// Removes every object of a kind that is not listed.
    pub fn keep(&mut self, kind: &'static Kind, listed: &[Key]) {
        self.objects
            .retain(|(of, key), _| *of != kind.kind || listed.contains(key));
    }

    /// The highest resource version; it grows with every change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.objects.values().map(Object::version).max().unwrap_or_default()
    }

    /// One object.
    #[must_use]
    pub fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Object> {
        let key = Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        let found = self.objects.range((kind.kind, key.clone())..).next();
        found
            .filter(|((of, found), _)| *of == kind.kind && *found == key)
            .map(|(_, object)| object)
    }

    /// All objects of a kind, by name.
    pub fn all(&self, kind: &Kind) -> impl Iterator<Item = &Object> + use<'_> {
        let kind = kind.kind;
        let first = Key {
            namespace: String::new(),
            name: String::new(),
        };
        self.objects
            .range((kind, first)..)
            .take_while(move |((of, _), _)| *of == kind)
            .map(|(_, object)| object)
    }

    /// All objects of a kind that belong to a Cluster by label or by `spec.clusterName`, oldest first.
    #[must_use]
    pub fn of_cluster(&self, kind: &Kind, cluster: &Object) -> Vec<&Object> {
        let is_its = |object: &&Object| {
            object.namespace() == cluster.namespace()
                && (object.label(CLUSTER_NAME_LABEL) == Some(cluster.name())
                    || object.text("/spec/clusterName") == cluster.name())
        };
        by_age(self.all(kind).filter(is_its))
    }

    /// All objects of a kind that an object owns, oldest first.
    #[must_use]
    pub fn owned(&self, kind: &Kind, owner: &Object) -> Vec<&Object> {
        by_age(self.all(kind).filter(|object| object.is_owned_by(owner.uid())))
    }

    /// The object of a reference in `from`: kind and name, in the same namespace.
    #[must_use]
    pub fn referred(&self, from: &Object, at: &str) -> Option<&Object> {
        let (kind, name) = reference(from, at)?;
        self.get(find(kind)?, from.namespace(), name)
    }

    /// The Cluster that an object belongs to.
    #[must_use]
    pub fn cluster_of(&self, object: &Object) -> Option<&Object> {
        let named = object.text("/spec/clusterName");
        let name = if named.is_empty() {
            object.label(CLUSTER_NAME_LABEL)?
        } else {
            named
        };
        self.get(CLUSTER, object.namespace(), name)
    }

    /// The Cluster that owns an object.
    #[must_use]
    pub fn owning_cluster(&self, object: &Object) -> Option<&Object> {
        self.get(CLUSTER, object.namespace(), object.owner(CLUSTER.kind)?)
    }

    /// The workload cluster of a Cluster.
    #[must_use]
    pub fn workload_of(&self, cluster: &Object) -> Option<&WorkloadView> {
        self.workloads.get(&endpoint(cluster)?)
    }

    /// The Secret of a Cluster with this purpose.
    #[must_use]
    pub fn secret(&self, cluster: &Object, purpose: &str) -> Option<&Object> {
        let name = format!("{}-{purpose}", cluster.name());
        self.get(SECRET, cluster.namespace(), &name)
    }
}

fn by_age<'a>(objects: impl Iterator<Item = &'a Object>) -> Vec<&'a Object> {
    let mut all: Vec<&Object> = objects.collect();
    all.sort_by_key(|object| object.creation_order());
    all
}

/// Kind and name of a reference, if present.
#[must_use]
pub fn reference<'a>(from: &'a Object, at: &str) -> Option<(&'a str, &'a str)> {
    let found = from.at(at)?;
    let member = |name: &str| found.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    Some((member("kind")?, member("name")?))
}

/// `host:port` of an object's complete endpoint.
#[must_use]
pub fn endpoint(object: &Object) -> Option<String> {
    let host = object.text("/spec/controlPlaneEndpoint/host");
    let port = object
        .number("/spec/controlPlaneEndpoint/port")
        .filter(|port| *port > 0)?;
    (!host.is_empty()).then(|| format!("{host}:{port}"))
}
