//! The table of built-in kinds, and what the server takes as given of each.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use metal3_schema::Schema;

use crate::store::kind::{CRD_GROUP, CRD_PLURAL, Kind, Origin, Scale, Version};
use crate::store::openapi::{self, Typed};

/// By kind, what is not checked, not defaulted or not stored. Part of the committed matrix.
pub const TAKEN_AS_GIVEN: [(&str, &str); 29] = [
    ("Namespace", "spec and status"),
    ("Node", "values of all fields; no taint is added"),
    (
        "Secret",
        "what the less frequent types require of the data; bytes as lists of numbers are rejected",
    ),
    ("ConfigMap", "bytes as lists of numbers are rejected"),
    ("Event", "values of all fields but the namespace of the involved object"),
    (
        "Service",
        "values of all fields but the presence, the numbers and the names of ports; cluster addresses are assigned in sequence",
    ),
    ("ServiceAccount", "values of all fields"),
    (
        "Pod",
        "values of all fields but the names and images of containers; of admission plugins only the usual tolerations, the priority and the limits of a LimitRange",
    ),
    ("ResourceQuota", "values of all fields; nothing is limited by it"),
    ("LimitRange", "values of all fields; nothing is limited by it"),
    (
        "EndpointSlice",
        "endpoints and ports; of the address type only its presence and immutability are checked",
    ),
    ("VolumeAttachment", "values of all fields"),
    (
        "Role",
        "values of all fields; only impersonated users are authorized by it, who cannot write one",
    ),
    (
        "RoleBinding",
        "values of all fields, but the role stays; only impersonated users are authorized by it, who cannot write one",
    ),
    (
        "ClusterRole",
        "values of all fields; only impersonated users are authorized by it, who cannot write one",
    ),
    (
        "ClusterRoleBinding",
        "values of all fields, but the role stays; only impersonated users are authorized by it, who cannot write one",
    ),
    (
        "Lease",
        "the holder; `strategy` and `preferredHolder` are dropped as by a server without coordinated election",
    ),
    (
        "Deployment",
        "values of all fields but selector, template labels, containers, replicas and strategy; the syntax of labels",
    ),
    ("ReplicaSet", "values of all fields"),
    ("Endpoints", "values of all fields"),
    (
        "PersistentVolume",
        "values of all fields; no volume is bound, none is protected, and the status is empty",
    ),
    (
        "PersistentVolumeClaim",
        "values of all fields; no volume is bound, no claim is protected, and the status is empty",
    ),
    ("ReplicationController", "values of all fields; no Pods are made"),
    (
        "DaemonSet",
        "values of all fields; no Pods are made, and the status is empty",
    ),
    (
        "StatefulSet",
        "values of all fields; no Pods are made, and the status is empty",
    ),
    ("Job", "values of all fields; no Pods are made, and no selector"),
    ("CronJob", "values of all fields; no Jobs are made"),
    ("Ingress", "values of all fields"),
    (
        "CustomResourceDefinition",
        "the cost and the types of rules; webhooks and strategy of a conversion; selectable fields and the paths of `scale`; \
         `preserveUnknownFields`; the text of a deprecation; formats of columns; that kind and list kind differ; an approval that is taken off",
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
    /// The category by which clients list it, such as `all`.
    category: &'static str,
    /// The warning of each request.
    deprecated: Option<&'static str>,
    scaled: bool,
}

const BUILT_IN: [BuiltIn; 29] = [
    core("Namespace", "namespaces", &["ns"], false, true),
    core("Node", "nodes", &["no"], false, true),
    core("Secret", "secrets", &[], true, false),
    core("ConfigMap", "configmaps", &["cm"], true, false),
    core("Event", "events", &["ev"], true, false),
    BuiltIn {
        category: "all",
        ..core("Service", "services", &["svc"], true, true)
    },
    core("ResourceQuota", "resourcequotas", &["quota"], true, true),
    core("LimitRange", "limitranges", &["limits"], true, false),
    core("ServiceAccount", "serviceaccounts", &["sa"], true, false),
    BuiltIn {
        generations: true,
        category: "all",
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
        ..core("Role", "roles", &[], true, false)
    },
    BuiltIn {
        group: "rbac.authorization.k8s.io",
        ..core("ClusterRole", "clusterroles", &[], false, false)
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
        category: "all",
        scaled: true,
        ..core("Deployment", "deployments", &["deploy"], true, true)
    },
    BuiltIn {
        group: "apps",
        generations: true,
        category: "all",
        scaled: true,
        ..core("ReplicaSet", "replicasets", &["rs"], true, true)
    },
    BuiltIn {
        deprecated: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ..core("Endpoints", "endpoints", &["ep"], true, false)
    },
    core("PersistentVolume", "persistentvolumes", &["pv"], false, true),
    core("PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], true, true),
    BuiltIn {
        generations: true,
        category: "all",
        scaled: true,
        ..core("ReplicationController", "replicationcontrollers", &["rc"], true, true)
    },
    BuiltIn {
        group: "apps",
        generations: true,
        category: "all",
        ..core("DaemonSet", "daemonsets", &["ds"], true, true)
    },
    BuiltIn {
        group: "apps",
        generations: true,
        category: "all",
        scaled: true,
        ..core("StatefulSet", "statefulsets", &["sts"], true, true)
    },
    BuiltIn {
        group: "batch",
        generations: true,
        category: "all",
        ..core("Job", "jobs", &[], true, true)
    },
    BuiltIn {
        group: "batch",
        generations: true,
        category: "all",
        ..core("CronJob", "cronjobs", &["cj"], true, true)
    },
    BuiltIn {
        group: "networking.k8s.io",
        generations: true,
        ..core("Ingress", "ingresses", &["ing"], true, true)
    },
    BuiltIn {
        group: CRD_GROUP,
        generations: true,
        category: "api-extensions",
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
        category: "",
        deprecated: None,
        scaled: false,
    }
}

/// The built-in kinds.
pub(in crate::store) fn built_in() -> Vec<Kind> {
    BUILT_IN.iter().map(kind).collect()
}

/// The schemas by which objects are decoded, read once for all servers of a process.
static SHAPES: LazyLock<BTreeMap<&str, Arc<Schema>>> = LazyLock::new(|| {
    let shape = |row: &BuiltIn| super::shape(row.kind).or_else(|| openapi::shape(row.group, row.kind));
    let rows = BUILT_IN.iter();
    rows.filter_map(|row| Some((row.kind, Arc::new(shape(row)?)))).collect()
});

/// The types of their fields.
static TYPES: LazyLock<BTreeMap<&str, Arc<Typed>>> = LazyLock::new(|| {
    let typed = |row: &BuiltIn| Some((row.kind, Arc::new(openapi::typed(row.group, row.kind)?)));
    BUILT_IN.iter().filter_map(typed).collect()
});

fn scale() -> Scale {
    Scale {
        wanted: "/spec/replicas".to_owned(),
        found: "/status/replicas".to_owned(),
        selector: Some("/spec/selector".to_owned()),
    }
}

fn kind(row: &BuiltIn) -> Kind {
    Kind {
        group: row.group.to_owned(),
        kind: row.kind.to_owned(),
        list_kind: format!("{}List", row.kind),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: row.short_names.iter().map(|name| (*name).to_owned()).collect(),
        categories: Some(row.category.to_owned())
            .filter(|name| !name.is_empty())
            .into_iter()
            .collect(),
        namespaced: row.namespaced,
        storage: "v1".to_owned(),
        versions: vec![Version {
            name: "v1".to_owned(),
            status: row.status,
            schema: None,
            shape: SHAPES.get(row.kind).cloned(),
            typed: TYPES.get(row.kind).cloned(),
            deprecated: row.deprecated.is_some(),
            warning: row.deprecated.map(str::to_owned),
            selectable: Vec::new(),
            scale: row.scaled.then(scale),
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
