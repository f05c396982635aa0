//! The table of built-in kinds, and what the server takes as given of each.

use crate::store::kind::{CRD_GROUP, CRD_PLURAL, Kind, Origin, Version};

/// By kind, what is not checked, not defaulted or not stored. Part of the committed matrix.
pub const TAKEN_AS_GIVEN: [(&str, &str); 15] = [
    ("Namespace", "spec and status; no managed fields"),
    ("Node", "everything; no taint is added; no managed fields"),
    (
        "Secret",
        "what a type requires of the data; sizes; bytes as lists of numbers are rejected",
    ),
    ("ConfigMap", "sizes; bytes as lists of numbers are rejected"),
    (
        "Event",
        "everything but the namespace of the involved object; no managed fields",
    ),
    (
        "Service",
        "everything but the presence of ports; no managed fields; cluster addresses are assigned in sequence",
    ),
    ("ServiceAccount", "everything; no managed fields"),
    (
        "Pod",
        "everything but the presence of containers; no defaults, no admission plugins; no managed fields",
    ),
    (
        "EndpointSlice",
        "endpoints and ports; of the address type only its presence and immutability are checked",
    ),
    ("VolumeAttachment", "everything; no managed fields"),
    (
        "RoleBinding",
        "everything; nothing is authorized by it; no managed fields",
    ),
    (
        "ClusterRoleBinding",
        "everything; nothing is authorized by it; no managed fields",
    ),
    (
        "Lease",
        "the holder; `strategy` and `preferredHolder` are dropped as by a server without coordinated election",
    ),
    (
        "Deployment",
        "everything but selector and template labels; the syntax of labels; only replicas are defaulted; no managed fields",
    ),
    (
        "CustomResourceDefinition",
        "everything but names, versions and schemas; names are not defaulted; no managed fields",
    ),
];

struct BuiltIn {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    status: bool,
    generations: bool,
}

const BUILT_IN: [BuiltIn; 15] = [
    core("Namespace", "namespaces", &["ns"], false, true),
    core("Node", "nodes", &["no"], false, true),
    core("Secret", "secrets", &[], true, false),
    core("ConfigMap", "configmaps", &["cm"], true, false),
    core("Event", "events", &["ev"], true, false),
    core("Service", "services", &["svc"], true, true),
    core("ServiceAccount", "serviceaccounts", &["sa"], true, false),
    BuiltIn {
        generations: true,
        ..core("Pod", "pods", &["po"], true, true)
    },
    BuiltIn {
        group: "discovery.k8s.io",
        generations: true,
        ..core("EndpointSlice", "endpointslices", &[], true, false)
    },
    BuiltIn {
        group: "storage.k8s.io",
        ..core("VolumeAttachment", "volumeattachments", &[], false, true)
    },
    BuiltIn {
        group: "rbac.authorization.k8s.io",
        ..core("RoleBinding", "rolebindings", &[], true, false)
    },
    BuiltIn {
        group: "rbac.authorization.k8s.io",
        ..core("ClusterRoleBinding", "clusterrolebindings", &[], false, false)
    },
    BuiltIn {
        group: "coordination.k8s.io",
        ..core("Lease", "leases", &[], true, false)
    },
    BuiltIn {
        group: "apps",
        generations: true,
        ..core("Deployment", "deployments", &["deploy"], true, true)
    },
    BuiltIn {
        group: CRD_GROUP,
        generations: true,
        ..core("CustomResourceDefinition", CRD_PLURAL, &["crd", "crds"], false, true)
    },
];

const fn core(
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    namespaced: bool,
    status: bool,
) -> BuiltIn {
    BuiltIn {
        group: "",
        kind,
        plural,
        short_names,
        namespaced,
        status,
        generations: false,
    }
}

/// Group, kind and plural of each built-in kind; all have the version `v1`.
#[must_use]
pub fn built_in_names() -> [[&'static str; 3]; 15] {
    BUILT_IN.each_ref().map(|row| [row.group, row.kind, row.plural])
}

/// The built-in kinds.
pub(in crate::store) fn built_in() -> Vec<Kind> {
    BUILT_IN.iter().map(kind).collect()
}

fn kind(row: &BuiltIn) -> Kind {
    Kind {
        group: row.group.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: row.short_names.iter().map(|name| (*name).to_owned()).collect(),
        categories: Vec::new(),
        namespaced: row.namespaced,
        storage: "v1".to_owned(),
        versions: vec![Version {
            name: "v1".to_owned(),
            status: row.status,
            schema: None,
            shape: super::shape(row.kind),
            deprecated: false,
        }],
        origin: Origin::BuiltIn {
            generations: row.generations,
        },
        converts: false,
    }
}

/// Whether this group belongs to Kubernetes, most of whose resources are not simulated.
pub(in crate::store) fn is_built_in_group(group: &str) -> bool {
    group.is_empty() || !group.contains('.') || group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_row_in_the_list_of_unchecked_parts() {
        let documented = TAKEN_AS_GIVEN.map(|(kind, _)| kind);
        let mut known = BUILT_IN.each_ref().map(|row| row.kind);
        let mut documented_sorted = documented;
        documented_sorted.sort_unstable();
        known.sort_unstable();
        assert_eq!(documented_sorted, known);
    }
}
