//! The columns of `kubectl get` for built-in kinds: headings, whether only a wide table has them, and cells.

use serde_json::{Value, json};

use super::cells::{
    age, containers, count, events_age, external_address, kept, member, node_address, node_status, object_of, pod,
    pod_ready, ports, restarts, roles, selector, subjects, text,
};

/// A cell of an object; the seconds since a time are counted from the second argument.
pub(super) type Cell = fn(&Value, chrono::DateTime<chrono::Utc>) -> Value;

/// A column: heading, priority, cell.
pub(super) type Column = (&'static str, i32, Cell);

const AGE: Column = ("Age", 0, |object, now| {
    age(member(object, "/metadata/creationTimestamp"), now).into()
});
/// A time as it is, unlike an age.
pub(super) const CREATED_AT: Column = ("Created At", 0, |object, _| kept(object, "/metadata/creationTimestamp"));

macro_rules! path {
    ($pointer:literal) => {
        |object, _| kept(object, $pointer)
    };
}

/// The columns of the replicas of any kind.
pub(super) const SCALE: &[Column] = &[
    ("Desired", 0, |object, _| number(object, "/spec/replicas")),
    ("Available", 0, |object, _| number(object, "/status/replicas")),
    AGE,
];

fn number(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_else(|| json!(0))
}

/// The columns after the name; `None` for a kind that has no columns of its own.
pub(super) fn columns(group: &str, plural: &str) -> Option<&'static [Column]> {
    Some(match (group, plural) {
        ("", "configmaps") => &[("Data", 0, |object, _| count(object, &["/data", "/binaryData"])), AGE],
        ("", "secrets") => &[
            ("Type", 0, path!("/type")),
            ("Data", 0, |object, _| count(object, &["/data"])),
            AGE,
        ],
        ("", "namespaces") => &[("Status", 0, path!("/status/phase")), AGE],
        ("", "serviceaccounts") => &[AGE],
        ("", "services") => SERVICE,
        ("", "pods") => POD,
        ("", "nodes") => NODE,
        ("", "events") => EVENT,
        ("", "resourcequotas") => &[("Request", 0, |_, _| json!("")), ("Limit", 0, |_, _| json!("")), AGE],
        ("", "limitranges") | ("rbac.authorization.k8s.io", "roles" | "clusterroles") => &[CREATED_AT],
        ("apiextensions.k8s.io", "customresourcedefinitions") => &[CREATED_AT],
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => BINDING,
        ("coordination.k8s.io", "leases") => &[("Holder", 0, path!("/spec/holderIdentity")), AGE],
        ("apps", "deployments") => DEPLOYMENT,
        ("apps", "replicasets") => &[
            ("Desired", 0, path!("/spec/replicas")),
            ("Current", 0, |object, _| replicas(object, "replicas")),
            ("Ready", 0, |object, _| replicas(object, "readyReplicas")),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        _ => return None,
    })
}

const CONTAINERS: Column = ("Containers", 1, |object, _| containers(object, "name"));
const IMAGES: Column = ("Images", 1, |object, _| containers(object, "image"));
const SELECTOR: Column = ("Selector", 1, |object, _| selector(member(object, "/spec/selector")));

fn replicas(object: &Value, name: &str) -> Value {
    object
        .pointer(&format!("/status/{name}"))
        .cloned()
        .unwrap_or_else(|| json!(0))
}

const DEPLOYMENT: &[Column] = &[
    ("Ready", 0, |object, _| {
        let wanted = object
            .pointer("/spec/replicas")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        json!(format!("{}/{wanted}", replicas(object, "readyReplicas")))
    }),
    ("Up-to-date", 0, |object, _| replicas(object, "updatedReplicas")),
    ("Available", 0, |object, _| replicas(object, "availableReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

const SERVICE: &[Column] = &[
    ("Type", 0, path!("/spec/type")),
    ("Cluster-IP", 0, |object, _| match text(object, "/spec/clusterIP") {
        "" => json!("<none>"),
        address => json!(address),
    }),
    ("External-IP", 0, |object, _| external_address(object)),
    ("Port(s)", 0, |object, _| ports(object)),
    AGE,
    ("Selector", 1, |object, _| {
        let labels = json!({ "matchLabels": member(object, "/spec/selector") });
        selector(&labels)
    }),
];

const POD: &[Column] = &[
    ("Ready", 0, |object, _| pod_ready(object)),
    ("Status", 0, |object, _| pod(object)),
    ("Restarts", 0, |object, _| restarts(object)),
    AGE,
    ("IP", 1, |object, _| or_none(text(object, "/status/podIP"))),
    ("Node", 1, |object, _| or_none(text(object, "/spec/nodeName"))),
    ("Nominated Node", 1, |object, _| {
        or_none(text(object, "/status/nominatedNodeName"))
    }),
    ("Readiness Gates", 1, |_, _| json!("<none>")),
];

fn or_none(text: &str) -> Value {
    json!(if text.is_empty() { "<none>" } else { text })
}

const NODE: &[Column] = &[
    ("Status", 0, |object, _| node_status(object)),
    ("Roles", 0, |object, _| roles(object)),
    AGE,
    ("Version", 0, |object, _| {
        json!(text(object, "/status/nodeInfo/kubeletVersion"))
    }),
    ("Internal-IP", 1, |object, _| node_address(object, "InternalIP")),
    ("External-IP", 1, |object, _| node_address(object, "ExternalIP")),
    ("OS-Image", 1, |object, _| {
        or_unknown(text(object, "/status/nodeInfo/osImage"))
    }),
    ("Kernel-Version", 1, |object, _| {
        let architecture = text(object, "/status/nodeInfo/architecture");
        match text(object, "/status/nodeInfo/kernelVersion") {
            "" => or_unknown(""),
            version if architecture.is_empty() => json!(version),
            version => json!(format!("{version} ({architecture})")),
        }
    }),
    ("Container-Runtime", 1, |object, _| {
        or_unknown(text(object, "/status/nodeInfo/containerRuntimeVersion"))
    }),
];

fn or_unknown(text: &str) -> Value {
    json!(if text.is_empty() { "<unknown>" } else { text })
}

const EVENT: &[Column] = &[
    ("Last Seen", 0, |object, now| events_age(object, now)),
    ("Type", 0, path!("/type")),
    ("Reason", 0, path!("/reason")),
    ("Object", 0, |object, _| object_of(object)),
    ("Subobject", 1, |object, _| {
        json!(text(object, "/involvedObject/fieldPath"))
    }),
    ("Source", 1, |object, _| json!(text(object, "/source/component"))),
    ("Message", 0, |object, _| json!(text(object, "/message").trim())),
    ("First Seen", 1, |object, now| {
        age(member(object, "/firstTimestamp"), now).into()
    }),
    ("Count", 1, path!("/count")),
    ("Name", 1, path!("/metadata/name")),
];

const BINDING: &[Column] = &[
    ("Role", 0, |object, _| {
        json!(format!(
            "{}/{}",
            text(object, "/roleRef/kind"),
            text(object, "/roleRef/name")
        ))
    }),
    AGE,
    ("Users", 1, |object, _| subjects(object, "User")),
    ("Groups", 1, |object, _| subjects(object, "Group")),
    ("ServiceAccounts", 1, |object, _| subjects(object, "ServiceAccount")),
];
