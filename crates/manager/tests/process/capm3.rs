//! Clusters, machines and their data in the whole process, with a workload cluster behind a kubeconfig.
#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use axum::http::Request;
use metal3_api::catalog;
use metal3_api::crd::Definition;
use metal3_flags::Owner;
use metal3_manager::product::{Product, find};
use metal3_manager::run::Ended;
use metal3_webhooks::table::{self, Hook, Task};
use serde_json::{Value, json};

use crate::environment::{NAMESPACE, TestCluster, assert_no_writes, options, until};

const INFRASTRUCTURE: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta2";
pub(crate) const HOSTS: &str = "/apis/metal3.io/v1alpha1";
const CLUSTER_API: &str = "/apis/cluster.x-k8s.io/v1beta2";
const CORE: &str = "/api/v1";
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                          clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443'}}]\nusers: [{name: u, user: {token: t}}]\n";

pub(crate) fn products() -> Vec<Product> {
    vec![find(Owner::Capm3)]
}

/// A client without restrictions.
pub(crate) struct User(pub(crate) kube::Client);

impl User {
    pub(crate) async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(
                "content-type",
                if method == "PATCH" {
                    "application/merge-patch+json"
                } else {
                    "application/json"
                },
            )
            .body(body.to_string().into_bytes())
            .unwrap();
        let answer = self.0.request::<Value>(request).await;
        answer.unwrap_or_else(|error| unreachable!("{method} {path}: {error}"))
    }

    async fn make(&self, api: &str, plural: &str, object: Value) -> Value {
        self.send("POST", &format!("{api}/namespaces/{NAMESPACE}/{plural}"), &object)
            .await
    }

    pub(crate) async fn get(&self, api: &str, object: &str) -> Value {
        self.send("GET", &format!("{api}/namespaces/{NAMESPACE}/{object}"), &json!({}))
            .await
    }

    async fn change(&self, api: &str, object: &str, change: &Value) -> Value {
        self.send("PATCH", &format!("{api}/namespaces/{NAMESPACE}/{object}"), change)
            .await
    }

    /// A Cluster, its endpoint and its kubeconfig.
    async fn cluster(&self) {
        let reference =
            json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "edge" });
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "edge" },
            "spec": { "infrastructureRef": reference },
        });
        let cluster = self.make(CLUSTER_API, "clusters", cluster).await;
        let status = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
        self.change(CLUSTER_API, "clusters/edge/status", &status).await;
        let metal3_cluster = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster",
            "metadata": { "name": "edge", "ownerReferences": [owner(&cluster)] },
            "spec": { "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } },
        });
        self.make(INFRASTRUCTURE, "metal3clusters", metal3_cluster).await;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "edge-kubeconfig" },
            "stringData": { "value": KUBECONFIG },
        });
        self.make(CORE, "secrets", secret).await;
    }

    /// An available host.
    async fn host(&self, name: &str) {
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name },
            "spec": { "online": false, "bmc": { "address": "redfish://192.0.2.7/redfish/v1/Systems/1", "credentialsName": "bmc" } },
        });
        self.make(HOSTS, "baremetalhosts", host).await;
        self.state(name, "available").await;
    }

    async fn state(&self, host: &str, state: &str) {
        let status = json!({ "status": {
            "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": false,
            "provisioning": { "state": state, "ID": "1", "image": { "url": "" } },
        } });
        self.change(HOSTS, &format!("baremetalhosts/{host}/status"), &status)
            .await;
    }

    /// A Machine with its Metal3Machine, and a data template with this metadata.
    async fn machine(&self, name: &str, template_name: &str, meta_data: Value) {
        let labels = json!({ "cluster.x-k8s.io/cluster-name": "edge" });
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataTemplate",
            "metadata": { "name": template_name },
            "spec": { "clusterName": "edge", "metaData": meta_data },
        });
        self.make(INFRASTRUCTURE, "metal3datatemplates", template).await;
        let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name });
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": { "name": name, "labels": labels },
            "spec": { "clusterName": "edge", "bootstrap": { "dataSecretName": "boot" }, "infrastructureRef": reference },
        });
        let machine = self.make(CLUSTER_API, "machines", machine).await;
        let image = json!({ "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256", "checksumType": "sha256", "diskFormat": "raw" });
        let metal3_machine = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
            "metadata": { "name": name, "labels": labels, "ownerReferences": [owner(&machine)] },
            "spec": { "image": image, "dataTemplate": { "name": template_name } },
        });
        self.make(INFRASTRUCTURE, "metal3machines", metal3_machine).await;
    }

    async fn event_reasons(&self) -> Vec<String> {
        let events = self.get(CORE, "events").await;
        let items = events["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|event| event["reason"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

fn owner(object: &Value) -> Value {
    json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "controller": true,
        "name": object["metadata"]["name"], "uid": object["metadata"]["uid"],
    })
}

/// Metadata without an address.
fn plain() -> Value {
    json!({ "objectNames": [{ "key": "name", "object": "machine" }] })
}

pub(crate) async fn world() -> (TestCluster, User) {
    world_with(|_| true).await
}

