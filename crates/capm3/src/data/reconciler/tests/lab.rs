//! Actions of users and other controllers. The program that counts requests includes this file, so it has no imports
//! from this crate.

use std::sync::Arc;

use metal3_api::crd::Definition;
use metal3_domain::clock::Clock;
use metal3_ipam::reconciler as ipam;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) const INFRASTRUCTURE: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta2/namespaces/default";
pub(crate) const CLUSTER_API: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default";
pub(crate) const CLUSTER_IPAM: &str = "/apis/ipam.cluster.x-k8s.io/v1beta2/namespaces/default";
pub(crate) const IPAM: &str = "/apis/ipam.metal3.io/v1alpha1/namespaces/default";
pub(crate) const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/default";

/// Holds a claim on data until its machine releases it.
const MACHINE_FINALIZER: &str = "metal3machine.infrastructure.cluster.x-k8s.io";
const LABEL: &str = "cluster.x-k8s.io/cluster-name";

/// The kinds of this project, of hosts and addresses, and those of Cluster API that are read.
pub(crate) fn kinds() -> Vec<Definition> {
    let mut kinds = metal3_api::infrastructure::definitions();
    kinds.extend(metal3_api::metal3::definitions());
    kinds.extend(metal3_api::ipam::definitions());
    kinds.extend(metal3_sim_cluster::cluster_api());
    kinds
}

/// A client of the user.
#[derive(Clone)]
pub(crate) struct User(pub(crate) kube::Client);

impl User {
    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = if method == "PATCH" {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", kind)
            .body(body.to_string().into_bytes())
            .unwrap();
        let answer = self.0.request::<Value>(request).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Creates an object and returns the stored one.
    pub(crate) async fn make(&self, place: &str, plural: &str, object: Value) -> Value {
        self.send("POST", &format!("{place}/{plural}"), &object).await
    }

    pub(crate) async fn change(&self, place: &str, object: &str, change: Value) -> Value {
        self.send("PATCH", &format!("{place}/{object}"), &change).await
    }

    pub(crate) async fn delete(&self, place: &str, object: &str) {
        self.send("DELETE", &format!("{place}/{object}"), &json!({})).await;
    }

    pub(crate) async fn list(&self, place: &str, plural: &str) -> Vec<Value> {
        let list = self.send("GET", &format!("{place}/{plural}"), &json!({})).await;
        list["items"].as_array().unwrap().clone()
    }

    pub(crate) async fn get(&self, place: &str, object: &str) -> Value {
        self.send("GET", &format!("{place}/{object}"), &json!({})).await
    }

    pub(crate) async fn cluster(&self) {
        let spec = json!({ "paused": false });
        let cluster = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "alpha" }, "spec": spec });
        self.make(CLUSTER_API, "clusters", cluster).await;
    }

    /// A Metal3 pool from `10.0.0.10`, with each address preallocated to the Metal3Data of its index.
    pub(crate) async fn pool(&self, addresses: u32) {
        let kept: serde_json::Map<String, Value> = (0..addresses)
            .map(|number| (format!("tpl-{number}-pool"), address(number).into()))
            .collect();
        let last = address(addresses);
        let spec = json!({
            "namePrefix": "p", "preAllocations": kept, "prefix": 16,
            "pools": [{ "start": address(0), "end": last }],
        });
        let pool = json!({ "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool", "metadata": { "name": "pool" }, "spec": spec });
        self.make(IPAM, "ippools", pool).await;
    }

    pub(crate) async fn template(&self, spec: Value) {
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataTemplate",
            "metadata": { "name": "tpl" }, "spec": spec,
        });
        self.make(INFRASTRUCTURE, "metal3datatemplates", template).await;
    }

    /// A machine with its host and its claim on data, all of the same name.
    pub(crate) async fn machine(&self, name: &str) {
        let labels = json!({ LABEL: "alpha" });
        let host = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name }, "spec": { "online": true } });
        self.make(HOSTS, "baremetalhosts", host).await;
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": name, "labels": labels }, "spec": { "clusterName": "alpha" },
        });
        let machine = self.make(CLUSTER_API, "machines", machine).await;
        let metal3_machine = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
            "metadata": {
                "name": name, "labels": labels, "ownerReferences": [owner(&machine)],
                "annotations": { "metal3.io/BareMetalHost": format!("default/{name}") },
            },
            "spec": { "image": { "url": "http://image", "checksum": "http://sum" }, "dataTemplate": { "name": "tpl" } },
        });
        let metal3_machine = self.make(INFRASTRUCTURE, "metal3machines", metal3_machine).await;
        let claim = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataClaim",
            "metadata": {
                "name": name, "labels": labels, "finalizers": [MACHINE_FINALIZER],
                "ownerReferences": [owner(&metal3_machine)],
            },
            "spec": { "template": { "name": "tpl", "namespace": "default" } },
        });
        self.make(INFRASTRUCTURE, "metal3dataclaims", claim).await;
    }

    /// The machine is deleted and releases its data.
    pub(crate) async fn give_back(&self, name: &str) {
        self.delete(INFRASTRUCTURE, &format!("metal3dataclaims/{name}")).await;
    }

    /// The host is powered off, so the claim may be deleted.
    pub(crate) async fn let_go(&self, name: &str) {
        let object = format!("metal3dataclaims/{name}");
        let mut claim = self.get(INFRASTRUCTURE, &object).await;
        let finalizers = claim["metadata"]["finalizers"].as_array_mut().unwrap();
        finalizers.retain(|finalizer| finalizer != MACHINE_FINALIZER);
        let change = json!({ "metadata": { "finalizers": finalizers } });
        self.change(INFRASTRUCTURE, &object, change).await;
    }

    /// Another IPAM provider serves each pending claim of Cluster API, by the index in its name.
    pub(crate) async fn provide(&self) {
        for claim in self.list(CLUSTER_IPAM, "ipaddressclaims").await {
            if !claim["status"]["addressRef"].is_null() {
                continue;
            }
            let name = claim["metadata"]["name"].as_str().unwrap();
            let number = name.split('-').nth(1).unwrap();
            let address = json!({
                "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress",
                "metadata": { "name": name, "ownerReferences": [owner(&claim)] },
                "spec": {
                    "claimRef": { "name": name }, "poolRef": claim["spec"]["poolRef"],
                    "address": format!("192.0.2.{number}"), "prefix": 24, "gateway": "192.0.2.254",
                },
            });
            self.make(CLUSTER_IPAM, "ipaddresses", address).await;
            let answer = json!({ "status": { "addressRef": { "name": name } } });
            self.change(CLUSTER_IPAM, &format!("ipaddressclaims/{name}/status"), answer)
                .await;
        }
    }
}

