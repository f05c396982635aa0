//! An endpoint whose address is claimed from a pool, and that is filled into a Secret for the machines.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::{Cluster as Server, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::program::alone;
use super::super::site::kinds;
use super::lines;
use super::scene::{MANAGER, World, settle};
use crate::controller::data::tests::lab::{CLUSTER_API, CLUSTER_IPAM, INFRASTRUCTURE, IPAM, User, address_management};

pub(super) const CORE: &str = "/api/v1/namespaces/default";
pub(super) const SECRET: &str = "edge-vip";
pub(super) const CLAIM: &str = "edge-control-plane-endpoint";

/// A Cluster on our infrastructure. Cluster API has made the Metal3Cluster its own.
pub(super) async fn cluster_with(user: &User, source: Value) {
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": "edge" });
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "edge" },
        "spec": { "infrastructureRef": reference },
    });
    let cluster = user.make(CLUSTER_API, "clusters", cluster).await;
    let owner = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "edge", "uid": cluster["metadata"]["uid"],
    });
    let object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster",
        "metadata": { "name": "edge", "ownerReferences": [owner] }, "spec": { "controlPlaneEndpointSource": source },
    });
    user.make(INFRASTRUCTURE, "metal3clusters", object).await;
}

/// A source that claims from the pool of address management, and fills a template.
pub(super) fn pooled() -> Value {
    json!({
        "type": "IPPool", "ipPool": { "name": "vips", "port": 8443 },
        "render": { "configMapName": "vip", "key": "vip.yaml", "secretName": SECRET },
    })
}

/// A pool with so many addresses from `192.0.2.50` on.
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

/// What the Secret says.
pub(super) fn said_by(secret: &Secret) -> String {
    let content = secret.data.as_ref().and_then(|data| data.get("vip.yaml"));
    content.map_or_else(String::new, |content| String::from_utf8(content.0.clone()).unwrap())
}

/// A management cluster with address management and a garbage collector.
pub(super) struct Site {
    pub(super) server: Server,
    pub(super) user: User,
    clock: Arc<dyn Clock>,
    _others: JoinSet<()>,
}

impl Site {
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

    pub(super) fn program(&self) -> JoinSet<()> {
        alone(&self.server.client(MANAGER), &self.clock)
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
            .map_or_else(String::new, |secret| said_by(&secret))
    }

    /// Status, reason and message of a condition.
    pub(super) async fn said(&self, aspect: &str) -> (String, String, String) {
        let object = self.metal3().await;
        let all = object["status"]["conditions"].as_array().unwrap();
        let found = all.iter().find(|one| one["type"] == aspect).unwrap();
        let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// The requests of this program since the last reset, but for watches that are begun anew.
    pub(super) fn requests(&self) -> std::collections::BTreeMap<String, u64> {
        let world = World {
            server: self.server.clone(),
            user: self.user.0.clone(),
            metrics: Metrics::new(),
        };
        world.requests()
    }
}

#[tokio::test(start_paused = true)]
async fn address_of_a_pool_becomes_the_endpoint_and_reaches_the_machines_with_nothing_typed() {
    let site = Site::start();
    let _program = site.program();
    settle().await;
    vips(&site.user, 3).await;
    template(&site.user, "address: ${HOST}\nport: \"${PORT}\"\n").await;
    site.server.reset_audit();
    cluster_with(&site.user, pooled()).await;
    settle().await;
    let metal3 = site.metal3().await;
    assert_eq!(
        metal3["spec"]["controlPlaneEndpoint"],
        json!({ "host": "192.0.2.50", "port": 8443 })
    );
    assert_eq!(metal3["status"]["initialization"]["provisioned"], true);
    assert_eq!(
        metal3["status"]["controlPlaneEndpoint"]["from"],
        format!("IPClaim {CLAIM}")
    );
    assert_eq!(site.said("ControlPlaneEndpointReady").await.1, "EndpointFromIPPool");
    assert_eq!(site.said("ControlPlaneEndpointRendered").await.1, "Rendered");
    assert_eq!(site.secret().await, "address: 192.0.2.50\nport: \"8443\"\n");
    let claim = site.user.get(IPAM, &format!("ipclaims/{CLAIM}")).await;
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
        // That an address is waited for; that there is one.
        ("patch metal3clusters/status", 2),
        ("watch configmaps", 1),
    ]);
    assert_eq!(site.requests(), expected);
    site.server.reset_audit();
    tokio::time::sleep(Duration::from_mins(20)).await;
    let mut quiet = site.requests();
    quiet.retain(|what, _| !what.starts_with("watch "));
    assert_eq!(quiet, lines([]), "a quiet while");
}

