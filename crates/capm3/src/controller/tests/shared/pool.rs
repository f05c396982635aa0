//! An endpoint with an address claimed from a pool, rendered into a Secret for the machines.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_cluster::{Cluster as Server, Options};
use metal3_sim_faults::Plan;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::program::standalone;
use super::super::steps::kinds;
use super::fixture::{MANAGER, cluster_owner, condition, rejecting, requests, wait};
use super::lines;
use crate::data::reconciler::tests::lab::{CLUSTER_API, CLUSTER_IPAM, INFRASTRUCTURE, IPAM, User, address_management};

pub(super) const CORE: &str = "/api/v1/namespaces/default";
pub(super) const SECRET: &str = "edge-vip";
pub(super) const CLAIM: &str = "edge-control-plane-endpoint";

/// A Cluster with Metal3 infrastructure, and an owned Metal3Cluster.
pub(super) async fn cluster_with(user: &User, source: Value) {
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "edge" });
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "edge" },
        "spec": { "infrastructureRef": reference },
    });
    user.make(CLUSTER_API, "clusters", cluster).await;
    let owner = cluster_owner(user).await;
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster",
        "metadata": { "name": "edge", "ownerReferences": [owner] }, "spec": { "controlPlaneEndpointSource": source },
    });
    user.make(INFRASTRUCTURE, "metal3clusters", object).await;
}

/// A source that claims from the pool of address management, and renders a template.
pub(super) fn pooled() -> Value {
    json!({
        "type": "IPPool", "ipPool": { "name": "vips", "port": 8443 },
        "render": { "configMapName": "vip", "key": "vip.yaml", "secretName": SECRET },
    })
}

/// A pool with this number of addresses from `192.0.2.50` on.
pub(super) async fn vips(user: &User, number: u8) {
    pool(user, "vips", "192.0.2.50", &format!("192.0.2.{}", 49 + number)).await;
}

async fn pool(user: &User, name: &str, start: &str, end: &str) {
    let pool = json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool", "metadata": { "name": name },
        "spec": { "namePrefix": name, "prefix": 24, "pools": [{ "start": start, "end": end }] },
    });
    user.make(IPAM, "ippools", pool).await;
}

pub(super) async fn template(user: &User, text: &str) {
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "vip" }, "data": { "vip.yaml": text } });
    user.make(CORE, "configmaps", map).await;
}

pub(super) fn content_of(secret: &Secret) -> String {
    let content = secret.data.as_ref().and_then(|data| data.get("vip.yaml"));
    content.map_or_else(String::new, |content| String::from_utf8(content.0.clone()).unwrap())
}

/// A management cluster with address management and a garbage collector.
pub(super) struct PoolFixture {
    pub(super) server: Server,
    pub(super) user: User,
    clock: Arc<dyn Clock>,
    _others: JoinSet<()>,
}

impl PoolFixture {
    pub(super) fn start() -> Self {
        let server = Server::start(&Options::seeded(1));
        server.install(&kinds()).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let mut others = address_management(&server.client("addresses"), &clock);
        let collected = server.clone();
        others.spawn(async move { collected.run_collector().await });
        Self {
            user: User(server.client("user")),
            _others: others,
            server,
            clock,
        }
    }

    /// The cluster with a running program and this number of addresses.
    pub(super) async fn running(addresses: u8) -> (Self, JoinSet<()>) {
        let fixture = Self::start();
        let program = fixture.program();
        vips(&fixture.user, addresses).await;
        (fixture, program)
    }

    pub(super) fn program(&self) -> JoinSet<()> {
        standalone(&self.server.client(MANAGER), &self.clock)
            .tasks()
            .into_iter()
            .collect()
    }

    pub(super) async fn metal3(&self) -> Value {
        self.user.get(INFRASTRUCTURE, "metal3clusters/edge").await
    }

    pub(super) async fn secret(&self) -> String {
        let secrets: Api<Secret> = Api::default_namespaced(self.user.0.clone());
        secrets
            .get_opt(SECRET)
            .await
            .unwrap()
            .map_or_else(String::new, |secret| content_of(&secret))
    }

    /// The host of the Metal3Cluster's endpoint.
    pub(super) async fn host(&self) -> Value {
        self.metal3().await["spec"]["controlPlaneEndpoint"]["host"].clone()
    }

