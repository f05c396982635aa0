//! Roles and webhooks for a process that watches one namespace: `PRODUCT-namespaced.yaml`.
//!
//! Applied with `kubectl apply --namespace NAME` after the components, with `${WATCHED_NAMESPACE}` replaced by the name.
//! The ClusterRoles keep only what belongs to no namespace, and the rest becomes a Role of that namespace. The webhooks
//! review objects of that namespace: the process does not watch the others, so it would have to refuse what depends on
//! their objects. The API server rejects a name that was not replaced.

use std::collections::BTreeSet;

use metal3_flags::CertificateSource;
use metal3_grants::is_cluster_scoped;
use metal3_runtime::access::Permission;
use serde_json::{Value, json};

use super::install::{ClusterGrant, RBAC, binding, cluster_object, endpoint_reader, grants_of};
use super::layout::{Layout, WATCHED};
use super::rules::rules;

/// The documents. Those without a namespace are for the one that `kubectl` is called with.
pub(super) fn documents(layout: &Layout, certificates: CertificateSource) -> Vec<Value> {
    let mut documents = Vec::new();
    for ClusterGrant { role, needs } in grants_of(layout, certificates).0 {
        let (mut everywhere, mut here) = (Vec::new(), Vec::new());
        for (needs, names) in needs {
            // A name limits the permission already: the Deployment of a Go manager is in another namespace.
            let (cluster, namespaced): (BTreeSet<Permission>, BTreeSet<Permission>) = needs
                .into_iter()
                .partition(|need| !names.is_empty() || is_cluster_scoped(need));
            everywhere.extend(rules(&cluster, &names));
            here.extend(rules(&namespaced, &names));
        }
        documents.push(cluster_object(
            layout,
            RBAC,
            "ClusterRole",
            &role,
            json!({ "rules": everywhere }),
        ));
        if !here.is_empty() {
            documents.push(local(layout, "Role", &role, json!({ "rules": here })));
            documents.push(local(
                layout,
                "RoleBinding",
                &format!("{role}binding"),
                binding(layout, "Role", &role),
            ));
        }
    }
    for mut document in endpoint_reader(layout) {
        if document.get("kind").and_then(Value::as_str) != Some("ClusterRoleBinding") {
            continue;
        }
        let name = layout.suite.named("endpoint-reader");
        documents.push(local(
            layout,
            "RoleBinding",
            &name,
            binding(layout, "ClusterRole", &name),
        ));
        // Without subjects it grants nothing.
        if let Value::Object(members) = &mut document {
            members.insert("subjects".into(), json!([]));
        }
        documents.push(document);
    }
    documents.extend(super::webhooks(layout, certificates).into_iter().map(of_watched));
    documents
}

/// The same webhooks for objects of the watched namespace.
fn of_watched(mut configuration: Value) -> Value {
    let webhooks = configuration.pointer_mut("/webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten().filter_map(Value::as_object_mut) {
        let selector = json!({ "matchLabels": { "kubernetes.io/metadata.name": WATCHED } });
        webhook.insert("namespaceSelector".to_owned(), selector);
    }
    configuration
}

/// An object without a namespace of its own.
fn local(layout: &Layout, kind: &str, name: &str, rest: Value) -> Value {
    cluster_object(layout, RBAC, kind, name, rest)
}

#[cfg(test)]
mod tests {
    use metal3_api::catalog;

    use super::super::{layout, tests::FORMS};
    use super::*;

    const LAYOUTS: [&Layout; 4] = [
        &layout::IPAM,
        &layout::INFRASTRUCTURE,
        &layout::HOSTS,
        &layout::ALL_IN_ONE,
    ];

