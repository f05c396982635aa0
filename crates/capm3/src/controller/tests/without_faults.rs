//! Runs without faults, for effects that are not in the controllers' own objects.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;
use tokio::task::JoinSet;

use super::program::start;
use super::steps::Step::{self, Data, DataGoes, Delete, Host, Machine, State};
use super::steps::{kinds, make};
use crate::tests::Log;

/// Longer than every requeue after a failure.
pub(super) const SETTLED: Duration = Duration::from_mins(10);
/// User name of the program.
pub(super) const PROGRAM: &str = "capm3";

/// A server, a user, and the program.
pub(super) struct Run {
    pub(super) cluster: Cluster,
    pub(super) user: kube::Client,
    pub(super) metrics: Metrics,
    _program: JoinSet<()>,
}

impl Run {
    pub(super) fn start() -> Self {
        let cluster = Cluster::start(&Options::seeded(1));
        cluster.install(&kinds()).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let metrics = Metrics::new();
        Self {
            user: cluster.client("user"),
            _program: start(&cluster.client(PROGRAM), &clock, false, &metrics),
            metrics,
            cluster,
        }
    }

    /// Executes steps, and waits until nothing changes.
    pub(super) async fn take(&self, steps: &[Step]) {
        for step in steps {
            step.take(&self.user).await;
        }
        tokio::time::sleep(SETTLED).await;
    }

    /// Creates a machine with a running host.
    async fn provisioned(&self) {
        self.take(&[Step::Cluster, Host("h0"), Machine("m0")]).await;
        self.take(&[Data("m0")]).await;
        self.take(&[State("h0", "provisioned")]).await;
    }

    async fn host(&self) -> BareMetalHost {
        let hosts: Api<BareMetalHost> = Api::default_namespaced(self.user.clone());
        hosts.get("h0").await.unwrap()
    }

    fn secrets(&self) -> Api<Secret> {
        Api::default_namespaced(self.user.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn secret_of_a_released_host_loses_the_label_of_the_machines_cluster_only() {
    for (label, left) in [("edge", None), ("other", Some("other"))] {
        let run = Run::start();
        run.provisioned().await;
        let field = || async {
            let secret = run.secrets().get("h0-bmc").await.unwrap();
            secret.metadata.labels.unwrap_or_default().remove(CLUSTER_NAME_LABEL)
        };
        assert_eq!(field().await.as_deref(), Some("edge"));
        let change = Patch::Merge(json!({ "metadata": { "labels": { CLUSTER_NAME_LABEL: label } } }));
        let secrets = run.secrets();
        secrets.patch("h0-bmc", &PatchParams::default(), &change).await.unwrap();
        run.take(&[Delete("m0")]).await;
        run.take(&[State("h0", "deprovisioning")]).await;
        run.take(&[State("h0", "available"), DataGoes("m0")]).await;
        assert!(run.host().await.spec.consumer_ref.is_none());
        assert_eq!(field().await.as_deref(), left);
    }
}

#[tokio::test(start_paused = true)]
async fn secret_that_is_no_login_of_a_host_is_not_changed_although_the_host_names_it() {
    let run = Run::start();
    let labels = json!({ CLUSTER_NAME_LABEL: "edge" });
    make::<Secret>(&run.user, "edge-ca", json!({ "metadata": { "labels": labels } })).await;
    make::<Secret>(&run.user, "unlabelled", json!({})).await;
    let versions = || async {
        let found = run.secrets().list(&kube::api::ListParams::default()).await.unwrap();
        let named = |secret: &Secret| !secret.metadata.name.as_deref().unwrap().ends_with("-bmc");
        let version = |secret: Secret| secret.metadata.resource_version;
        found.items.into_iter().filter(named).map(version).collect::<Vec<_>>()
    };
    let before = versions().await;
    let hosts: Api<BareMetalHost> = Api::default_namespaced(run.user.clone());
    let names = |secret: &str| Patch::Merge(json!({ "spec": { "bmc": { "credentialsName": secret } } }));
    run.take(&[Step::Cluster, Host("h0")]).await;
    hosts
        .patch("h0", &PatchParams::default(), &names("unlabelled"))
        .await
        .unwrap();
    run.take(&[Machine("m0")]).await;
    assert!(run.host().await.spec.consumer_ref.is_some());
    assert_eq!(versions().await, before, "claimed");
    hosts
        .patch("h0", &PatchParams::default(), &names("edge-ca"))
        .await
        .unwrap();
    run.take(&[Data("m0"), State("h0", "provisioned"), Delete("m0")]).await;
    run.take(&[State("h0", "deprovisioning")]).await;
    run.take(&[State("h0", "available"), DataGoes("m0")]).await;
    assert!(run.host().await.spec.consumer_ref.is_none());
    assert_eq!(versions().await, before, "released");
}

/// CAPM3 up to 1.13 writes the machine as the controller of its host (derived from its code).
#[tokio::test(start_paused = true)]
async fn host_of_a_go_manager_survives_the_deletion_of_its_machine() {
    let run = Run::start();
    run.provisioned().await;
    let machines: Api<Metal3Machine> = Api::default_namespaced(run.user.clone());
    let uid = machines.get("m0").await.unwrap().metadata.uid;
    let owner = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "uid": uid, "controller": true,
    });
    let change = Patch::Merge(json!({ "metadata": { "ownerReferences": [owner] } }));
    let hosts: Api<BareMetalHost> = Api::default_namespaced(run.user.clone());
    hosts.patch("h0", &PatchParams::default(), &change).await.unwrap();
    run.take(&[]).await;
    assert_eq!(
        run.host().await.metadata.owner_references,
        None,
        "a kept host has no such owner"
    );
    hosts.patch("h0", &PatchParams::default(), &change).await.unwrap();
    run.take(&[Delete("m0")]).await;
    run.take(&[State("h0", "deprovisioning")]).await;
    run.take(&[State("h0", "available"), DataGoes("m0")]).await;
    assert!(machines.get_opt("m0").await.unwrap().is_none());
    assert!(run.host().await.metadata.deletion_timestamp.is_none());
}

#[tokio::test(start_paused = true)]
async fn deprovisioning_is_in_the_audit_log_only_after_the_request() {
    let (log, _guard) = Log::of_this_thread();
    let run = Run::start();
    run.provisioned().await;
    let refused = Rule::random(1000, Fault::Conflict)
        .verb("patch")
        .resource("baremetalhosts");
    run.cluster.inject(Plan::seeded(1).with(refused));
    run.take(&[Delete("m0")]).await;
    assert_eq!(log.on_record(), [], "nothing is requested");
    run.cluster.inject(Plan::none());
    run.take(&[]).await;
    let host = run.host().await;
    assert!(host.spec.image.is_none());
    let version = host.metadata.resource_version.unwrap();
    let message = "deprovisioning the host, because its machine is deleted".to_owned();
    assert_eq!(log.on_record(), [(message, version)]);
}

#[tokio::test(start_paused = true)]
async fn deprovisioning_with_a_lost_response_is_in_the_audit_log() {
    let (log, _guard) = Log::of_this_thread();
    let run = Run::start();
    run.provisioned().await;
    let rule = Rule::at(1, Fault::ReplyLost).verb("patch").resource("baremetalhosts");
    run.cluster.inject(Plan::seeded(1).with(rule));
    run.take(&[Delete("m0")]).await;
    assert!(run.host().await.spec.image.is_none());
    let message = "perhaps deprovisioning the host, because its machine is deleted".to_owned();
    assert_eq!(log.on_record(), [(message, String::new())]);
}
