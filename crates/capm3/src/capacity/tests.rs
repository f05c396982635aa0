//! The figures as tables.

use metal3_api::cluster::MachineDeployment;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Indexes as _, Key};
use serde_json::{Value, json};

use super::*;

mod autoscaler;
mod decisions;

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
                hardware(json!({ "storage": [{ "name": "/dev/sda", "sizeBytes": 8_000_000_000_i64 }] })),
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
        ("no disk", vec![hardware(json!({ "storage": [] }))], without_disk()),
    ] {
        assert_eq!(status(&hosts), expected, "{what}");
    }
}

/// In bytes, of a host with four disks and these changes; 0 when it is not known.
fn root_disk(changes: Value) -> u64 {
    let disks = json!([
        { "name": "/dev/sda", "hctl": "0:0:0:0", "sizeBytes": 2_000_000_000_000_i64 },
        { "name": "/dev/sdb", "hctl": "0:2:0:0", "sizeBytes": 16_000_000_000_i64 },
        { "name": "/dev/sdc", "sizeBytes": 1_000_000_000_i64 },
        { "name": "/dev/disk/by-path/d", "alternateNames": ["/dev/vda"], "sizeBytes": 30_000_000_000_i64 },
    ]);
    let mut document = json!({ "status": { "hardware": { "storage": disks } } });
    merge(&mut document, changes);
    let shown = &status(&[host(document)])["capacity"]["ephemeral-storage"];
    shown.as_str().map_or(0, |size| size.parse().unwrap())
}

#[test]
fn root_disk_is_that_of_the_hardware_profile() {
    let profile = |name: &str| json!({ "spec": { "hardwareProfile": name } });
    for (what, changes, expected) in [
        (
            "the profile of most hosts, not the smallest disk",
            json!({}),
            2_000_000_000_000_u64,
        ),
        (
            "of a virtual machine",
            json!({ "spec": { "bmc": { "address": "libvirt://x", "credentialsName": "s" } } }),
            30_000_000_000,
        ),
        ("by an address", profile("dell-raid"), 16_000_000_000),
        (
            "the profile in force",
            json!({ "spec": { "hardwareProfile": "dell-raid" }, "status": { "hardwareProfile": "dell" } }),
            2_000_000_000_000,
        ),
        (
            "without hints the smallest that is large enough",
            profile("empty"),
            16_000_000_000,
        ),
        ("no profile", profile("antique"), 0),
        ("a disk that is not there", profile("openstack"), 0),
    ] {
        assert_eq!(root_disk(changes), expected, "{what}");
    }
}

#[test]
fn root_disk_is_that_of_the_hints_and_not_known_with_volumes() {
    let hints = |hints: Value| json!({ "spec": { "rootDeviceHints": hints } });
    let volumes = json!({ "softwareRAIDVolumes": [{ "level": "1" }] });
    for (what, changes, expected) in [
        ("a name", hints(json!({ "deviceName": "/dev/sdb" })), 16_000_000_000),
        (
            "another name of the same disk",
            hints(json!({ "deviceName": "/dev/vda" })),
            30_000_000_000,
        ),
        (
            "name and address of two disks",
            hints(json!({ "deviceName": "/dev/sdb", "hctl": "0:0:0:0" })),
            0,
        ),
        ("hints of many disks", hints(json!({ "model": "x" })), 0),
        ("no hints", hints(json!({})), 16_000_000_000),
        ("volumes to create", json!({ "spec": { "raid": volumes } }), 0),
        (
            "volumes to remove",
            json!({ "status": { "provisioning": { "raid": volumes } } }),
            0,
        ),
        (
            "no volumes",
            json!({ "status": { "provisioning": { "raid": { "softwareRAIDVolumes": [] } } } }),
            2_000_000_000_000,
        ),
    ] {
        assert_eq!(root_disk(changes), expected, "{what}");
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
        (
            "no device that is known",
            vec![labelled("example.com/reboot.count", "3")],
            usual(),
        ),
    ] {
        assert_eq!(status(&hosts), expected, "{what}");
    }
}

#[test]
fn architecture_is_that_of_all_hosts_as_kubernetes_names_it() {
    let of = |arch: &str| hardware(json!({ "cpu": { "arch": arch } }));
    let unnamed = hardware(json!({ "cpu": { "arch": null } }));
    for (hosts, architecture) in [
        (vec![of("x86_64")], json!("amd64")),
        (vec![of("aarch64"), of("aarch64")], json!("arm64")),
        (vec![of("s390x")], json!("s390x")),
        (vec![of("ppc64le")], json!("ppc64le")),
        (vec![of("riscv64")], json!(null)),
        (vec![of("x86_64"), of("aarch64")], json!(null)),
        (vec![of("x86_64"), of("riscv64")], json!(null)),
        (vec![of("x86_64"), unnamed.clone(), of("")], json!("amd64")),
        (vec![unnamed, of("")], json!(null)),
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
    let consumer = |group: &str, kind: &str| {
        let reference = json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "name": "m", "namespace": "a" });
        json!({ "spec": { "consumerRef": reference, "image": { "url": "http://images/x" } } })
    };
    for (changes, counted) in [
        (json!({}), true),
        (consumer("infrastructure.cluster.x-k8s.io", "Metal3Machine"), true),
        (consumer("cluster.x-k8s.io", "Cluster"), true),
        (consumer("example.com", "Metal3Machine"), false),
        (consumer("example.com", "Appliance"), false),
        (json!({ "spec": { "image": { "url": "http://images/x" } } }), false),
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
            "spec": { "clusterName": "c", "template": { "spec": { "failureDomain": "z", "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": template } } } },
        }))
        .unwrap()
    };
    let group = || NodeGroup {
        deployment: "d".to_owned(),
        cluster: "c".to_owned(),
        failure_domain: Some("z".to_owned()),
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
        let groups: Vec<NodeGroup> = expected.iter().flat_map(|template| indexes.groups(template)).collect();
        assert_eq!(groups, used.map(|_| group()).into_iter().collect::<Vec<_>>());
        assert_eq!(indexes.has_any_in("a"), used.is_some());
        assert!(indexes.in_namespace("b").is_empty() && !indexes.has_any_in(""));
        assert_eq!(indexes.of_cluster(&key.sibling("c")), expected);
        assert!(indexes.of_cluster(&key.sibling("other")).is_empty());
        last = next;
    }
}
