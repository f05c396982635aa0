//! Each member of a Metal3Cluster, removed alone, changes the objects that are read, or the plan.

use metal3_harness::without_effect;
use serde_json::{Value, json};

use super::*;
use crate::endpoint::source::{Template, wanted_sources};

/// Objects that together have every member that acts in the plan of the Metal3Cluster.
fn documents() -> Vec<Value> {
    let source = |type_: &str, more: Value| {
        let mut source = json!({ "type": type_ });
        source
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "spec": { "controlPlaneEndpointSource": source } })
    };
    let pool =
        json!({ "name": "vips", "apiGroup": "ipam.example.org", "kind": "Pool", "address": "192.0.2.9", "port": 7443 });
    let render = json!({ "configMapName": "vip", "key": "vip.yaml", "secretName": "edge-vip" });
    let domain = json!({ "name": "rack1", "controlPlane": true, "attributes": { "row": "a" } });
    vec![
        json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 }, "failureDomains": [domain] } }),
        json!({ "spec": { "clusterName": "edge", "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } } }),
        json!({ "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 }, "hostAPI": "HostClaim" } }),
        source("IPPool", json!({ "ipPool": pool, "render": render })),
        source("Service", json!({ "service": { "name": "api", "port": "https" } })),
        source(
            "ControlPlane",
            json!({ "objectRef": { "apiGroup": "example.org", "kind": "Plane", "name": "edge" } }),
        ),
    ]
}

/// What is read and what is done for an object without owner. `None` when the object does not decode.
fn outcome(document: &Value) -> Option<String> {
    let mut document = document.clone();
    apply(
        &json!({ "metadata": { "name": "site", "namespace": "metal", "uid": "u1", "resourceVersion": "7" } }),
        &mut document,
    );
    let object = serde_json::from_value::<Metal3Cluster>(document).ok()?;
    let cluster = cluster(json!({}));
    let wanted = wanted_sources(&object, &cluster, true);
    let values = SourceValues {
        pool: wanted.pool.as_ref().map(|_| SourceValue {
            from: "IPClaim vip".to_owned(),
            state: known("192.0.2.9:7443"),
            idle: None,
        }),
        template: wanted
            .template
            .as_ref()
            .map(|_| Template::Text("{{ host }}".to_owned())),
        ..SourceValues::default()
    };
    let plan = plan(&Facts {
        wanted: wanted.clone(),
        source_values: values,
        ..facts(&object, Observed::Present(&cluster))
    });
    Some(format!(
        "{wanted:?} {:?} {}",
        plan.actions,
        serde_json::to_string(&plan.status).unwrap()
    ))
}

#[test]
fn each_member_of_a_metal3_cluster_changes_its_reads_or_its_plan() {
    // Machines read these two, and conditions name the others as a whole.
    let elsewhere = [
        "spec.cloudProviderEnabled",
        "spec.failureDomainPolicy",
        "spec.identityRef",
        "spec.deploymentZones[]",
    ];
    let mut silent = without_effect(("Metal3Cluster", "v1beta2"), &documents(), outcome);
    silent.retain(|path| !elsewhere.iter().any(|known| path.starts_with(known)));
    assert_eq!(silent, [""; 0]);
}

#[test]
fn object_with_another_label_than_the_watch_filter_is_not_served() {
    let labelled = |labels: Value| object(json!({ "metadata": { "labels": labels } })).metadata;
    let (own, other) = (
        labelled(json!({ "cluster.x-k8s.io/watch-filter": "a" })),
        labelled(json!({})),
    );
    for (metadata, filter, expected) in [
        (&own, None, true),
        (&other, None, true),
        (&own, Some("a"), true),
        (&own, Some("b"), false),
        (&other, Some("a"), false),
    ] {
        assert_eq!(
            crate::cluster::reconciler::is_served(metadata, filter),
            expected,
            "{filter:?}"
        );
    }
}
