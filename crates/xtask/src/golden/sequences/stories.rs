//! The stories that were recorded and are played: what users make and do, and when.

use std::time::Duration;

use serde_json::{Value, json};

/// What the load balancer of the stand-ins gives.
const BALANCED: &str = "198.51.100.153";

/// One story.
#[derive(Debug, Clone, Copy)]
pub(super) struct Story {
    /// Where its recording is.
    pub(super) folder: &'static str,
    /// Name of its Cluster, and of all else in it.
    pub(super) name: &'static str,
    /// Who is compared, as the timeline calls it.
    pub(super) writer: &'static str,
    /// The state that ends it.
    pub(super) until: &'static str,
    /// What is made at first.
    pub(super) made: fn(&str) -> Vec<Value>,
    /// What users do later: after so many seconds, to which object, and what.
    pub(super) done: &'static [(u64, &'static str, fn() -> Value)],
    /// How long it lasts.
    pub(super) lasts: Duration,
}

/// All of them.
pub(super) const STORIES: &[Story] = &[
    Story {
        folder: "kamaji/copied-at-once-paused-deleted",
        name: "kam-d",
        writer: "kamaji-provider",
        until: "05-initialized",
        made: |name| {
            kamaji(
                name,
                &json!({ "controlPlaneEndpointSource": { "type": "ControlPlane" } }),
                &json!({}),
            )
        },
        done: &[],
        lasts: Duration::from_secs(60),
    },
    Story {
        folder: "kamaji/deadlock",
        name: "kam-b",
        writer: "kamaji-provider",
        until: "05-woken-initialized",
        made: |name| kamaji(name, &json!({}), &json!({})),
        done: &[(80, "metal3clusters", || endpoint(BALANCED, 6443))],
        lasts: Duration::from_secs(1200),
    },
    Story {
        folder: "kamaji/published",
        name: "kamaji-1",
        writer: "kamaji-provider",
        until: "03-initialized",
        made: |name| kamaji(name, &endpoint(BALANCED, 6443)["spec"], &json!({})),
        done: &[],
        lasts: Duration::from_secs(60),
    },
    Story {
        folder: "kamaji/mismatch",
        name: "kam-c",
        writer: "kamaji-provider",
        until: "02-repaired-cluster-keeps-old",
        made: |name| {
            let chosen = json!({ "network": { "serviceAddress": "192.0.2.152" } });
            kamaji(name, &endpoint("192.0.2.199", 6443)["spec"], &chosen)
        },
        done: &[
            (20, "metal3clusters", || endpoint("192.0.2.152", 6444)),
            (20, "kamajicontrolplanes", || nudge("1")),
            (30, "metal3clusters", || endpoint("192.0.2.152", 6443)),
            (30, "kamajicontrolplanes", || nudge("2")),
        ],
        lasts: Duration::from_secs(60),
    },
    Story {
        folder: "kamaji/typed-on-control-plane",
        name: "kam-e",
        writer: "kamaji-provider",
        until: "02-initialized",
        made: |name| {
            let chosen = json!({
                "network": { "serviceAddress": "192.0.2.154" }, "controlPlaneEndpoint": { "host": "10.9.9.9", "port": 7443 },
            });
            kamaji(name, &json!({}), &chosen)
        },
        done: &[(34, "metal3clusters", || endpoint("192.0.2.154", 6443))],
        lasts: Duration::from_secs(1200),
    },
    Story {
        folder: "byoh",
        name: "byoh-cluster",
        writer: "byoh",
        until: "01-byocluster-ready",
        made: |name| byoh(name, "192.0.2.20", 6443),
        done: &[],
        lasts: Duration::from_secs(30),
    },
    Story {
        folder: "byoh",
        name: "byo-empty",
        writer: "byoh",
        until: "03-empty-endpoint-copied",
        made: |name| byoh(name, "", 0),
        done: &[],
        lasts: Duration::from_secs(30),
    },
];

fn endpoint(host: &str, port: u16) -> Value {
    json!({ "spec": { "controlPlaneEndpoint": { "host": host, "port": port } } })
}

fn nudge(number: &str) -> Value {
    json!({ "metadata": { "annotations": { "lab/nudge": number } } })
}

fn cluster(name: &str, infrastructure: &str, control_plane: Option<&str>) -> Value {
    let refers = |group: &str, kind: &str| json!({ "apiGroup": format!("{group}.cluster.x-k8s.io"), "kind": kind, "name": name });
    let control_plane = control_plane.map(|kind| refers("controlplane", kind));
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": name },
        "spec": { "infrastructureRef": refers("infrastructure", infrastructure), "controlPlaneRef": control_plane },
    })
}

/// A Cluster with a Metal3Cluster of this spec, and a control plane of Kamaji that says this besides.
fn kamaji(name: &str, metal3: &Value, besides: &Value) -> Vec<Value> {
    let mut spec = json!({ "version": "v1.33.0", "replicas": 2 });
    for (member, value) in besides.as_object().into_iter().flatten() {
        spec[member] = value.clone();
    }
    vec![
        cluster(name, "Metal3Cluster", Some("KamajiControlPlane")),
        json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster",
            "metadata": { "name": name }, "spec": metal3,
        }),
        json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha2", "kind": "KamajiControlPlane",
            "metadata": { "name": name }, "spec": spec,
        }),
    ]
}

fn byoh(name: &str, host: &str, port: u16) -> Vec<Value> {
    let mut object = endpoint(host, port);
    object["apiVersion"] = "infrastructure.cluster.x-k8s.io/v1beta2".into();
    object["kind"] = "ByoCluster".into();
    object["metadata"] = json!({ "name": name });
    vec![cluster(name, "ByoCluster", None), object]
}