/// A template with an address of a Metal3 pool in the metadata, and one of another provider on a network.
pub(crate) fn both_pools() -> Value {
    let elsewhere = json!({ "name": "far", "kind": "InClusterIPPool", "apiGroup": "ipam.cluster.x-k8s.io" });
    let link = json!({ "type": "phy", "id": "eth0", "macAddress": { "string": "52:54:00:aa:00:01" } });
    json!({
        "metaData": { "indexes": [{ "key": "number" }], "ipAddressesFromPool": [{ "key": "ip", "name": "pool" }] },
        "networkData": {
            "links": { "ethernets": [link] },
            "networks": { "ipv4": [{ "id": "net", "link": "eth0", "fromPoolRef": elsewhere }] },
        },
    })
}

/// A template with an address of a Metal3 pool in the metadata.
pub(crate) fn one_pool() -> Value {
    json!({
        "metaData": { "indexes": [{ "key": "number" }], "ipAddressesFromPool": [{ "key": "ip", "name": "pool" }] },
        "networkData": {},
    })
}

/// A template without addresses.
pub(crate) fn without_pools() -> Value {
    json!({ "metaData": { "indexes": [{ "key": "number" }] }, "networkData": {} })
}

/// The preallocated address of an index.
pub(crate) fn address(number: u32) -> String {
    std::net::Ipv4Addr::from(0x0a00_000a + number).to_string()
}

pub(crate) fn owner(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "controller": true,
        "name": object["metadata"]["name"], "uid": object["metadata"]["uid"],
    })
}

/// Starts the real IPAM controllers. Dropping the set stops them.
pub(crate) fn address_management(client: &kube::Client, clock: &Arc<dyn Clock>) -> JoinSet<()> {
    let (caches, stop) = (ipam::caches::Caches::default(), CancellationToken::new());
    let (events, _) = EventRecorder::bounded(1);
    let parts = ipam::Parts {
        caches: caches.clone(),
        clock: Arc::clone(clock),
        events,
        metrics: Metrics::new(),
        identity: "addresses".to_owned(),
        watch_filter: None,
        workers: 2,
    };
    let controller = ipam::controller(parts, Writer::new(client.clone(), Mode::Perform));
    let watches = caches.watches(&WatchConfig::everywhere(client, clock, &stop));
    let mut tasks: JoinSet<()> = watches.into_tasks().into_iter().collect();
    tasks.spawn(async move {
        controller.run(stop).await;
    });
    tasks
}
