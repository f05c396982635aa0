//! A tenant with a namespace of its own, and the hosts of the test environment in another.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{HostClaim, HostDeployPolicy};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};

pub(super) const NAMESPACE: &str = "tenant";
const LIMIT: Duration = Duration::from_hours(8);

pub(super) struct Tenant {
    pub(super) env: TestEnv,
}

pub(super) fn image() -> Value {
    let checksum = "d41d8cd98f00b204e9800998ecf8427e";
    json!({ "url": "http://images.example/os.qcow2", "checksum": checksum, "checksumType": "md5", "format": "qcow2" })
}

pub(super) fn condition(claim: &HostClaim, name: &str) -> String {
    let found = claim.status.conditions.iter().find(|one| one.type_ == name);
    found.map_or_else(String::new, |one| format!("{:?}", one.status))
}

pub(super) fn reason(claim: &HostClaim, name: &str) -> String {
    let found = claim.status.conditions.iter().find(|one| one.type_ == name);
    found.map_or_else(String::new, |one| one.reason.clone())
}

pub(super) fn status_of(claim: &HostClaim) -> String {
    serde_json::to_string_pretty(&claim.status).unwrap()
}

impl Tenant {
    /// Without any host.
    pub(super) fn without_host() -> Self {
        Self::of(None)
    }

    /// Without any host, and with a program of one namespace.
    pub(super) fn of(only: Option<&'static str>) -> Self {
        let env = TestEnv::new(Setup {
            claims: true,
            only,
            ..Setup::default()
        });
        Self { env }
    }

    /// With one host that is available.
    pub(super) async fn new() -> Self {
        let tenant = Self::without_host();
        tenant.env.host(1, json!({})).await;
        tenant.env.until_state(1, "available").await;
        tenant
    }

    pub(super) fn claims(&self, namespace: &str) -> Api<HostClaim> {
        Api::namespaced(self.env.cluster.client("tenant"), namespace)
    }

    pub(super) fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.env.cluster.client("tenant"), namespace)
    }

    /// Creates the namespace if it does not exist.
    pub(super) async fn namespace(&self, name: &str, labels: Value) {
        let all: Api<Namespace> = Api::all(self.env.cluster.client("admin"));
        if all.get_opt(name).await.unwrap().is_none() {
            let namespace = json!({ "metadata": { "name": name, "labels": labels } });
            let namespace = serde_json::from_value(namespace).unwrap();
            all.create(&PostParams::default(), &namespace).await.unwrap();
        }
    }

    pub(super) async fn policy(&self, name: &str, spec: Value) {
        let document = json!({ "metadata": { "name": name }, "spec": spec });
        self.env.make::<HostDeployPolicy>(document).await;
    }

    /// Opens the hosts to these namespaces.
    pub(super) async fn open(&self, namespaces: Value) {
        self.policy("open", json!({ "hostClaimNamespaces": namespaces })).await;
    }

    /// Takes that back.
    pub(super) async fn close(&self) {
        let policies = self.env.api::<HostDeployPolicy>();
        policies.delete("open", &DeleteParams::default()).await.unwrap();
    }

    pub(super) async fn claim(&self, name: &str, spec: Value) {
        self.labelled_claim(name, json!({}), spec).await;
    }

    pub(super) async fn labelled_claim(&self, name: &str, labels: Value, spec: Value) {
        self.namespace(NAMESPACE, json!({})).await;
        let document = json!({ "metadata": { "name": name, "labels": labels }, "spec": spec });
        let claim = serde_json::from_value(document).unwrap();
        self.claims(NAMESPACE)
            .create(&PostParams::default(), &claim)
            .await
            .unwrap();
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str, kind: &str, data: Value) {
        self.namespace(namespace, json!({})).await;
        let document = json!({ "metadata": { "name": name }, "type": kind, "stringData": data });
        let secret = serde_json::from_value(document).unwrap();
        self.secrets(namespace)
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
    }

    pub(super) async fn patch(&self, name: &str, change: Value) {
        let patch = Patch::Merge(change);
        self.claims(NAMESPACE)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(super) async fn annotate(&self, name: &str, annotations: Value) {
        self.patch(name, json!({ "metadata": { "annotations": annotations } }))
            .await;
    }

    pub(super) async fn delete(&self, name: &str) {
        self.claims(NAMESPACE)
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    pub(super) async fn find(&self, name: &str) -> Option<HostClaim> {
        self.claims(NAMESPACE).get_opt(name).await.unwrap()
    }

    pub(super) async fn get(&self, name: &str) -> HostClaim {
        self.find(name).await.unwrap()
    }

    pub(super) async fn until(&self, name: &str, what: &str, holds: impl Fn(&HostClaim) -> bool) -> HostClaim {
        let mut waited = Duration::ZERO;
        loop {
            let claim = self.get(name).await;
            if holds(&claim) {
                return claim;
            }
            let host = self.env.get(1).await;
            assert!(waited < LIMIT, "no {what}: {}\n{host:#?}", status_of(&claim));
            sleep(Duration::from_secs(1)).await;
            waited += Duration::from_secs(1);
        }
    }

    pub(super) async fn until_bound(&self, name: &str) -> HostClaim {
        self.until(name, "host", |claim| claim.status.bare_metal_host.is_some())
            .await
    }

    pub(super) async fn until_ready(&self, name: &str) -> HostClaim {
        self.until(name, "readiness", |claim| condition(claim, "Ready") == "True")
            .await
    }

    pub(super) async fn until_gone(&self, name: &str) {
        let mut waited = Duration::ZERO;
        while let Some(claim) = self.find(name).await {
            let host = self.env.get(1).await;
            assert!(waited < LIMIT, "{}\n{host:#?}", status_of(&claim));
            sleep(Duration::from_secs(1)).await;
            waited += Duration::from_secs(1);
        }
    }
}