/// A world with the kinds of these groups, besides those of Cluster API.
async fn world_with(is_installed: fn(&str) -> bool) -> (TestCluster, User) {
    let world = TestCluster::empty().await;
    let kinds = catalog::definitions().into_iter();
    let kinds: Vec<_> = kinds.filter(|kind| is_installed(kind.group)).collect();
    world.cluster.install(&kinds).unwrap();
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let user = User(world.cluster.client("admin"));
    user.cluster().await;
    user.host("h0").await;
    user.machine("m0", "tpl", plain()).await;
    (world, user)
}

/// Registers the Node of the machine, like its kubelet.
async fn joins(world: &TestCluster, user: &User) {
    let host = user.get(HOSTS, "baremetalhosts/h0").await;
    let labels = json!({ "metal3.io/uuid": host["metadata"]["uid"], "kubernetes.io/hostname": "m0" });
    let node =
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "m0", "labels": labels }, "spec": {} });
    let kubelet = User(world.workload.client("kubelet"));
    kubelet.send("POST", "/api/v1/nodes", &node).await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_claims_a_host_and_its_node_is_found_through_the_kubeconfig() {
    let (world, user) = world().await;
    let replica = world.start_options("a", options("--controllers=capm3 --leader-elect"), None, products());
    until("ready", async || replica.ready().await).await;
    until("an image on the host, with data", async || {
        let host = user.get(HOSTS, "baremetalhosts/h0").await;
        host["spec"]["image"]["url"].is_string() && host["spec"]["metaData"]["name"].is_string()
    })
    .await;
    user.state("h0", "provisioned").await;
    joins(&world, &user).await;
    let mut machine = Value::Null;
    until("provisioned", async || {
        machine = user.get(INFRASTRUCTURE, "metal3machines/m0").await;
        machine["status"]["initialization"]["provisioned"] == true
    })
    .await;
    let kubelet = User(world.workload.client("kubelet"));
    let node = kubelet.send("GET", "/api/v1/nodes/m0", &json!({})).await;
    let id = format!("metal3://{NAMESPACE}/h0/m0");
    assert_eq!(
        (&machine["spec"]["providerID"], &node["spec"]["providerID"]),
        (&json!(id), &json!(id))
    );
    until("events", async || {
        let reasons = user.event_reasons().await;
        [
            "AssociateBareMetalHostSuccess",
            "Metal3DataSecretsReady",
            "Provisioned",
            "Ready",
            "Rendered",
        ]
        .iter()
        .all(|reason| reasons.iter().any(|one| one == reason))
    })
    .await;
    assert_eq!(replica.end().await, Ended::Stopped);
    assert_eq!(world.holder("controller-leader-election-capm3").await, "");
}

#[tokio::test(start_paused = true)]
async fn machines_are_served_without_the_kinds_of_ipam_which_are_used_once_installed() {
    let (world, user) = world_with(|group| group != "ipam.metal3.io").await;
    let replica = world.start_options("a", options("--controllers=capm3"), None, products());
    until("an image on the host, with data", async || {
        let host = user.get(HOSTS, "baremetalhosts/h0").await;
        host["spec"]["image"]["url"].is_string() && host["spec"]["metaData"]["name"].is_string()
    })
    .await;
    let (_, text) = replica.probe("/readyz?verbose").await;
    assert!(!text.contains("ipam.metal3.io"), "{text}");
    user.host("h1").await;
    let pooled = json!({ "ipAddressesFromPool": [{ "key": "ip", "name": "pool" }] });
    user.machine("m1", "pooled", pooled).await;
    until("the reason", async || {
        let data = user.get(INFRASTRUCTURE, "metal3datas").await;
        let mut items = data["items"].as_array().into_iter().flatten();
        items.any(|data| {
            data["status"]["errorMessage"]
                .as_str()
                .unwrap_or_default()
                .contains("install")
        })
    })
    .await;
    let kinds = kinds_of_ipam();
    world.cluster.install(&kinds).unwrap();
    until_claimed(&user).await;
    assert_eq!(replica.end().await, Ended::Stopped);
}

fn kinds_of_ipam() -> Vec<Definition> {
    let kinds = catalog::definitions().into_iter();
    kinds.filter(|kind| kind.group == "ipam.metal3.io").collect()
}

