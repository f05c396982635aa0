//! Hosts whose Ironic is named by an `Ironic` resource, in the whole process.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_manager::hosts_config::HostsConfig;
use metal3_manager::run::Ended;
use metal3_sim_ironic::{Ironic, Options};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::environment::{TestCluster, options, until};
use crate::hosts::{CONTROLLERS, enrol, install_tls, products, state, world};

const NAMESPACE: &str = "ironics";

/// The definition of the operator, reduced.
fn definition() -> Value {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "ironics.ironic.metal3.io" },
        "spec": {
            "group": "ironic.metal3.io", "scope": "Namespaced",
            "names": { "kind": "Ironic", "listKind": "IronicList", "plural": "ironics", "singular": "ironic" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } },
            }],
        },
    })
}

struct Operator {
    admin: Client,
}

impl Operator {
    async fn of(world: &TestCluster) -> Self {
        let admin = world.cluster.client("admin");
        post(
            &admin,
            "/api/v1/namespaces",
            &json!({ "metadata": { "name": NAMESPACE } }),
        )
        .await;
        Self { admin }
    }

    async fn define(&self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        post(&self.admin, path, &definition()).await;
    }

    fn ironics(&self) -> Api<DynamicObject> {
        let kind = ApiResource {
            group: "ironic.metal3.io".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "ironic.metal3.io/v1alpha1".to_owned(),
            kind: "Ironic".to_owned(),
            plural: "ironics".to_owned(),
        };
        Api::namespaced_with(self.admin.clone(), NAMESPACE, &kind)
    }

    async fn create(&self) {
        let new = json!({
            "apiVersion": "ironic.metal3.io/v1alpha1", "kind": "Ironic",
            "metadata": { "name": "ironic" },
            "spec": { "apiCredentialsName": "login", "tls": { "certificateName": "tls" } },
        });
        let new = serde_json::from_value(new).unwrap();
        self.ironics().create(&PostParams::default(), &new).await.unwrap();
    }

    /// Reports of the present generation.
    async fn report(&self, ready: &str, message: &str) {
        let generation = self.ironics().get("ironic").await.unwrap().metadata.generation;
        let status = json!({ "status": { "conditions": [{
            "type": "Ready", "status": ready, "observedGeneration": generation, "reason": "Any", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] } });
        let (params, patch) = (PatchParams::default(), Patch::Merge(status));
        self.ironics().patch_status("ironic", &params, &patch).await.unwrap();
    }

    async fn secret(&self, name: &str, data: Value) {
        let new = serde_json::from_value(json!({ "metadata": { "name": name }, "data": data })).unwrap();
        let secrets: Api<Secret> = Api::namespaced(self.admin.clone(), NAMESPACE);
        secrets.create(&PostParams::default(), &new).await.unwrap();
    }
}

async fn post(client: &Client, path: &str, body: &Value) {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(body.to_string().into_bytes()).unwrap();
    client.request::<Value>(request).await.unwrap();
}

async fn named(world: &TestCluster, ironic: &Ironic) -> HostsConfig {
    let variable = |name: &str| match name {
        "IRONIC_NAME" => Some("ironic".to_owned()),
        "IRONIC_NAMESPACE" => Some(NAMESPACE.to_owned()),
        _ => None,
    };
    let metal = HostsConfig::of(&options(CONTROLLERS), variable, Arc::clone(&world.clock)).await;
    // The client of the simulator, without a destination as that of the configuration.
    let client = ironic.client().unwrap();
    client
        .change_destination(Err("it was not read yet".to_owned()))
        .await
        .unwrap();
    HostsConfig {
        ironics: client.into(),
        ..metal.unwrap()
    }
}

async fn what_the_host_says(world: &TestCluster) -> String {
    let host = world.api::<BareMetalHost>().get("one").await.unwrap();
    let status = serde_json::to_value(host.status).unwrap();
    status.get("conditions").map(ToString::to_string).unwrap_or_default()
}

/// What the host says within seconds: no retry of its own is due so soon.
async fn soon(world: &TestCluster, text: &str) {
    let began = Instant::now();
    until(text, async || what_the_host_says(world).await.contains(text)).await;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{text}: {:?}",
        began.elapsed()
    );
}

/// From a cluster without the operator to an Ironic that is updated: each step is seen without polling.
#[tokio::test(start_paused = true)]
async fn hosts_wait_for_the_ironic_resource_and_follow_it() {
    install_tls();
    let world = world().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    let operator = Operator::of(&world).await;
    enrol(&world).await;
    let metal = named(&world, &ironic).await;
    let replica = world.start_options("a", options(CONTROLLERS), Some(metal), products());
    until("ready", async || replica.ready().await).await;
    until("the missing resource is named", async || {
        what_the_host_says(&world)
            .await
            .contains("Ironic resource ironics/ironic does not exist")
    })
    .await;
    operator.define().await;
    operator.create().await;
    operator.report("False", "0 of 1 replicas").await;
    // A definition that is new is looked for once a minute.
    until("the operator's reason is shown", async || {
        what_the_host_says(&world).await.contains("0 of 1 replicas")
    })
    .await;
    operator.report("False", "it pulls its image").await;
    soon(&world, "it pulls its image").await;
    operator.report("True", "").await;
    soon(&world, "Secret ironics/login").await;
    assert_eq!(ironic.audit().total(), 0, "nothing was sent before");

    operator
        .secret("login", json!({ "username": "YWRtaW4=", "password": "aHVudGVyMg==" }))
        .await;
    operator.secret("tls", json!({ "tls.crt": "UEVN" })).await;
    until("available", async || state(&world).await == "available").await;
    assert!(!what_the_host_says(&world).await.contains("hunter2"));

    operator.report("False", "it is updated").await;
    sleep(Duration::from_secs(5)).await;
    let sent = ironic.audit().total();
    sleep(Duration::from_mins(10)).await;
    assert_eq!(
        ironic.audit().total(),
        sent,
        "nothing is sent to an Ironic that is not ready"
    );
    operator.report("True", "").await;
    sleep(Duration::from_secs(5)).await;
    assert!(ironic.audit().total() > sent, "it is used again at once");
    assert_eq!(replica.end().await, Ended::Stopped);
}

/// The counterpart of the test above: who names no resource pays nothing for it.
#[tokio::test(start_paused = true)]
async fn who_names_no_ironic_resource_watches_none() {
    install_tls();
    let world = world().await;
    let ironic = Ironic::start(Options::new(1, Arc::clone(&world.clock)));
    Operator::of(&world).await.define().await;
    enrol(&world).await;
    let metal = crate::hosts::wired(&world, &ironic, CONTROLLERS).await;
    let replica = world.start_options("a", options(CONTROLLERS), Some(metal), products());
    until("available", async || state(&world).await == "available").await;
    let audit = world.cluster.audit();
    let asked = audit
        .counts()
        .filter(|((user, _, resource), _)| user == "a" && resource.contains("ironics"));
    assert_eq!(asked.count(), 0);
    assert_eq!(replica.end().await, Ended::Stopped);
}
