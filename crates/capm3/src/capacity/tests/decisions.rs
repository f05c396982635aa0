//! What is reconciled after a change, and what is reported of hosts that cannot be read.

use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3MachineTemplate};
use metal3_runtime::cache::{Change, SharedCache, SharedIndexes};
use metal3_runtime::work::Next;

use super::*;
use crate::capacity::report::{Claimant, NearHosts, Report, Serving};
use crate::capacity::serving::NearClusters;
use crate::reasons::template::{CLUSTER_UNUSABLE, HOST_UNREADABLE};

fn deployments(namespace: &str) -> SharedIndexes<DeploymentIndexes> {
    let deployment: MachineDeployment = serde_json::from_value(json!({
        "metadata": {
            "name": "d", "namespace": namespace, "uid": "u", "resourceVersion": "1",
            "annotations": { "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "5" },
        },
        "spec": { "clusterName": "c", "template": { "spec": { "infrastructureRef": {
            "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3MachineTemplate", "name": "t" } } } },
    }))
    .unwrap();
    let cache: SharedCache<MachineDeployment, SharedIndexes<DeploymentIndexes>> = SharedCache::default();
    cache.wrote(deployment).unwrap();
    cache.indexes()
}

#[test]
fn only_changes_of_a_host_that_are_reported_somewhere_enqueue_its_namespace() {
    let cpu = |count: u32| json!({ "status": { "hardware": { "cpu": { "count": count } } } });
    for (what, namespace, changes, expected) in [
        ("processors", "a", cpu(8), true),
        ("no autoscaled MachineDeployment near", "b", cpu(8), false),
        ("power", "a", json!({ "status": { "poweredOn": false } }), false),
        (
            "network",
            "a",
            json!({ "status": { "hardware": { "nics": [{ "name": "eth0" }] } } }),
            false,
        ),
        ("a label", "a", json!({ "metadata": { "labels": { "x": "y" } } }), true),
        (
            "another root disk",
            "a",
            json!({ "spec": { "rootDeviceHints": { "deviceName": "/dev/sdb" } } }),
            true,
        ),
        (
            "another profile",
            "a",
            json!({ "status": { "hardwareProfile": "dell" } }),
            true,
        ),
        (
            "in use",
            "a",
            json!({ "spec": { "consumerRef": { "name": "m" } } }),
            true,
        ),
    ] {
        let (old, new) = (host(json!({})), host(changes));
        let change = Change::Applied {
            old: Some(&old),
            new: &new,
            was_unreadable: false,
        };
        let work = watches::of_host(&deployments(namespace), &change);
        assert_eq!(work, expected.then(|| Work::Hosts("a".to_owned())), "{what}");
    }
}

/// A Metal3Cluster that joins a Cluster brings its policy and zones to the machines of that Cluster.
#[test]
fn link_to_a_cluster_changes_the_figures_as_policy_and_zones_do() {
    let cluster = |spec: Value, owner: Option<&str>| -> Metal3Cluster {
        let owners = owner.map(
            |name| json!([{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": name, "uid": "u" }]),
        );
        let metadata = json!({ "name": "c", "namespace": "a", "ownerReferences": owners });
        serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap()
    };
    let plain = || cluster(json!({}), None);
    for (what, new, expected) in [
        ("the same", plain(), false),
        (
            "the endpoint",
            cluster(json!({ "controlPlaneEndpoint": { "host": "b", "port": 1 } }), None),
            false,
        ),
        ("named", cluster(json!({ "clusterName": "edge" }), None), true),
        ("owned", cluster(json!({}), Some("edge")), true),
        (
            "policy",
            cluster(json!({ "failureDomainPolicy": "Required" }), None),
            true,
        ),
        (
            "zones",
            cluster(json!({ "deploymentZones": [{ "name": "z" }] }), None),
            true,
        ),
        (
            "failure domains",
            cluster(json!({ "failureDomains": [{ "name": "z" }] }), None),
            true,
        ),
    ] {
        let change = Change::Applied {
            old: Some(&plain()),
            new: &new,
            was_unreadable: false,
        };
        let work = watches::of_metal3_cluster(&deployments("a"), &change);
        assert_eq!(work, expected.then(|| Work::Hosts("a".to_owned())), "{what}");
    }
}

/// Three hosts in two racks, of which the smallest is in the other one.
#[test]
fn capacity_is_that_of_the_hosts_of_the_failure_domain_if_it_is_required() {
    let template: Metal3MachineTemplate = serde_json::from_value(json!({
        "metadata": { "name": "t", "namespace": "a" }, "spec": { "template": { "spec": {} } },
    }))
    .unwrap();
    let in_rack = |rack: &str, count: u32| {
        let labels =
            json!({ "rack": rack, "infrastructure.cluster.x-k8s.io/failure-domain": format!("by-label-{rack}") });
        let hardware = json!({ "cpu": { "count": count } });
        std::sync::Arc::new(host(
            json!({ "metadata": { "labels": labels }, "status": { "hardware": hardware } }),
        ))
    };
    let near = NearHosts {
        hosts: vec![in_rack("7", 64), in_rack("7", 32), in_rack("8", 8)],
        unreadable: None,
    };
    let cpus = |policy: &str, zone: Value, domain: &str| {
        let cluster = json!({ "metadata": { "name": "c" }, "spec": { "failureDomainPolicy": policy, "deploymentZones": [zone] } });
        let claimant = Claimant {
            group: NodeGroup {
                deployment: "d".to_owned(),
                cluster: "c".to_owned(),
                failure_domain: Some(domain.to_owned()),
            },
            metal3_cluster: Serving::One {
                own: std::sync::Arc::new(serde_json::from_value(cluster).unwrap()),
                others: Vec::new(),
            },
        };
        let report = Report::of(&Key::of(&template), &template, &[claimant], &near);
        (report.status.unwrap().capacity.get("cpu").cloned(), report.available)
    };
    let zone = json!({ "name": "z", "hostSelector": { "matchLabels": { "rack": "7" } } });
    let networked =
        json!({ "name": "z", "hostSelector": { "matchLabels": { "rack": "7" } }, "dataTemplate": { "name": "net" } });
    let is = |cpu: &str, available: usize| (Some(cpu.to_owned()), available);
    assert_eq!(cpus("Required", zone.clone(), "z"), is("32", 2));
    assert_eq!(cpus("Required", zone.clone(), "by-label-8"), is("8", 1));
    assert_eq!(cpus("Preferred", zone, "z"), is("8", 3));
    assert_eq!(
        cpus("Preferred", networked, "z"),
        is("32", 2),
        "the other host has no network"
    );
}

/// It decides whether a Metal3Cluster that joined is used.
#[test]
fn other_infrastructure_of_the_cluster_changes_the_figures() {
    let cluster = |spec: Value| -> metal3_api::cluster::Cluster {
        serde_json::from_value(json!({ "metadata": { "name": "c", "namespace": "a" }, "spec": spec })).unwrap()
    };
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "c" });
    for (new, expected) in [
        (json!({}), 0),
        (json!({ "controlPlaneEndpoint": { "host": "b", "port": 1 } }), 0),
        (json!({ "paused": true }), 1),
        (json!({ "infrastructureRef": reference }), 1),
    ] {
        let (old, new) = (cluster(json!({})), cluster(new));
        let change = Change::Applied {
            old: Some(&old),
            new: &new,
            was_unreadable: false,
        };
        assert_eq!(
            watches::of_cluster(&deployments("a"), &change).len(),
            expected,
            "{new:?}"
        );
    }
}

fn plain_template() -> Metal3MachineTemplate {
    serde_json::from_value(json!({
        "metadata": { "name": "t", "namespace": "a" }, "spec": { "template": { "spec": {} } },
    }))
    .unwrap()
}

/// A group without failure domain, in a Cluster `c` with other infrastructure, with these Metal3Clusters in its namespace.
fn served_by(all: &[Value], unreadable: bool, domain: Option<&str>) -> Claimant {
    let group = NodeGroup {
        deployment: "d".to_owned(),
        cluster: "c".to_owned(),
        failure_domain: domain.map(ToOwned::to_owned),
    };
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "byo" });
    let cluster = json!({ "metadata": { "name": "c", "namespace": "a" }, "spec": { "infrastructureRef": reference } });
    let cluster = serde_json::from_value(cluster).unwrap();
    let near = NearClusters {
        all: all
            .iter()
            .map(|one| std::sync::Arc::new(serde_json::from_value(one.clone()).unwrap()))
            .collect(),
        unreadable: unreadable.then(|| Key::of(&plain_template()).sibling("odd")),
    };
    let machine = crate::capacity::report::new_machine(&Key::of(&plain_template()), &plain_template(), &group);
    let metal3_cluster = near.serving(&machine, &group, &cluster);
    Claimant { group, metal3_cluster }
}