async fn until_claimed(user: &User) {
    until("a claim", async || {
        let claims = user.get("/apis/ipam.metal3.io/v1alpha1", "ipclaims").await;
        claims["items"][0]["metadata"]["name"] == "pooled-0-pool"
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn kind_that_is_removed_and_soon_installed_again_is_used() {
    let (world, user) = world_with(|_| true).await;
    let replica = world.start_options("a", options("--controllers=capm3"), None, products());
    until("an image on the host", async || {
        user.get(HOSTS, "baremetalhosts/h0").await["spec"]["image"]["url"].is_string()
    })
    .await;
    let kinds = kinds_of_ipam();
    for kind in &kinds {
        let name = format!("{}.{}", kind.plural, kind.group);
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        user.send("DELETE", &format!("{definitions}/{name}"), &json!({})).await;
    }
    user.host("h1").await;
    let pooled = json!({ "ipAddressesFromPool": [{ "key": "ip", "name": "pool" }] });
    user.machine("m1", "pooled", pooled).await;
    until("the reason", async || {
        let data = user.get(INFRASTRUCTURE, "metal3datas").await.to_string();
        data.contains("does not serve the kind; install")
    })
    .await;
    // Until no other object changes any more.
    tokio::time::sleep(Duration::from_mins(3)).await;
    world.cluster.install(&kinds).unwrap();
    until_claimed(&user).await;
    assert_eq!(replica.end().await, Ended::Stopped);
}

/// The flags of a process that serves webhooks at this port, with a certificate in this folder.
fn webhook_flags(folder: &Path, port: u16) -> String {
    std::fs::create_dir_all(folder).unwrap();
    let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("tls.crt"), pair.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), pair.signing_key.serialize_pem()).unwrap();
    format!(
        "--controllers=capm3 --webhook-port={port} --webhook-cert-dir={}",
        folder.display()
    )
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn webhook_of_machines_knows_the_flag_of_image_hosts() {
    let folder = std::env::temp_dir().join(format!("metal3-image-hosts-{}", std::process::id()));
    let port = free_port();
    let flags = format!(
        "{} --allowed-image-hosts=images.example.org",
        webhook_flags(&folder, port)
    );
    let world = TestCluster::empty().await;
    let replica = world.start_options("a", options(&flags), None, products());
    until("ready", async || replica.ready().await).await;
    let mut hooks = table::INFRASTRUCTURE.hooks().into_iter();
    let is_of_machines = |hook: &Hook| hook.task == Task::Validate && hook.reviewer.kind == "Metal3Machine";
    let hook = hooks.find(is_of_machines).unwrap();
    let mut config = kube::Config::new(format!("https://localhost:{port}").parse().unwrap());
    config.accept_invalid_certs = true;
    let api_server = User(kube::Client::try_from(config).unwrap());
    for (host, is_allowed) in [("images.example.org", true), ("images.example.com", false)] {
        let image = json!({ "url": format!("https://{host}/os"), "checksum": "0".repeat(64) });
        let resource = json!({ "group": hook.reviewer.group, "version": "v1beta2", "resource": "metal3machines" });
        let request = json!({
            "uid": "1", "resource": resource, "name": "m", "namespace": NAMESPACE, "operation": "CREATE", "userInfo": {},
            "object": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
                "metadata": { "name": "m", "namespace": NAMESPACE }, "spec": { "image": image },
            },
        });
        let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
        let answer = api_server.send("POST", &hook.path(), &review).await;
        assert_eq!(answer["response"]["allowed"], is_allowed, "{answer}");
    }
    assert_eq!(replica.end().await, Ended::Stopped);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The API server converts stored objects by a webhook of this process: it needs none of their lists.
#[tokio::test]
async fn webhooks_are_served_before_any_kind_is_listed_or_installed() {
    let folder = std::env::temp_dir().join(format!("metal3-webhooks-{}", std::process::id()));
    let port = free_port();
    let flags = webhook_flags(&folder, port);
    let world = TestCluster::empty().await;
    let replica = world.start_options("a", options(&flags), None, products());
    until("ready", async || replica.ready().await).await;
    let (_, text) = replica.probe("/readyz").await;
    assert!(text.contains("install infrastructure-components.yaml"), "{text}");
    assert!(
        TcpStream::connect(("127.0.0.1", port)).is_ok(),
        "it accepts connections"
    );
    let audit = world.cluster.audit();
    let mut read = audit.counts().filter(|((user, verb, resource), _)| {
        user == "a" && ["list", "watch"].contains(verb) && resource.as_str() != "deployments"
    });
    assert_eq!(read.next(), None, "nothing is listed yet");
    assert_eq!(replica.end().await, Ended::Stopped);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(start_paused = true)]
async fn observe_only_claims_no_host_and_emits_no_event() {
    let (world, _) = world().await;
    let replica = world.start_options("a", options("--controllers=capm3 --observe-only"), None, products());
    until("ready", async || replica.ready().await).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(replica.end().await, Ended::Stopped);
    for cluster in [&world.cluster, &world.workload] {
        assert_no_writes(cluster);
    }
}

#[tokio::test(start_paused = true)]
async fn one_watch_a_kind_feeds_all_five_controllers() {
    let (world, _) = world().await;
    let replica = world.start_options("a", options("--controllers=capm3"), None, products());
    until("ready", async || replica.ready().await).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let audit = world.cluster.audit();
    let watches: Vec<_> = audit
        .counts()
        .filter(|((user, verb, _), _)| user == "a" && *verb == "watch")
        .collect();
    // Two groups have a kind of this name.
    let expected = |resource: &str| if resource == "ipaddresses" { 2 } else { 1 };
    let twice = watches
        .iter()
        .find(|((.., resource), count)| *count != expected(resource));
    assert!(watches.len() == 16 && twice.is_none(), "{watches:?}");
    assert_eq!(replica.end().await, Ended::Stopped);
}