    fn rules_of<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
        let roles = documents.iter().filter(|document| document["kind"] == kind);
        roles.flat_map(|role| role["rules"].as_array().unwrap()).collect()
    }

    /// Resource and verb of each permission.
    fn permissions<'a>(rules: impl IntoIterator<Item = &'a Value>) -> BTreeSet<(String, String)> {
        let mut found = BTreeSet::new();
        for rule in rules {
            let all = |member: &str| {
                rule[member]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|text| text.as_str().unwrap())
            };
            for resource in all("resources") {
                let group = rule["apiGroups"][0].as_str().unwrap();
                found.extend(all("verbs").map(|verb| (format!("{resource}.{group}"), verb.to_owned())));
            }
        }
        found
    }

    #[test]
    fn only_resources_without_a_namespace_and_named_objects_are_granted_for_all_namespaces() {
        for (layout, form) in LAYOUTS.iter().flat_map(|layout| FORMS.map(|form| (*layout, form))) {
            let documents = documents(layout, form);
            for rule in rules_of(&documents, "ClusterRole") {
                let group = rule["apiGroups"][0].as_str().unwrap();
                let is_review = ["authentication.k8s.io", "authorization.k8s.io"].contains(&group);
                assert!(is_review || rule["resourceNames"].is_array(), "{}: {rule}", layout.name);
            }
            for rule in rules_of(&documents, "Role") {
                assert_eq!(rule.get("resourceNames"), None, "{rule}");
                let group = rule["apiGroups"][0].as_str().unwrap();
                let is_namespaced = matches!(
                    group,
                    "" | "cluster.x-k8s.io" | "ipam.cluster.x-k8s.io" | "ironic.metal3.io"
                ) || catalog::definitions()
                    .iter()
                    .any(|definition| definition.group == group);
                assert!(is_namespaced || group == "controlplane.cluster.x-k8s.io", "{rule}");
            }
        }
    }

    #[test]
    fn the_roles_together_grant_what_the_components_grant() {
        for (layout, form) in LAYOUTS.iter().flat_map(|layout| FORMS.map(|form| (*layout, form))) {
            let (cluster_wide, _) = grants_of(layout, form);
            let wanted: Vec<Value> = cluster_wide
                .iter()
                .flat_map(|grant| grant.needs.iter().flat_map(|(needs, names)| rules(needs, names)))
                .collect();
            let documents = documents(layout, form);
            let both = ["ClusterRole", "Role"].map(|kind| rules_of(&documents, kind));
            assert_eq!(
                permissions(both.into_iter().flatten()),
                permissions(&wanted),
                "{}",
                layout.name
            );
        }
    }

    #[test]
    fn webhooks_review_objects_of_the_watched_namespace_alone() {
        for (layout, form) in LAYOUTS.iter().flat_map(|layout| FORMS.map(|form| (*layout, form))) {
            let is_webhooks = |document: &Value| document["webhooks"].is_array();
            let installed = super::super::documents_of(layout, "image", form).into_iter();
            let installed: Vec<Value> = installed.filter(is_webhooks).collect();
            let mut limited: Vec<Value> = documents(layout, form).into_iter().filter(is_webhooks).collect();
            let selector = json!({ "matchLabels": { "kubernetes.io/metadata.name": "${WATCHED_NAMESPACE}" } });
            for webhook in limited
                .iter_mut()
                .flat_map(|one| one["webhooks"].as_array_mut().unwrap())
            {
                let found = webhook.as_object_mut().unwrap().remove("namespaceSelector");
                assert_eq!(found.as_ref(), Some(&selector), "{}: {}", layout.name, webhook["name"]);
            }
            assert_eq!(limited, installed, "{}: otherwise the same", layout.name);
            assert!(!installed.is_empty());
        }
    }

    #[test]
    fn objects_are_in_the_namespace_of_the_command_and_bound_to_the_account() {
        for layout in LAYOUTS {
            let documents = documents(layout, CertificateSource::Mounted);
            for document in &documents {
                assert_eq!(document["metadata"].get("namespace"), None, "{document}");
                let subjects = &document["subjects"];
                match document["kind"].as_str().unwrap() {
                    "RoleBinding" => {
                        assert_eq!(subjects[0]["name"], layout.account);
                        assert_eq!(subjects[0]["namespace"], layout.suite.namespace);
                    }
                    "ClusterRoleBinding" => assert_eq!(*subjects, json!([])),
                    _ => {}
                }
            }
            let reads_endpoints = layout.aggregated_by().is_some();
            let unbound = documents
                .iter()
                .any(|document| document["kind"] == "ClusterRoleBinding");
            assert_eq!(unbound, reads_endpoints, "{}", layout.name);
        }
    }
}
