//! Objects that released Go managers left, taken over: kept, deprovisioned, released and deleted without a loss.
//!
//! The files are derived from the code of the releases; each field names its source. The test plays Cluster API, and the
//! manager of hosts.
#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use metal3_api::catalog;
use metal3_capm3::needs::{Data, Machines, Remediations};
use metal3_flags::Owner;
use metal3_ipam::needs::Ipam;
use metal3_manager::product::find;
use metal3_manager::run::Ended;
use metal3_runtime::access::{Permission, Role as _};
use serde_json::{Value, json};

use crate::environment::{Replica, TestCluster, options, until};

const NAMESPACE: &str = "metal3";
const RELEASES: [(&str, &str); 2] = [
    ("1.9.5", include_str!("older/v1.9.5.yaml")),
    ("1.13.2", include_str!("older/v1.13.2.yaml")),
];

/// The Cluster and the Machine, with the UIDs that a file uses.
fn of_cluster_api(uids: &str) -> Vec<Value> {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "test1" });
    let infrastructure =
        |kind: &str, name: &str| json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name });
    vec![
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": { "name": "test1", "namespace": NAMESPACE, "uid": format!("{uids}21") },
            "spec": { "infrastructureRef": infrastructure("Metal3Cluster", "test1") },
            "status": { "initialization": { "infrastructureProvisioned": true } },
        }),
        json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": "test1-abcde", "namespace": NAMESPACE, "uid": format!("{uids}23"), "labels": labels },
            "spec": {
                "clusterName": "test1", "infrastructureRef": infrastructure("Metal3Machine", "test1-abcde"),
                "bootstrap": { "dataSecretName": "test1-abcde", "configRef": { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfig", "name": "test1-abcde" } },
            },
            "status": { "nodeRef": { "name": "node-0" } },
        }),
    ]
}

struct User(kube::Client);

impl User {
    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let content = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content);
        self.0
            .request::<Value>(request.body(body.to_string().into_bytes()).unwrap())
            .await
    }

    async fn get(&self, object: &Value) -> Option<Value> {
        self.send("GET", &path(object, true), &json!({})).await.ok()
    }

    /// Stores objects with their owners and status, and returns them with the UIDs of this server.
    async fn load(&self, mut objects: Vec<Value>) -> Vec<Value> {
        let mut uids = Vec::new();
        for object in &objects {
            let mut bare = object.clone();
            bare.as_object_mut().unwrap().remove("status");
            for member in ["uid", "ownerReferences"] {
                bare["metadata"].as_object_mut().unwrap().remove(member);
            }
            let made = self.send("POST", &path(object, false), &bare).await;
            let made = made.unwrap_or_else(|error| unreachable!("{}: {error}", path(object, true)));
            if let Some(uid) = object["metadata"]["uid"].as_str() {
                uids.push((uid.to_owned(), made["metadata"]["uid"].as_str().unwrap().to_owned()));
            }
        }
        for object in &mut objects {
            let mut text = object.to_string();
            for (recorded, own) in &uids {
                text = text.replace(recorded, own);
            }
            *object = serde_json::from_str(&text).unwrap();
            let owners = json!({ "metadata": { "ownerReferences": object["metadata"]["ownerReferences"] }, "spec": object["spec"] });
            self.send("PATCH", &path(object, true), &owners).await.unwrap();
            if object.get("status").is_some() {
                let status = json!({ "status": object["status"] });
                let place = format!("{}/status", path(object, true));
                self.send("PATCH", &place, &status).await.unwrap();
            }
        }
        objects
    }

    /// The manager of hosts brings the host into this state.
    async fn host_is(&self, host: &Value, state: &str) {
        let status = json!({ "status": { "provisioning": { "state": state } } });
        let place = format!("{}/status", path(host, true));
        self.send("PATCH", &place, &status).await.unwrap();
    }
}

fn path(object: &Value, with_name: bool) -> String {
    let (version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let lower = kind.to_lowercase();
    let plural = match lower.as_str() {
        "hardwaredata" | "hostfirmwaresettings" => lower,
        word if word.ends_with('s') => format!("{word}es"),
        word => format!("{word}s"),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let place = format!("{root}/{version}/namespaces/{NAMESPACE}/{plural}");
    if with_name { format!("{place}/{name}") } else { place }
}

fn named<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let found = objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    found.unwrap_or_else(|| unreachable!("{kind} {name}"))
}

fn is_content_of_machine(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap();
    let name = object["metadata"]["name"].as_str().unwrap();
    match kind {
        "Metal3Machine" | "Metal3DataClaim" | "IPClaim" => true,
        "Metal3Data" => name == "test1-controlplane-template-0",
        "IPAddress" => name.ends_with("-100"),
        "Secret" => name.starts_with("test1-abcde-"),
        _ => false,
    }
}

/// Lets time pass, with the garbage collector at work.
async fn pass(world: &TestCluster, minutes: u64) {
    for _ in 0..minutes * 6 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        while world.cluster.collect_garbage() > 0 {}
    }
}

