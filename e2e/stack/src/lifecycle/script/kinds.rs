//! Discovers the kinds of the API server that a script may name.

use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::Value;

use crate::claims::stack::Stack;

/// The groups. Of two kinds with the same name, the one of the earlier group is meant, as in the simulated world.
const GROUPS: [&str; 8] = [
    "metal3.io",
    "ipam.metal3.io",
    "infrastructure.cluster.x-k8s.io",
    "cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "bootstrap.cluster.x-k8s.io",
    "ipam.cluster.x-k8s.io",
    // Only with that provider installed.
    "kamaji.clastix.io",
];

/// Group, version and plural name of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::lifecycle) struct Place {
    group: String,
    version: String,
    plural: String,
}

impl Place {
    /// The resource argument of kubectl.
    pub(in crate::lifecycle) fn resource(&self) -> String {
        format!("{}.{}.{}", self.plural, self.version, self.group)
    }

    /// The path of its objects.
    pub(in crate::lifecycle) fn path(&self, namespace: &str) -> String {
        let Self { group, version, plural } = self;
        format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}")
    }
}

#[derive(Debug, Default)]
pub(in crate::lifecycle) struct Kinds {
    by_kind: BTreeMap<String, Place>,
    all: Vec<Place>,
}

impl Kinds {
    /// Reads the server's discovery documents, which list versions in order of preference.
    pub(in crate::lifecycle) fn discover(stack: &Stack) -> anyhow::Result<Self> {
        let get = |path: &str| -> anyhow::Result<Value> {
            Ok(serde_json::from_str(&stack.kubectl(&["get", "--raw", path])?)?)
        };
        let all = get("/apis")?;
        let mut kinds = Self::default();
        for group in GROUPS {
            let mut known = all["groups"].as_array().into_iter().flatten();
            let Some(about) = known.find(|known| known["name"] == group) else {
                continue;
            };
            for version in about["versions"].as_array().into_iter().flatten() {
                let version = version["version"]
                    .as_str()
                    .with_context(|| format!("{group} has no version"))?;
                kinds.add(group, version, &get(&format!("/apis/{group}/{version}"))?);
            }
        }
        Ok(kinds)
    }

    fn add(&mut self, group: &str, version: &str, listed: &Value) {
        let can_watch = |resource: &&Value| {
            let verbs = resource["verbs"].as_array();
            resource["namespaced"] == true && verbs.is_some_and(|verbs| verbs.iter().any(|verb| verb == "watch"))
        };
        for resource in listed["resources"].as_array().into_iter().flatten().filter(can_watch) {
            let text = |member: &str| resource[member].as_str().unwrap_or_default().to_owned();
            let (group, version, plural) = (group.to_owned(), version.to_owned(), text("name"));
            let place = Place { group, version, plural };
            let is_known = |other: &Place| other.group == place.group && other.plural == place.plural;
            if self.all.iter().any(is_known) {
                continue;
            }
            self.all.push(place.clone());
            self.by_kind.entry(text("kind")).or_insert(place);
        }
    }

    pub(in crate::lifecycle) fn of(&self, kind: &str) -> anyhow::Result<&Place> {
        self.by_kind.get(kind).with_context(|| unknown(kind))
    }

    pub(in crate::lifecycle) fn all(&self) -> &[Place] {
        &self.all
    }

    /// The names of all of them and of Secrets, for one request of kubectl.
    pub(in crate::lifecycle) fn all_resources(&self) -> String {
        let mut all: Vec<String> = self.all.iter().map(Place::resource).collect();
        all.push("secrets".to_owned());
        all.join(",")
    }
}

fn unknown(kind: &str) -> String {
    format!("kind {kind}: not served")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn first_group_wins_for_a_kind_and_both_groups_are_watched() {
        let listed = json!({ "resources": [
            { "name": "ipaddresses", "kind": "IPAddress", "namespaced": true, "verbs": ["get", "watch"] },
            { "name": "ipaddresses/status", "kind": "IPAddress", "namespaced": true, "verbs": ["get"] },
            { "name": "everywhere", "kind": "Everywhere", "namespaced": false, "verbs": ["watch"] },
        ] });
        let mut kinds = Kinds::default();
        kinds.add("ipam.metal3.io", "v1alpha1", &listed);
        kinds.add("ipam.cluster.x-k8s.io", "v1beta2", &listed);
        assert_eq!(
            kinds.of("IPAddress").unwrap().resource(),
            "ipaddresses.v1alpha1.ipam.metal3.io"
        );
        let paths: Vec<String> = kinds.all().iter().map(|place| place.path("n")).collect();
        assert_eq!(
            paths,
            [
                "/apis/ipam.metal3.io/v1alpha1/namespaces/n/ipaddresses",
                "/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/n/ipaddresses",
            ]
        );
        assert!(kinds.of("Everywhere").is_err());
    }
}
