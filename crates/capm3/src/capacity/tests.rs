//! The figures as tables.

use metal3_api::cluster::MachineDeployment;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Indexes as _, Key};
use serde_json::{Value, json};

use super::*;

fn host(changes: Value) -> BareMetalHost {
    let mut host = json!({
        "metadata": { "name": "h", "namespace": "a", "labels": {} }, "spec": { "online": true },
        "status": { "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0,
            "provisioning": { "state": "available", "ID": "", "image": { "url": "" } }, "hardware": {
            "cpu": { "arch": "x86_64", "count": 16 }, "ramMebibytes": 65536,
            "storage": [{ "name": "/dev/sda", "sizeBytes": 500_000_000_000_i64 }, { "name": "/dev/sdb", "sizeBytes": 1_000_000_000 }],
        } },
    });
    merge(&mut host, changes);
    serde_json::from_value(host).unwrap()
}

fn merge(into: &mut Value, changes: Value) {
    match (into, changes) {
        (Value::Object(into), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(into.entry(name).or_insert(Value::Null), change);
            }
        }
        (into, changes) => *into = changes,
    }
}

fn hardware(changes: Value) -> BareMetalHost {
    host(json!({ "status": { "hardware": changes } }))
}

/// As the cluster autoscaler reads it: both maps have texts only, and it scales from zero with processors and memory.
fn status(hosts: &[BareMetalHost]) -> Value {
    serde_json::to_value(status_of(hosts)).unwrap()
}

fn usual() -> Value {
    json!({
        "capacity": { "cpu": "16", "memory": "65536Mi", "ephemeral-storage": "500000000000" },
        "nodeInfo": { "architecture": "amd64", "operatingSystem": "linux" },
    })
}

/// The usual status with these changes; null removes a member.
fn changed(changes: Value) -> Value {
    let mut expected = usual();
    merge(&mut expected, changes);
    for part in expected.as_object_mut().unwrap().values_mut() {
        part.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    expected
}

#[test]
fn capacity_is_what_each_host_has_at_least() {
    let without_disk = || changed(json!({ "capacity": { "ephemeral-storage": null } }));
    for (what, hosts, expected) in [
        ("no host", vec![], json!({})),
        ("one", vec![host(json!({}))], usual()),
        (
            "each resource has its own least",
            vec![
                hardware(json!({ "cpu": { "count": 8 } })),
                hardware(json!({ "ramMebibytes": 1024 })),
                hardware(json!({ "storage": [{ "sizeBytes": 8_000_000_000_i64 }] })),
            ],
            changed(json!({ "capacity": { "cpu": "8", "memory": "1024Mi", "ephemeral-storage": "8000000000" } })),
        ),
        (
            "a host that is not inspected says nothing",
            vec![host(json!({})), host(json!({ "status": { "hardware": null } }))],
            usual(),
        ),
        (
            "a host that does not report its memory",
            vec![host(json!({})), hardware(json!({ "ramMebibytes": 0 }))],
            json!({}),
        ),
        ("without processors", vec![hardware(json!({ "cpu": null }))], json!({})),
        (
            "the root disk of another choice is not known",
            vec![host(json!({ "spec": { "rootDeviceHints": { "model": "x" } } }))],
            without_disk(),
        ),
        (
            "a volume",
            vec![host(json!({ "spec": { "raid": { "softwareRAIDVolumes": [] } } }))],
            without_disk(),
        ),
        ("no disk", vec![hardware(json!({ "storage": [] }))], without_disk()),
    ] {
        assert_eq!(status(&hosts), expected, "{what}");
    }
}

#[test]
fn devices_are_counted_by_labels_of_the_hosts() {
    let labelled = |label: &str, count: &str| host(json!({ "metadata": { "labels": { label: count } } }));
    let gpus = |count: &str| labelled("nvidia.com/gpu.count", count);
    for (what, hosts, expected) in [
        (
            "the least",
            vec![gpus("8"), gpus("4")],
            changed(json!({ "capacity": { "nvidia.com/gpu": "4" } })),
        ),
        ("of one host only", vec![gpus("8"), host(json!({}))], usual()),
        ("no number", vec![gpus("many")], usual()),
        ("no resource", vec![labelled("reboot.count", "3")], usual()),
    ] {
        assert_eq!(status(&hosts), expected, "{what}");
    }
}

#[test]
fn architecture_is_that_of_all_hosts_as_kubernetes_names_it() {
    let of = |arch: &str| hardware(json!({ "cpu": { "arch": arch } }));
    for (hosts, architecture) in [
        (vec![of("x86_64")], json!("amd64")),
        (vec![of("aarch64"), of("aarch64")], json!("arm64")),
        (vec![of("s390x")], json!("s390x")),
        (vec![of("ppc64le")], json!("ppc64le")),
        (vec![of("riscv64")], json!(null)),
        (vec![of("x86_64"), of("aarch64")], json!(null)),
    ] {
        assert_eq!(
            status(&hosts)["nodeInfo"]
                .get("architecture")
                .cloned()
                .unwrap_or_default(),
            architecture,
            "{hosts:?}"
        );
    }
}

#[test]
fn hosts_that_run_no_machine_are_not_counted() {
    for (changes, counted) in [
        (json!({}), true),
        (json!({ "spec": { "consumerRef": { "name": "m" } } }), true),
        (json!({ "spec": { "externallyProvisioned": true } }), false),
        (
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
            false,
        ),
    ] {
        assert_eq!(is_counted(&host(changes.clone())), counted, "{changes}");
    }
}

#[test]
fn template_is_used_while_an_autoscaled_deployment_names_it() {
    let deployment = |annotated: bool, kind: &str, template: &str| -> MachineDeployment {
        let name = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
        let annotations = if annotated { json!({ name: "5" }) } else { json!({}) };
        serde_json::from_value(json!({
            "metadata": { "name": "d", "namespace": "a", "annotations": annotations },
            "spec": { "template": { "spec": { "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": template } } } },
        }))
        .unwrap()
    };
    let ours = "Metal3MachineTemplate";
    let (key, template) = (Key::of(&deployment(true, ours, "t")), |name: &str| {
        Key::of(&deployment(true, ours, "t")).sibling(name)
    });
    let mut indexes = DeploymentIndexes::default();
    let mut last: Option<MachineDeployment> = None;
    for (next, used) in [
        (Some(deployment(false, ours, "t")), None),
        (Some(deployment(true, ours, "t")), Some("t")),
        (Some(deployment(true, ours, "u")), Some("u")),
        (Some(deployment(true, "ByoMachineTemplate", "u")), None),
        (Some(deployment(true, ours, "u")), Some("u")),
        (None, None),
    ] {
        indexes.replace(&key, last.as_ref(), next.as_ref());
        let expected: Vec<Key> = used.map(template).into_iter().collect();
        assert_eq!(indexes.in_namespace("a"), expected, "{next:?}");
        assert!(expected.iter().all(|template| indexes.uses(template)) && indexes.in_namespace("b").is_empty());
        last = next;
    }
}
