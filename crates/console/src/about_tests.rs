use std::sync::atomic::Ordering;

use super::*;

/// A namespace with this many Clusters of 10 machines each.
fn namespace(clusters: usize) -> Shared {
    let shared = Shared::default();
    let group = "cluster.x-k8s.io";
    let ready = json!({ "initialization": { "infrastructureProvisioned": true, "controlPlaneInitialized": true } });
    let object = |kind: &str, name: String, labels: Value, spec: Value| {
        json!({ "apiVersion": format!("{group}/v1beta2"), "kind": kind, "spec": spec, "status": ready.clone(),
            "metadata": { "namespace": "edge", "name": name, "labels": labels, "resourceVersion": "1" } })
    };
    let names = || (0..clusters).map(|number| format!("c{number}"));
    let own = names().map(|name| {
        let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": name });
        object("Cluster", name, json!({}), json!({ "infrastructureRef": reference }))
    });
    let machines = names().flat_map(|cluster| {
        let object = &object;
        (0..10).map(move |number| {
            let labels = json!({ "cluster.x-k8s.io/cluster-name": cluster });
            object(
                "Machine",
                format!("{cluster}-{number}"),
                labels,
                json!({ "clusterName": cluster }),
            )
        })
    });
    let lists: [(_, Vec<Value>); 2] = [("Cluster", own.collect()), ("Machine", machines.collect())];
    for (kind, objects) in lists {
        shared.change(|all| all.replace(&ObjectId::foreign(group, kind, ""), None, objects.clone()));
    }
    shared
}

#[test]
fn objects_of_a_namespace_are_handed_over_once_for_all_of_its_clusters() {
    for count in [1, 10, 40] {
        let shared = namespace(count);
        let found = clusters(&shared);
        assert_eq!(found["clusters"].as_array().map(Vec::len), Some(count));
        let handed = shared.handed.load(Ordering::Relaxed);
        assert!(handed <= 2 * 11 * count, "{handed} objects for {count} Clusters");
    }
}