async fn world(text: &str) -> (TestCluster, User, Vec<Value>) {
    let world = TestCluster::empty().await;
    world.cluster.install(&catalog::definitions()).unwrap();
    world.cluster.install(&metal3_sim_cluster::cluster_api()).unwrap();
    let user = User(world.cluster.client("admin"));
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    user.send("POST", "/api/v1/namespaces", &namespace).await.unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let uids = documents[0]["metadata"]["uid"].as_str().unwrap();
    let mut objects = of_cluster_api(uids.get(..uids.len() - 2).unwrap());
    objects.extend(documents.into_iter().filter(|document| document["kind"].is_string()));
    let objects = user.load(objects).await;
    (world, user, objects)
}

/// An installation that was taken over.
struct TakenOver {
    release: &'static str,
    world: TestCluster,
    user: User,
    objects: Vec<Value>,
}

impl TakenOver {
    async fn host(&self) -> Value {
        let host = named(&self.objects, "BareMetalHost", "node-0");
        self.user.get(host).await.unwrap()
    }

    async fn machine(&self) -> Value {
        let machine = named(&self.objects, "Metal3Machine", "test1-abcde");
        self.user.get(machine).await.unwrap()
    }

    /// Nothing is lost, and only owners and labels changed.
    async fn assert_kept(&self, owners: &Value) {
        let (release, objects) = (self.release, &self.objects);
        for object in objects {
            let what = format!("{release}: {} {}", object["kind"], object["metadata"]["name"]);
            let found = self
                .user
                .get(object)
                .await
                .unwrap_or_else(|| unreachable!("{what} is lost"));
            assert!(found["metadata"]["deletionTimestamp"].is_null(), "{what} is deleted");
            let member = match object["kind"].as_str() {
                Some("Secret") => "data",
                Some("IPAddress") => "spec",
                _ => continue,
            };
            assert_eq!(found[member], object[member], "{what}");
        }
        let host = named(objects, "BareMetalHost", "node-0");
        let kept = self.user.get(host).await.unwrap();
        for member in ["image", "userData", "metaData", "networkData", "consumerRef"] {
            assert_eq!(kept["spec"][member], host["spec"][member], "{release}: {member}");
        }
        assert_eq!(kept["spec"]["online"], true);
        assert_eq!(kept["metadata"]["ownerReferences"], *owners, "{release}");
        let pool = named(objects, "IPPool", "provisioning-pool");
        let indexes = &self.user.get(pool).await.unwrap()["status"]["indexes"];
        assert_eq!(*indexes, pool["status"]["indexes"], "{release}");
        let reused = named(objects, "BareMetalHost", "node-1");
        let labels = &self.user.get(reused).await.unwrap()["metadata"]["labels"];
        assert_eq!(*labels, reused["metadata"]["labels"], "{release}");
    }

    /// The machine is deleted, and the manager of hosts deprovisions its host.
    async fn delete_machine(&self) {
        let (user, release) = (&self.user, self.release);
        let host = named(&self.objects, "BareMetalHost", "node-0");
        let machine = named(&self.objects, "Metal3Machine", "test1-abcde");
        user.send("DELETE", &path(machine, true), &json!({})).await.unwrap();
        until("deprovisioned", async || {
            let host = user.get(host).await.unwrap();
            host["spec"]["image"].is_null() && host["spec"]["online"] == false
        })
        .await;
        user.host_is(host, "deprovisioning").await;
        pass(&self.world, 2).await;
        let claim = named(
            &self.objects,
            "IPClaim",
            "test1-controlplane-template-0-provisioning-pool",
        );
        assert!(
            user.get(claim).await.is_some(),
            "{release}: the address is kept while the host may run"
        );
        user.host_is(host, "available").await;
        pass(&self.world, 20).await;
    }