    /// Changes the Metal3Cluster.
    pub(super) async fn change(&self, change: Value) {
        self.user.change(INFRASTRUCTURE, "metal3clusters/edge", change).await;
    }

    pub(super) async fn reason(&self, aspect: &str) -> String {
        condition(&self.metal3().await, aspect).1
    }

    /// Asserts status and reason of a condition, and a part of its message.
    pub(super) async fn assert_condition(&self, aspect: &str, expected: (&str, &str), part: &str) {
        let (status, reason, message) = condition(&self.metal3().await, aspect);
        assert_eq!((status.as_str(), reason.as_str()), expected, "{message}");
        assert!(message.contains(part), "{message}");
    }

    pub(super) async fn claim(&self) -> Value {
        self.user.get(IPAM, &format!("ipclaims/{CLAIM}")).await
    }

    /// A provider serves the claim on a pool of another provider.
    pub(super) async fn serve_claim_elsewhere(&self, pool: &Value) {
        let address = json!({
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": { "name": "far-1" },
            "spec": { "claimRef": { "name": CLAIM }, "poolRef": pool, "address": "198.51.100.1", "prefix": 24 },
        });
        self.user.make(CLUSTER_IPAM, "ipaddresses", address).await;
        let answer = json!({ "status": { "addressRef": { "name": "far-1" } } });
        let status = format!("ipaddressclaims/{CLAIM}/status");
        self.user.change(CLUSTER_IPAM, &status, answer).await;
        wait().await;
    }

    /// The requests of this program since the last reset.
    pub(super) fn requests(&self) -> BTreeMap<String, u64> {
        requests(&self.server)
    }
}

/// A source from the pool `vips`.
pub(super) fn from_pool() -> Value {
    json!({ "type": "IPPool", "ipPool": { "name": "vips" } })
}

/// A pool of another provider.
pub(super) fn pool_elsewhere() -> Value {
    json!({ "apiGroup": "ipam.example.org", "kind": "GlobalPool", "name": "far" })
}

#[tokio::test(start_paused = true)]
async fn address_of_a_pool_becomes_the_endpoint_and_is_rendered_without_configuration() {
    let fixture = PoolFixture::start();
    let _program = fixture.program();
    wait().await;
    vips(&fixture.user, 3).await;
    template(&fixture.user, "address: ${HOST}\nport: \"${PORT}\"\n").await;
    fixture.server.reset_audit();
    cluster_with(&fixture.user, pooled()).await;
    wait().await;
    let metal3 = fixture.metal3().await;
    assert_eq!(
        metal3["spec"]["controlPlaneEndpoint"],
        json!({ "host": "192.0.2.50", "port": 8443 })
    );
    assert_eq!(metal3["status"]["initialization"]["provisioned"], true);
    assert_eq!(
        metal3["status"]["controlPlaneEndpoint"]["from"],
        format!("IPClaim {CLAIM}")
    );
    assert_eq!(fixture.reason("ControlPlaneEndpointReady").await, "EndpointFromIPPool");
    assert_eq!(fixture.reason("ControlPlaneEndpointRendered").await, "Rendered");
    assert_eq!(fixture.secret().await, "address: 192.0.2.50\nport: \"8443\"\n");
    let claim = fixture.claim().await;
    let owner = &claim["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"], &owner["blockOwnerDeletion"]),
        (&json!("Metal3Cluster"), &json!(true), &json!(true))
    );
    let expected = lines([
        ("create ipclaims", 1),
        ("create secrets", 1),
        ("list configmaps", 1),
        // Finalizer; endpoint.
        ("patch metal3clusters", 2),
        // Waiting for an address; endpoint known.
        ("patch metal3clusters/status", 2),
        ("watch configmaps", 1),
    ]);
    assert_eq!(fixture.requests(), expected);
    fixture.server.reset_audit();
    tokio::time::sleep(Duration::from_mins(20)).await;
    let mut quiet = fixture.requests();
    quiet.retain(|what, _| !what.starts_with("watch "));
    assert_eq!(quiet, lines([]), "an idle while");
}

