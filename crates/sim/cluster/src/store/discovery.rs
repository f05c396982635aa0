//! Discovery documents: versions, groups, resources, health.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::builtin::is_built_in_group;
use super::kind::Kind;
use super::request::Request;
use super::{Answer, Store, aggregated};

impl Store {
    /// Answers a discovery request; `None` for other paths.
    pub(super) fn discover(&self, request: &Request) -> Option<Answer> {
        if request.method != "GET" {
            return None;
        }
        let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        let is_aggregated = aggregated::is_wanted(&request.accept);
        let document = match parts.as_slice() {
            ["api" | "apis"] if is_aggregated => return Some(Answer::Groups(self.aggregated(&parts))),
            // No definitions, in the binary form that clients ask for: those of version 3 are complete.
            ["openapi", "v2"] => return Some(Answer::Text("")),
            ["healthz" | "livez" | "readyz"] => return Some(Answer::Text("ok")),
            ["healthz" | "livez" | "readyz", "etcd" | "log" | "ping"] => return Some(Answer::Text("ok")),
            ["version"] => json!({
                "major": "1", "minor": "36", "gitVersion": "v1.36.0+simulated", "gitCommit": "", "gitTreeState": "",
                "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
            }),
            ["api"] => json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
            }),
            ["apis"] => {
                let groups: Vec<Value> = self
                    .groups()
                    .into_iter()
                    .map(|(name, versions)| group(name, &versions))
                    .collect();
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
            }
            ["apis", name] => {
                let groups = self.groups();
                let mut document = group(name, groups.get(name)?);
                super::object::as_map(&mut document).insert("kind".into(), "APIGroup".into());
                super::object::as_map(&mut document).insert("apiVersion".into(), "v1".into());
                document
            }
            ["api", version] => self.resources("", version)?,
            ["apis", group, version] => self.resources(group, version)?,
            _ => return None,
        };
        Some(Answer::ok(document))
    }

    /// The core group, or all others, in one document.
    fn aggregated(&self, parts: &[&str]) -> Value {
        let group = |name: &str, versions: &[&str]| {
            let documents = versions
                .iter()
                .map(|version| self.resources(name, version).unwrap_or_default());
            let versions: Vec<(&str, Value)> = versions.iter().copied().zip(documents).collect();
            aggregated::group(name, &versions, !is_built_in_group(name))
        };
        aggregated::list(match parts {
            ["api"] => vec![group("", &["v1"])],
            _ => self
                .groups()
                .iter()
                .map(|(name, versions)| group(name, versions))
                .collect(),
        })
    }

    /// Groups other than the core one, with their versions.
    fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for kind in self.kinds.values().filter(|kind| !kind.group.is_empty()) {
            let versions = groups.entry(&kind.group).or_default();
            for version in &kind.versions {
                if !versions.contains(&version.name.as_str()) {
                    versions.push(&version.name);
                }
            }
        }
        // The preferred version comes first.
        for versions in groups.values_mut() {
            versions.sort_by_key(|version| Reverse(priority(version)));
        }
        groups
    }

    fn resources(&self, group: &str, version: &str) -> Option<Value> {
        let mut resources = Vec::new();
        for kind in self.kinds.values().filter(|kind| kind.group == group) {
            let Some(found) = kind.version(version) else { continue };
            resources.push(resource(kind));
            if found.scale.is_some() {
                resources.push(json!({
                    "name": format!("{}/scale", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                    "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
                }));
            }
            if found.status {
                resources.push(json!({
                    "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                    "kind": kind.kind, "verbs": ["get", "patch", "update"],
                }));
            }
        }
        let name = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        (!resources.is_empty()).then(
            || json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}),
        )
    }
}

/// The rank of a version: stable ones before betas and alphas, then by number.
pub(super) fn priority(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let rest = version.strip_prefix('v').unwrap_or(version);
    for (rank, stage) in [(1, "beta"), (0, "alpha")] {
        if let Some((major, minor)) = rest.split_once(stage) {
            return (rank, number(major), number(minor));
        }
    }
    (2, number(rest), 0)
}

fn group(name: &str, versions: &[&str]) -> Value {
    let row = |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let rows: Vec<Value> = versions.iter().map(row).collect();
    json!({"name": name, "preferredVersion": rows.first().cloned().unwrap_or_default(), "versions": rows})
}

fn resource(kind: &Kind) -> Value {
    let mut verbs = match kind.is_custom() {
        true => vec![
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "create",
            "update",
            "watch",
        ],
        false => vec![
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ],
    };
    verbs.retain(|verb| kind.kind != "Namespace" || *verb != "deletecollection");
    let mut document = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
        "verbs": verbs,
    });
    let map = super::object::as_map(&mut document);
    for (name, list) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !list.is_empty() {
            map.insert(name.into(), json!(list));
        }
    }
    document
}
