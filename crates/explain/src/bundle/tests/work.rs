//! The work for a fleet grows with its size: looks at objects are counted, not time.

use super::*;
use crate::offline::report;
use crate::view::View;
use crate::work;

/// Machines without a host, whose hosts have errors, and machines with data and addresses: five objects each.
fn fleet(machines: usize) -> Vec<Value> {
    let meta = |name: String, extra: Value| {
        let mut meta = json!({ "name": name, "namespace": "lab", "uid": name, "labels": { "cluster.x-k8s.io/cluster-name": "edge" } });
        if let (Some(meta), Some(extra)) = (meta.as_object_mut(), extra.as_object()) {
            meta.extend(extra.clone());
        }
        meta
    };
    let infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2";
    let owned = |kind: &str, name: String| json!({ "ownerReferences": [{ "apiVersion": infrastructure, "kind": kind, "name": name, "uid": name }] });
    let failed = json!([{ "type": "AssociateBareMetalHost", "status": "False", "reason": "AssociateBareMetalHostFailed", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    let mut objects = vec![
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta("edge".to_owned(), json!({})),
            "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "edge" } },
            "status": { "initialization": { "infrastructureProvisioned": true } } }),
    ];
    for number in 0..machines {
        let (machine, host, data) = (format!("m{number}"), format!("h{number}"), format!("d{number}"));
        let is_bound = number % 2 == 0;
        let annotations = json!({ "annotations": { "metal3.io/BareMetalHost": format!("lab/{host}") } });
        let consumer = json!({ "kind": "Metal3Machine", "name": machine, "namespace": "lab" });
        objects.extend([
            json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": meta(machine.clone(), json!({})),
                "spec": { "clusterName": "edge", "bootstrap": { "dataSecretName": "x" },
                    "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": machine } } }),
            json!({ "apiVersion": infrastructure, "kind": "Metal3Machine",
                "metadata": meta(machine.clone(), if is_bound { annotations } else { json!({}) }),
                "status": { "conditions": if is_bound { json!([]) } else { failed.clone() } } }),
            json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": meta(host.clone(), json!({})),
                "spec": { "online": true, "consumerRef": if is_bound { consumer } else { Value::Null } },
                "status": { "operationalStatus": "error", "errorType": "inspection error", "errorMessage": "x", "errorCount": 1,
                    "poweredOn": false, "provisioning": { "state": "inspecting", "ID": "", "image": { "url": "" } } } }),
            json!({ "apiVersion": infrastructure, "kind": "Metal3Data", "metadata": meta(data.clone(), json!({})),
                "spec": { "index": number }, "status": { "ready": false } }),
            json!({ "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPClaim", "metadata": meta(data.clone(), owned("Metal3Data", data.clone())),
                "spec": { "pool": { "name": "lan" } } }),
            json!({ "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPAddress", "metadata": meta(data.clone(), json!({})),
                "spec": { "address": "192.0.2.1", "pool": { "name": "lan" }, "claim": { "name": data } } }),
        ]);
    }
    objects
}

/// The looks at objects of each command for a fleet of this size.
fn looks(machines: usize) -> Vec<(&'static str, u64)> {
    let objects = fleet(machines);
    let counted = |name: &'static str, run: &dyn Fn()| {
        work::take();
        run();
        (name, work::take())
    };
    let of_view = |view: View| {
        let report = report(&view, &objects, Time::default());
        assert!(report.not_read.is_empty());
    };
    vec![
        counted("support-bundle", &|| {
            let files = files(&snapshot(&objects), &(Vec::new(), Vec::new()), None, Time::default());
            let explained = files.iter().filter(|(name, _)| name.starts_with("why/"));
            assert!(explained.count() > machines * 4);
        }),
        counted("tree", &|| of_view(View::Tree("edge".to_owned()))),
        counted("consumers", &|| of_view(View::Consumers)),
        counted("pools", &|| of_view(View::Pools(None))),
        counted("hosts", &|| of_view(View::Hosts(Filter::default()))),
        counted("top", &|| of_view(View::Top)),
    ]
}

#[test]
fn ten_times_the_objects_are_ten_times_the_work() {
    for ((name, few), (_, many)) in looks(40).into_iter().zip(looks(400)) {
        assert!(few > 40, "{name}: {few} looks are counted");
        assert!(many <= few * 11, "{name}: {few} looks at 40 machines, {many} at 400");
    }
}