#[tokio::test(start_paused = true)]
async fn secret_follows_its_template_and_is_created_again_after_deletion() {
    let (fixture, _program) = PoolFixture::running(3).await;
    cluster_with(&fixture.user, pooled()).await;
    wait().await;
    let missing = ("False", "TemplateNotFound");
    let remedy = "ConfigMap vip does not exist; create it";
    fixture
        .assert_condition("ControlPlaneEndpointRendered", missing, remedy)
        .await;
    template(&fixture.user, "one ${HOST}").await;
    wait().await;
    assert_eq!(fixture.secret().await, "one 192.0.2.50");
    let changed = json!({ "data": { "vip.yaml": "two ${HOST}" } });
    fixture.user.change(CORE, "configmaps/vip", changed).await;
    wait().await;
    assert_eq!(fixture.secret().await, "two 192.0.2.50");
    fixture.user.delete(CORE, &format!("secrets/{SECRET}")).await;
    wait().await;
    assert_eq!(fixture.secret().await, "two 192.0.2.50");
    let by_hand = json!({ "data": { "vip.yaml": "AA==" } });
    fixture.user.change(CORE, &format!("secrets/{SECRET}"), by_hand).await;
    wait().await;
    assert_eq!(fixture.secret().await, "two 192.0.2.50");
}

#[tokio::test(start_paused = true)]
async fn secret_of_another_owner_is_not_changed_and_reported() {
    let (fixture, _program) = PoolFixture::running(3).await;
    template(&fixture.user, "one ${HOST}").await;
    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET }, "data": { "vip.yaml": "AA==" } });
    fixture.user.make(CORE, "secrets", secret).await;
    cluster_with(&fixture.user, pooled()).await;
    wait().await;
    assert_eq!(fixture.reason("ControlPlaneEndpointRendered").await, "SecretNotOurs");
    assert_eq!(fixture.requests().get("get secrets"), None, "its content is not read");
    assert_eq!(fixture.secret().await, "\0");
    fixture.user.delete(CORE, &format!("secrets/{SECRET}")).await;
    wait().await;
    assert_eq!(fixture.secret().await, "one 192.0.2.50");
}

#[tokio::test(start_paused = true)]
async fn object_waits_for_a_free_address_of_its_pool() {
    let (fixture, _program) = PoolFixture::running(1).await;
    let other = json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPClaim", "metadata": { "name": "other" },
        "spec": { "pool": { "name": "vips" } },
    });
    fixture.user.make(IPAM, "ipclaims", other).await;
    wait().await;
    cluster_with(&fixture.user, pooled()).await;
    wait().await;
    let (waiting, part) = (("False", "WaitingForIPAddress"), "once the pool has a free address");
    fixture
        .assert_condition("ControlPlaneEndpointReady", waiting, part)
        .await;
    fixture.user.delete(IPAM, "ipclaims/other").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(fixture.host().await, "192.0.2.50");
}

#[tokio::test(start_paused = true)]
async fn requested_address_is_the_endpoint() {
    let (fixture, _program) = PoolFixture::running(9).await;
    let source = json!({ "type": "IPPool", "ipPool": { "name": "vips", "address": "192.0.2.55" } });
    cluster_with(&fixture.user, source).await;
    wait().await;
    let endpoint = json!({ "host": "192.0.2.55", "port": 6443 });
    assert_eq!(fixture.metal3().await["spec"]["controlPlaneEndpoint"], endpoint);
}

#[tokio::test(start_paused = true)]
async fn pool_of_another_provider_is_used_by_the_contract_of_cluster_api() {
    let fixture = PoolFixture::start();
    let _program = fixture.program();
    let pool = pool_elsewhere();
    cluster_with(&fixture.user, json!({ "type": "IPPool", "ipPool": pool })).await;
    wait().await;
    let claim = format!("ipaddressclaims/{CLAIM}");
    let spec = &fixture.user.get(CLUSTER_IPAM, &claim).await["spec"];
    assert_eq!((&spec["clusterName"], &spec["poolRef"]), (&json!("edge"), &pool));
    fixture.serve_claim_elsewhere(&pool).await;
    assert_eq!(fixture.host().await, "198.51.100.1");
}