#[tokio::test(start_paused = true)]
async fn secret_follows_its_template_and_comes_back_when_somebody_deletes_it() {
    let site = Site::start();
    let _program = site.program();
    vips(&site.user, 3).await;
    cluster_with(&site.user, pooled()).await;
    settle().await;
    let (status, reason, message) = site.said("ControlPlaneEndpointRendered").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TemplateNotFound"));
    assert!(message.contains("ConfigMap vip does not exist; create it"), "{message}");
    template(&site.user, "one ${HOST}").await;
    settle().await;
    assert_eq!(site.secret().await, "one 192.0.2.50");
    let changed = json!({ "data": { "vip.yaml": "two ${HOST}" } });
    site.user.change(CORE, "configmaps/vip", changed).await;
    settle().await;
    assert_eq!(site.secret().await, "two 192.0.2.50");
    site.user.delete(CORE, &format!("secrets/{SECRET}")).await;
    settle().await;
    assert_eq!(site.secret().await, "two 192.0.2.50");
    let by_hand = json!({ "data": { "vip.yaml": "AA==" } });
    site.user.change(CORE, &format!("secrets/{SECRET}"), by_hand).await;
    settle().await;
    assert_eq!(site.secret().await, "two 192.0.2.50");
}

#[tokio::test(start_paused = true)]
async fn secret_of_somebody_else_is_left_alone_and_named() {
    let site = Site::start();
    let _program = site.program();
    vips(&site.user, 3).await;
    template(&site.user, "one ${HOST}").await;
    let secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": SECRET }, "data": { "vip.yaml": "AA==" } });
    site.user.make(CORE, "secrets", secret).await;
    cluster_with(&site.user, pooled()).await;
    settle().await;
    assert_eq!(site.said("ControlPlaneEndpointRendered").await.1, "SecretNotOurs");
    assert_eq!(
        site.requests().get("get secrets"),
        None,
        "what it holds is nobody's business"
    );
    assert_eq!(site.secret().await, "\0");
    site.user.delete(CORE, &format!("secrets/{SECRET}")).await;
    settle().await;
    assert_eq!(site.secret().await, "one 192.0.2.50");
}

#[tokio::test(start_paused = true)]
async fn pool_without_a_free_address_is_waited_for_and_goes_on_by_itself() {
    let site = Site::start();
    let _program = site.program();
    vips(&site.user, 1).await;
    let other = json!({
        "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPClaim", "metadata": { "name": "other" },
        "spec": { "pool": { "name": "vips" } },
    });
    site.user.make(IPAM, "ipclaims", other).await;
    settle().await;
    cluster_with(&site.user, pooled()).await;
    settle().await;
    let (status, reason, message) = site.said("ControlPlaneEndpointReady").await;
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "WaitingForIPAddress"),
        "{message}"
    );
    assert!(message.contains("make room in the pool"), "{message}");
    site.user.delete(IPAM, "ipclaims/other").await;
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(
        site.metal3().await["spec"]["controlPlaneEndpoint"]["host"],
        "192.0.2.50"
    );
}

#[tokio::test(start_paused = true)]
async fn address_that_is_asked_for_is_the_endpoint() {
    let site = Site::start();
    let _program = site.program();
    vips(&site.user, 9).await;
    let source = json!({ "type": "IPPool", "ipPool": { "name": "vips", "address": "192.0.2.55" } });
    cluster_with(&site.user, source).await;
    settle().await;
    let endpoint = json!({ "host": "192.0.2.55", "port": 6443 });
    assert_eq!(site.metal3().await["spec"]["controlPlaneEndpoint"], endpoint);
}

#[tokio::test(start_paused = true)]
async fn pool_of_another_provider_is_asked_by_the_contract_of_cluster_api() {
    let site = Site::start();
    let _program = site.program();
    let pool = json!({ "apiGroup": "ipam.example.org", "kind": "GlobalPool", "name": "far" });
    cluster_with(&site.user, json!({ "type": "IPPool", "ipPool": pool })).await;
    settle().await;
    let claim = site.user.get(CLUSTER_IPAM, &format!("ipaddressclaims/{CLAIM}")).await;
    assert_eq!(
        (&claim["spec"]["clusterName"], &claim["spec"]["poolRef"]),
        (&json!("edge"), &pool)
    );
    let address = json!({
        "apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddress", "metadata": { "name": "far-1" },
        "spec": { "claimRef": { "name": CLAIM }, "poolRef": pool, "address": "198.51.100.1", "prefix": 24 },
    });
    site.user.make(CLUSTER_IPAM, "ipaddresses", address).await;
    let answer = json!({ "status": { "addressRef": { "name": "far-1" } } });
    let status = format!("ipaddressclaims/{CLAIM}/status");
    site.user.change(CLUSTER_IPAM, &status, answer).await;
    settle().await;
    assert_eq!(
        site.metal3().await["spec"]["controlPlaneEndpoint"]["host"],
        "198.51.100.1"
    );
}