    /// What belongs to the machine is deleted, and nothing else.
    async fn assert_released(&self) {
        let release = self.release;
        for object in &self.objects {
            let what = format!("{release}: {} {}", object["kind"], object["metadata"]["name"]);
            let found = self.user.get(object).await;
            assert_eq!(found.is_none(), is_content_of_machine(object), "{what}: {found:?}");
        }
        let host = named(&self.objects, "BareMetalHost", "node-0");
        let free = self.user.get(host).await.unwrap();
        assert!(free["spec"]["consumerRef"].is_null(), "{release}");
        assert!(free["metadata"]["deletionTimestamp"].is_null(), "{release}");
        let pool = named(&self.objects, "IPPool", "provisioning-pool");
        let indexes = &self.user.get(pool).await.unwrap()["status"]["indexes"];
        assert!(
            indexes["test1-controlplane-template-0-provisioning-pool"].is_null(),
            "{release}: {indexes}"
        );
    }
}

/// The API server enforces the permissions of owner references; those of the roles are granted.
fn enforce(world: &TestCluster, roles: &[BTreeSet<Permission>]) {
    let granted: BTreeSet<(&str, String, String)> = roles
        .iter()
        .flatten()
        .map(|need| (need.verb, need.group.clone(), need.path()))
        .collect();
    world.cluster.enforce_owner_permissions(Arc::new(move |access| {
        let wanted = (access.verb, access.group.to_owned(), access.resource.to_owned());
        access.user == "admin" || granted.contains(&wanted)
    }));
}

fn roles_without_the_owners_of_hosts() -> Vec<BTreeSet<Permission>> {
    vec![
        Machines::permissions(),
        Data::permissions(),
        Remediations::permissions(),
        Ipam::permissions(),
    ]
}

async fn take_over(release: &'static str, text: &str, roles: &[BTreeSet<Permission>]) -> (TakenOver, Replica) {
    let (world, user, objects) = world(text).await;
    if !roles.is_empty() {
        enforce(&world, roles);
    }
    let products = vec![find(Owner::Capm3), find(Owner::Ipam)];
    let replica = world.start_options("a", options("--controllers=capm3,ipam"), None, products);
    pass(&world, 10).await;
    let taken_over = TakenOver {
        release,
        world,
        user,
        objects,
    };
    (taken_over, replica)
}

#[tokio::test(start_paused = true)]
async fn objects_of_released_go_managers_are_kept_deprovisioned_released_and_deleted_without_a_loss() {
    for (release, text) in RELEASES {
        let (taken_over, replica) = take_over(release, text, &[]).await;
        taken_over.assert_kept(&Value::Null).await;
        taken_over.delete_machine().await;
        taken_over.assert_released().await;
        assert_eq!(replica.end().await, Ended::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn owner_that_may_not_be_removed_from_a_host_is_awaited_by_the_deletion_alone() {
    for (release, text) in RELEASES {
        let (taken_over, replica) = take_over(release, text, &roles_without_the_owners_of_hosts()).await;
        let host = named(&taken_over.objects, "BareMetalHost", "node-0");
        let owners = host["metadata"]["ownerReferences"].clone();
        taken_over.assert_kept(&owners).await;
        let machine = taken_over.machine().await;
        let conditions = machine["status"]["conditions"].as_array().unwrap();
        let failed: Vec<&Value> = conditions
            .iter()
            .filter(|one| one["reason"] == "UpdateError" || one["message"].to_string().contains("ownerRef"))
            .collect();
        assert!(failed.is_empty(), "{release}: {failed:?}");
        taken_over.world.cluster.reset_audit();
        pass(&taken_over.world, 60).await;
        let tried = taken_over.world.cluster.audit().of("a", "patch", "baremetalhosts");
        assert!(tried <= 6, "{release}: it is tried {tried} times an hour");
        taken_over.delete_machine().await;
        let machine = taken_over.machine().await;
        let conditions = machine["status"]["conditions"].to_string();
        assert!(
            conditions.contains("kubectl patch baremetalhost node-0"),
            "{release}: {conditions}"
        );
        let kept = taken_over.host().await;
        assert_eq!(kept["metadata"]["ownerReferences"], owners, "{release}");
        assert_eq!(
            kept["spec"]["consumerRef"], host["spec"]["consumerRef"],
            "{release}: no other machine takes it"
        );
        let disown = json!({ "metadata": { "ownerReferences": null } });
        taken_over.user.send("PATCH", &path(host, true), &disown).await.unwrap();
        pass(&taken_over.world, 5).await;
        taken_over.assert_released().await;
        assert_eq!(replica.end().await, Ended::Stopped);
    }
}