#[tokio::test(start_paused = true)]
async fn forbidden_template_is_reported_by_verb_and_resource_until_granted() {
    let fixture = PoolFixture::start();
    fixture.server.inject(Plan::none().with(rejecting(403, "configmaps")));
    let _program = fixture.program();
    vips(&fixture.user, 3).await;
    cluster_with(&fixture.user, pooled()).await;
    wait().await;
    let (forbidden, part) = (("False", "TemplateForbidden"), "may not list configmaps");
    fixture
        .assert_condition("ControlPlaneEndpointRendered", forbidden, part)
        .await;
    let reason = fixture.reason("ControlPlaneEndpointReady").await;
    assert_eq!(reason, "EndpointFromIPPool", "the endpoint needs no template");
    fixture.server.inject(Plan::none());
    template(&fixture.user, "one ${HOST}").await;
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(fixture.secret().await, "one 192.0.2.50");
}

#[tokio::test(start_paused = true)]
async fn forbidden_claim_is_reported_by_verb_and_resource_until_granted() {
    for (pool, plural, resource) in [
        (json!({ "name": "vips" }), "ipclaims", "ipclaims.ipam.metal3.io"),
        (
            pool_elsewhere(),
            "ipaddressclaims",
            "ipaddressclaims.ipam.cluster.x-k8s.io",
        ),
    ] {
        let fixture = PoolFixture::start();
        fixture
            .server
            .inject(Plan::none().with(rejecting(403, plural).verb("create")));
        let _program = fixture.program();
        vips(&fixture.user, 3).await;
        cluster_with(&fixture.user, json!({ "type": "IPPool", "ipPool": pool })).await;
        wait().await;
        for part in [
            &format!("may not create {resource}"),
            "grant its service account create",
        ] {
            let forbidden = ("False", "SourceForbidden");
            fixture
                .assert_condition("ControlPlaneEndpointReady", forbidden, part)
                .await;
        }
        fixture.server.reset_audit();
        tokio::time::sleep(Duration::from_mins(10)).await;
        let requests = fixture.requests();
        let tries = requests.get(&format!("create {plural}")).copied().unwrap_or_default();
        assert!((9..=11).contains(&tries), "once a minute: {requests:?}");
        assert_eq!(
            requests.get("patch metal3clusters/status"),
            None,
            "it is reported once: {requests:?}"
        );
        fixture.server.inject(Plan::none());
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_ne!(fixture.reason("ControlPlaneEndpointReady").await, "SourceForbidden");
    }
}

#[tokio::test(start_paused = true)]
async fn claim_on_another_pool_than_is_asked_for_is_named_and_left_until_a_person_deletes_it() {
    let (fixture, _program) = PoolFixture::running(3).await;
    pool(&fixture.user, "others", "198.51.100.50", "198.51.100.52").await;
    cluster_with(&fixture.user, from_pool()).await;
    wait().await;
    let other = json!({ "spec": { "controlPlaneEndpointSource": { "ipPool": { "name": "others" } } } });
    fixture.change(other).await;
    wait().await;
    let part = "names pool others, the claim is on pool vips";
    fixture
        .assert_condition("ControlPlaneEndpointReady", ("False", "EndpointInvalid"), part)
        .await;
    let claim = fixture.claim().await;
    assert_eq!(claim["spec"]["pool"]["name"], "vips");
    assert_eq!(fixture.host().await, "192.0.2.50");
    let untyped = json!({ "spec": { "controlPlaneEndpoint": null } });
    fixture.change(untyped).await;
    fixture.user.delete(IPAM, &format!("ipclaims/{CLAIM}")).await;
    wait().await;
    assert_eq!(fixture.host().await, "198.51.100.50");
    assert_eq!(fixture.reason("ControlPlaneEndpointReady").await, "EndpointFromIPPool");
    let fixed = json!({ "spec": { "controlPlaneEndpoint": { "host": "198.51.100.50", "port": 6443 } } });
    fixture.user.change(CLUSTER_API, "clusters/edge", fixed).await;
    let back = json!({ "spec": { "controlPlaneEndpointSource": { "ipPool": { "name": "vips" } } } });
    fixture.change(back).await;
    wait().await;
    let part = "names pool vips, the claim is on pool others";
    fixture
        .assert_condition("ControlPlaneEndpointDrifted", ("True", "SourceChanged"), part)
        .await;
    assert_eq!(fixture.host().await, "198.51.100.50");
}