fn site(name: &str, policy: &str) -> Value {
    let spec = json!({ "clusterName": "c", "deploymentZones": [{ "name": name }], "failureDomainPolicy": policy });
    json!({ "metadata": { "name": name, "namespace": "a" }, "spec": spec })
}

/// What is not known is neither without policy nor without zones; what is known to be wrong gives no host to any machine.
#[test]
fn machines_without_a_metal3_cluster_have_no_hosts_and_only_what_is_known_is_written() {
    let taken = json!({ "metadata": { "name": "byo", "namespace": "a" }, "spec": { "clusterName": "other" } });
    let near = NearHosts {
        hosts: vec![std::sync::Arc::new(host(json!({
            "metadata": { "labels": { "infrastructure.cluster.x-k8s.io/failure-domain": "n" } } })))],
        unreadable: None,
    };
    let both = [site("n", "Required"), site("s", "Required")];
    // Without a policy a machine of one site gets a host of none, and not one of the other.
    let open = [site("n", "Preferred"), site("s", "Preferred")];
    for (claimants, status, available, why) in [
        (vec![served_by(&both, false, Some("n"))], Some(usual()), 1, None),
        (vec![served_by(&both, false, Some("s"))], Some(json!({})), 0, None),
        (vec![served_by(&open, false, Some("s"))], Some(json!({})), 0, None),
        (vec![served_by(&open, false, Some("n"))], Some(usual()), 1, None),
        (
            vec![served_by(&both, false, None)],
            Some(json!({})),
            0,
            Some("both joined Cluster c; name one in metal3ClusterRef"),
        ),
        (
            vec![served_by(&both, true, Some("n"))],
            None,
            0,
            Some("Metal3Cluster odd cannot be read"),
        ),
        (
            vec![served_by(&[], false, None)],
            None,
            0,
            Some("does not exist; create it"),
        ),
        (
            vec![served_by(&[taken], false, None)],
            None,
            0,
            Some("does not exist; create it"),
        ),
        (
            vec![served_by(&both, false, Some("n")), served_by(&both, false, None)],
            Some(usual()),
            1,
            Some("MachineDeployment d get no host"),
        ),
    ] {
        let template = plain_template();
        let report = Report::of(&Key::of(&template), &template, &claimants, &near);
        let found = report.status.map(|status| serde_json::to_value(status).unwrap());
        assert_eq!((found, report.available), (status, available), "{why:?}");
        match (report.next, why) {
            (Next::Done, None) => {}
            (Next::Waiting(on), Some(why)) => {
                assert_eq!(on.reason, CLUSTER_UNUSABLE);
                assert!(on.message.contains(why), "{}", on.message);
            }
            (next, why) => panic!("{next:?} {why:?}"),
        }
    }
}

