use std::fmt::Debug;
use std::sync::Arc;

use chrono::DateTime;
use metal3_api::infrastructure::v1beta2::Metal3DataTemplate;
use metal3_runtime::cache::Item;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::queue::Queue;
use metal3_runtime::version::ResourceVersion;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// An object of the Cluster `edge` at a version.
fn object<K: DeserializeOwned + Debug>(name: &str, at: usize, spec: &Value) -> K {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "edge" });
    let meta =
        json!({ "namespace": "metal", "name": name, "uid": name, "resourceVersion": at.to_string(), "labels": labels });
    serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap()
}

fn queue() -> Queue<Key> {
    Queue::new(Arc::new(TimerClock::start(DateTime::UNIX_EPOCH)))
}

/// Applies and deletes an object again and again.
fn churn<K, I>(cache: &SharedCache<K, I>, name: &str, spec: &Value)
where
    K: kube_core::Resource + DeserializeOwned + Debug,
    I: Indexes<K>,
{
    cache.listed(Vec::new(), ResourceVersion::parse("1").unwrap()).unwrap();
    for at in 1..200 {
        cache.observed(Item::Object(object(name, 2 * at, spec))).unwrap();
        let last = object::<K>(name, 2 * at + 1, spec);
        cache.observed_deleted(&metal3_runtime::cache::Identity::of(&last).unwrap());
    }
}

#[test]
fn related_caches_change_concurrently_without_deadlock() {
    let (caches, machines, clusters) = (Caches::default(), queue(), queue());
    let related = caches.related_keys();
    let (hosts, of_machines, of_clusters) = (&caches.hosts, &caches.metal3_machines, &caches.metal3_clusters);
    let keys = related.clone();
    hosts.enqueue_changes(&machines, move |change| keys.machines_of_host(change));
    let keys = related.clone();
    caches
        .clusters
        .enqueue_changes(&machines, move |change| keys.machines_of_cluster(change));
    let keys = related.clone();
    of_clusters.enqueue_changes(&machines, move |change| keys.machines_of_metal3_cluster(change));
    let keys = related.clone();
    caches
        .clusters
        .enqueue_changes(&clusters, move |change| keys.metal3_clusters_of_cluster(change));
    of_machines.enqueue_changes(&clusters, move |change| related.metal3_clusters_of_machine(change));
    std::thread::scope(|scope| {
        scope.spawn(|| churn(&caches.hosts, "h0", &json!({ "online": false })));
        scope.spawn(|| churn(&caches.clusters, "edge", &json!({})));
        scope.spawn(|| churn(&caches.metal3_clusters, "edge", &json!({ "clusterName": "edge" })));
        scope.spawn(|| churn(&caches.metal3_machines, "m0", &json!({})));
    });
    caches
        .metal3_machines
        .observed(Item::Object(object("m1", 900, &json!({}))))
        .unwrap();
    let taken: Vec<Key> = caches.related_keys().machines.read(|machines| {
        let cluster = Key::of(&object::<Cluster>("edge", 1, &json!({}))).sibling("edge");
        machines.by_cluster.get(&cluster).cloned().collect()
    });
    assert_eq!(taken.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["m1"]);
}

/// A machine with this metadata.
fn machine(name: &str, at: usize, more: &Value) -> Metal3Machine {
    let mut document = serde_json::to_value(object::<Metal3Machine>(name, at, &json!({}))).unwrap();
    metal3_runtime::patch::apply(&json!({ "metadata": more }), &mut document);
    serde_json::from_value(document).unwrap()
}

fn host(at: usize, patch: &Value) -> BareMetalHost {
    let mut document = serde_json::to_value(object::<BareMetalHost>("h0", at, &json!({ "online": false }))).unwrap();
    document["status"] = json!({
        "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": false,
        "provisioning": { "state": "inspecting", "ID": "node", "image": { "url": "" } },
    });
    metal3_runtime::patch::apply(patch, &mut document);
    serde_json::from_value(document).unwrap()
}

/// The change from one version of an object to the next.
const fn applied<'a, K>(old: &'a K, new: &'a K, was_unreadable: bool) -> Change<'a, K> {
    Change::Applied {
        old: Some(old),
        new,
        was_unreadable,
    }
}

fn names(keys: impl IntoIterator<Item = Key>) -> Vec<String> {
    keys.into_iter().map(|key| key.name).collect()
}