#[tokio::test(start_paused = true)]
async fn template_that_may_not_be_read_is_named_by_verb_and_resource_until_it_may() {
    let site = Site::start();
    let refused = Fault::Refused {
        code: 403,
        retry_after: None,
    };
    site.server
        .inject(Plan::none().with(Rule::random(1000, refused).resource("configmaps")));
    let _program = site.program();
    vips(&site.user, 3).await;
    cluster_with(&site.user, pooled()).await;
    settle().await;
    let (_, reason, message) = site.said("ControlPlaneEndpointRendered").await;
    assert_eq!(reason, "TemplateForbidden");
    assert!(message.contains("may not list configmaps"), "{message}");
    assert_eq!(
        site.said("ControlPlaneEndpointReady").await.1,
        "EndpointFromIPPool",
        "the endpoint needs no template"
    );
    site.server.inject(Plan::none());
    template(&site.user, "one ${HOST}").await;
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(site.secret().await, "one 192.0.2.50");
}

#[tokio::test(start_paused = true)]
async fn claim_that_may_not_be_made_is_named_by_verb_and_resource_until_it_may() {
    let far = json!({ "apiGroup": "ipam.example.org", "kind": "GlobalPool", "name": "far" });
    for (pool, plural, resource) in [
        (json!({ "name": "vips" }), "ipclaims", "ipclaims.ipam.metal3.io"),
        (far, "ipaddressclaims", "ipaddressclaims.ipam.cluster.x-k8s.io"),
    ] {
        let site = Site::start();
        let refused = Fault::Refused {
            code: 403,
            retry_after: None,
        };
        let rule = Rule::random(1000, refused).resource(plural).verb("create");
        site.server.inject(Plan::none().with(rule));
        let _program = site.program();
        vips(&site.user, 3).await;
        cluster_with(&site.user, json!({ "type": "IPPool", "ipPool": pool })).await;
        settle().await;
        let (status, reason, message) = site.said("ControlPlaneEndpointReady").await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "SourceForbidden"));
        assert!(message.contains(&format!("may not create {resource}")), "{message}");
        assert!(message.contains("grant its service account create"), "{message}");
        site.server.reset_audit();
        tokio::time::sleep(Duration::from_mins(10)).await;
        let asked = site.requests();
        let tries = asked.get(&format!("create {plural}")).copied().unwrap_or_default();
        assert!((9..=11).contains(&tries), "once a minute: {asked:?}");
        assert_eq!(
            asked.get("patch metal3clusters/status"),
            None,
            "it is said once: {asked:?}"
        );
        site.server.inject(Plan::none());
        tokio::time::sleep(Duration::from_mins(2)).await;
        assert_ne!(site.said("ControlPlaneEndpointReady").await.1, "SourceForbidden");
    }
}

#[tokio::test(start_paused = true)]
async fn claim_on_another_pool_than_is_asked_for_is_named_and_left_until_a_person_deletes_it() {
    let site = Site::start();
    let _program = site.program();
    vips(&site.user, 3).await;
    pool(&site.user, "others", "198.51.100.50", "198.51.100.52").await;
    cluster_with(&site.user, json!({ "type": "IPPool", "ipPool": { "name": "vips" } })).await;
    settle().await;
    let other = json!({ "spec": { "controlPlaneEndpointSource": { "ipPool": { "name": "others" } } } });
    site.user.change(INFRASTRUCTURE, "metal3clusters/edge", other).await;
    settle().await;
    let (status, reason, message) = site.said("ControlPlaneEndpointReady").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "EndpointInvalid"));
    assert!(
        message.contains("names pool others, the claim is on pool vips"),
        "{message}"
    );
    let claim = site.user.get(IPAM, &format!("ipclaims/{CLAIM}")).await;
    assert_eq!(claim["spec"]["pool"]["name"], "vips");
    assert_eq!(
        site.metal3().await["spec"]["controlPlaneEndpoint"]["host"],
        "192.0.2.50"
    );
    let untyped = json!({ "spec": { "controlPlaneEndpoint": null } });
    site.user.change(INFRASTRUCTURE, "metal3clusters/edge", untyped).await;
    site.user.delete(IPAM, &format!("ipclaims/{CLAIM}")).await;
    settle().await;
    assert_eq!(
        site.metal3().await["spec"]["controlPlaneEndpoint"]["host"],
        "198.51.100.50"
    );
    assert_eq!(site.said("ControlPlaneEndpointReady").await.1, "EndpointFromIPPool");
    let fixed = json!({ "spec": { "controlPlaneEndpoint": { "host": "198.51.100.50", "port": 6443 } } });
    site.user.change(CLUSTER_API, "clusters/edge", fixed).await;
    let back = json!({ "spec": { "controlPlaneEndpointSource": { "ipPool": { "name": "vips" } } } });
    site.user.change(INFRASTRUCTURE, "metal3clusters/edge", back).await;
    settle().await;
    let (status, reason, message) = site.said("ControlPlaneEndpointDrifted").await;
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("True", "SourceChanged"),
        "{message}"
    );
    assert!(
        message.contains("names pool vips, the claim is on pool others"),
        "{message}"
    );
    assert_eq!(
        site.metal3().await["spec"]["controlPlaneEndpoint"]["host"],
        "198.51.100.50"
    );
}