/// Another Cluster's Metal3Cluster is refused as it is for machines.
#[test]
fn reference_of_a_template_to_another_clusters_metal3_cluster_gives_no_hosts() {
    let mut template = plain_template();
    template.spec.template.spec.metal3_cluster_ref = serde_json::from_value(json!({ "name": "x" })).unwrap();
    let claimant = served_by(&[], false, None);
    let other = json!({ "metadata": { "name": "x", "namespace": "a" }, "spec": { "clusterName": "other" } });
    let near = NearClusters {
        all: vec![std::sync::Arc::new(serde_json::from_value(other).unwrap())],
        unreadable: None,
    };
    let machine = crate::capacity::report::new_machine(&Key::of(&template), &template, &claimant.group);
    let cluster = serde_json::from_value(json!({ "metadata": { "name": "c", "namespace": "a" }, "spec": {} })).unwrap();
    let Serving::Refused(why) = near.serving(&machine, &claimant.group, &cluster) else {
        panic!("it is of another Cluster");
    };
    assert!(why.contains("Metal3Cluster x does not belong to Cluster c"), "{why}");
}

#[test]
fn status_stays_while_a_host_of_the_namespace_cannot_be_read() {
    let template: Metal3MachineTemplate = serde_json::from_value(json!({
        "metadata": { "name": "t", "namespace": "a" }, "spec": { "template": { "spec": {} } },
    }))
    .unwrap();
    let key = Key::of(&template);
    let of = |unreadable: Option<Key>| {
        let near = NearHosts {
            hosts: vec![std::sync::Arc::new(host(json!({})))],
            unreadable,
        };
        Report::of(&key, &template, &[], &near)
    };
    let report = of(None);
    assert_eq!(serde_json::to_value(report.status).unwrap(), usual());
    assert_eq!(report.next, Next::Done);
    let report = of(Some(key.sibling("h9")));
    assert_eq!(report.status, None);
    let Next::Waiting(on) = report.next else {
        panic!("{:?}", report.next)
    };
    assert_eq!(on.reason, HOST_UNREADABLE);
    assert!(
        on.message.contains("BareMetalHost a/h9 cannot be read"),
        "{}",
        on.message
    );
}