#[test]
fn host_change_enqueues_machines_that_name_it_and_claimable_host_those_without_one() {
    let caches = Caches::default();
    let named = json!({ "annotations": { "metal3.io/BareMetalHost": "metal/h0" } });
    let deleting = |finalizer: &str| json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer] });
    for made in [
        machine("names-it", 2, &named),
        machine("deleting", 3, &deleting(MACHINE_FINALIZER)),
        machine("foreign-finalizer", 4, &deleting("example.org/other")),
        machine("without-host", 5, &json!({})),
    ] {
        caches.metal3_machines.observed(Item::Object(made)).unwrap();
    }
    let related = caches.related_keys();
    let enqueued = |old: &Value, new: &Value, was_unreadable| {
        let (old, new) = (host(2, old), host(3, new));
        names(related.machines_of_host(&applied(&old, &new, was_unreadable)))
    };
    let on = json!({ "status": { "poweredOn": true } });
    assert_eq!(enqueued(&json!({}), &on, false), ["names-it"]);
    let free = json!({ "status": { "provisioning": { "state": "available" } } });
    assert_eq!(
        enqueued(&json!({}), &free, false),
        ["deleting", "names-it", "without-host"]
    );
    assert_eq!(
        enqueued(&json!({}), &json!({}), true).len(),
        4,
        "it may belong to any machine"
    );
}

#[test]
fn metal3_cluster_is_enqueued_when_a_machine_leaves_its_cluster_or_becomes_readable() {
    let caches = Caches::default();
    let stated = |cluster: &str| json!({ "clusterName": cluster });
    for (name, at, spec) in [
        ("edge", 2, json!({})),
        ("other", 3, stated("other")),
        ("third", 4, stated("third")),
    ] {
        caches
            .metal3_clusters
            .observed(Item::Object(object(name, at, &spec)))
            .unwrap();
    }
    let related = caches.related_keys();
    let enqueued = |old: &Metal3Machine, new: &Metal3Machine, was_unreadable| {
        names(related.metal3_clusters_of_machine(&applied(old, new, was_unreadable)))
    };
    let before = machine("m0", 2, &json!({}));
    let moved = json!({ "labels": { "cluster.x-k8s.io/cluster-name": "other" } });
    let moved = machine("m0", 3, &moved);
    let annotated = machine("m0", 3, &json!({ "annotations": { "a": "b" } }));
    assert_eq!(enqueued(&before, &annotated, false), [""; 0]);
    assert_eq!(enqueued(&before, &moved, false), ["edge", "other"]);
    let all = ["edge", "other", "third"];
    assert_eq!(enqueued(&before, &before, true), all);
    let (key, old) = (Key::of(&before), Some(&before));
    let hidden = Change::Unreadable { key: &key, old };
    assert_eq!(names(related.metal3_clusters_of_machine(&hidden)), all);
    let gone = |old, was_unreadable| {
        names(related.metal3_clusters_of_machine(&Change::Deleted {
            key: &key,
            old,
            was_unreadable,
        }))
    };
    assert_eq!(gone(old, false), ["edge"]);
    assert_eq!(gone(None, true), all, "its owner is unknown");
}

#[test]
fn metal3_cluster_enqueues_its_machines_except_for_a_changed_endpoint() {
    let caches = Caches::default();
    caches
        .metal3_machines
        .observed(Item::Object(machine("m0", 2, &json!({}))))
        .unwrap();
    let related = caches.related_keys();
    let enqueued = |spec: Value| {
        let (old, new): (Metal3Cluster, Metal3Cluster) = (object("edge", 2, &json!({})), object("edge", 3, &spec));
        names(related.machines_of_metal3_cluster(&applied(&old, &new, false)))
    };
    let endpoint = json!({ "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } });
    assert_eq!(enqueued(endpoint), [""; 0]);
    assert_eq!(enqueued(json!({ "clusterName": "edge" })), ["m0"]);
}

#[test]
fn data_template_of_a_zone_enqueues_machines_when_it_appears_or_disappears() {
    let caches = Caches::default();
    let machine = Item::Object(machine("m0", 2, &json!({})));
    caches.metal3_machines.observed(machine).unwrap();
    let zones = json!({ "deploymentZones": [{ "name": "a", "dataTemplate": { "name": "net-a" } }] });
    let cluster = Item::Object(object("edge", 3, &zones));
    caches.metal3_clusters.observed(cluster).unwrap();
    let related = caches.related_keys();
    let template = |name: &str| -> Metal3DataTemplate { object(name, 4, &json!({})) };
    for (name, expected) in [("net-a", vec!["m0"]), ("net-b", Vec::new())] {
        let new = template(name);
        let appears = Change::Applied {
            old: None,
            new: &new,
            was_unreadable: false,
        };
        assert_eq!(names(related.machines_of_data_template(&appears)), expected);
        assert_eq!(
            names(related.machines_of_data_template(&applied(&new, &new, false))),
            [""; 0]
        );
        let (key, old) = (Key::of(&new), Some(&new));
        let gone = Change::Deleted {
            key: &key,
            old,
            was_unreadable: false,
        };
        assert_eq!(names(related.machines_of_data_template(&gone)), expected);
    }
}
