use std::fmt::Debug;
use std::sync::Arc;

use chrono::DateTime;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::hub::Item;
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

/// Lets a hub tell of an object that comes and goes again and again.
fn churn<K, I>(hub: &SharedHub<K, I>, name: &str, spec: &Value)
where
    K: kube_core::Resource + DeserializeOwned + Debug,
    I: Indexes<K>,
{
    hub.listed(Vec::new(), ResourceVersion::parse("1").unwrap()).unwrap();
    for at in 1..200 {
        hub.observed(Item::Object(object(name, 2 * at, spec))).unwrap();
        let last = object::<K>(name, 2 * at + 1, spec);
        hub.observed_gone(&metal3_runtime::hub::Identity::of(&last).unwrap());
    }
}

#[test]
fn hubs_that_concern_each_other_change_at_once_and_none_waits_for_another() {
    let (hubs, machines, clusters) = (Hubs::default(), queue(), queue());
    let ties = || hubs.ties();
    let (t, u, v, w, x) = (ties(), ties(), ties(), ties(), ties());
    hubs.hosts.feed(&machines, move |change| t.machines_of_host(change));
    hubs.clusters
        .feed(&machines, move |change| u.machines_of_cluster(change));
    hubs.metal3_clusters
        .feed(&machines, move |change| v.machines_of_metal3_cluster(change));
    hubs.clusters
        .feed(&clusters, move |change| w.metal3_clusters_of_cluster(change));
    hubs.metal3_machines
        .feed(&clusters, move |change| x.metal3_clusters_of_machine(change));
    std::thread::scope(|scope| {
        scope.spawn(|| churn(&hubs.hosts, "h0", &json!({ "online": false })));
        scope.spawn(|| churn(&hubs.clusters, "edge", &json!({})));
        scope.spawn(|| churn(&hubs.metal3_clusters, "edge", &json!({ "clusterName": "edge" })));
        scope.spawn(|| churn(&hubs.metal3_machines, "m0", &json!({})));
    });
    hubs.metal3_machines
        .observed(Item::Object(object("m1", 900, &json!({}))))
        .unwrap();
    let taken: Vec<Key> = hubs.ties().machines.read(|machines| {
        let cluster = near(&Key::of(&object::<Cluster>("edge", 1, &json!({}))), "edge");
        machines.of_cluster.get(&cluster).cloned().collect()
    });
    assert_eq!(taken.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["m1"]);
}
