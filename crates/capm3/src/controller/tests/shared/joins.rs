//! Looks at the workload cluster of another provider's control plane: when they happen, and what they cost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_capi::workload::join::{Endpoint, JoinChecks, JoinQuestion, JoinReport, Requisite, Server};
use metal3_capi::workload::{Reconciled, Request, WakeFn};
use metal3_domain::clock::Clock;
use metal3_harness::State;
use metal3_runtime::cache::Key;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::plan::Observed;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::faults::{Others, Scenario, ScenarioStep};
use super::super::program::standalone;
use super::super::steps::{delete, edit, edit_status, make, owned};
use super::fixture::{Fixture, MANAGER, cluster_spec, condition, wait};
use crate::data::reconciler::tests::lab::INFRASTRUCTURE;
use crate::tests::sweep;

const TYPE: &str = "WorkerJoinPreflight";

/// Workload clusters that lack this.
pub(in crate::controller::tests) struct Lacking {
    requisite: Mutex<Option<Requisite>>,
    questions: Mutex<Vec<JoinQuestion>>,
}

impl Lacking {
    pub(in crate::controller::tests) fn new(requisite: Option<Requisite>) -> Arc<Self> {
        Arc::new(Self {
            requisite: Mutex::new(requisite),
            questions: Mutex::default(),
        })
    }

    fn looks(&self) -> usize {
        self.questions.lock().len()
    }
}

impl JoinChecks for Lacking {
    fn set_wake(&self, _: WakeFn, _: usize) {}

    fn reconciled(&self, _: &Key) -> Reconciled {
        Reconciled::default()
    }

    fn remove_waiter(&self, _: &Key) {}

    fn look<'a>(&'a self, question: &'a JoinQuestion, _: &'a Key) -> Request<'a, JoinReport> {
        self.questions.lock().push(question.clone());
        let lacks = *self.requisite.lock();
        let asked: &[Requisite] = match question.is_kubeadm {
            true => &Requisite::OF_KUBEADM,
            false => &[Requisite::Namespace],
        };
        let state = |one: &Requisite| match lacks == Some(*one) {
            true => Observed::Absent,
            false => Observed::Present(()),
        };
        let requisites: BTreeMap<_, _> = asked.iter().map(|one| (*one, state(one))).collect();
        Box::pin(async move {
            Ok(JoinReport {
                server: Server::Answers,
                endpoint: Some(Endpoint::SendsInfo),
                requisites,
            })
        })
    }
}

fn start(fixture: &Fixture, checks: Option<Arc<Lacking>>) -> JoinSet<()> {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let mut program = standalone(&fixture.server.client(MANAGER), &clock);
    program.join_checks = checks.map(|checks| -> Arc<dyn JoinChecks> { checks });
    program.tasks().into_iter().collect()
}

async fn initialized(user: &kube::Client, is_initialized: bool) {
    let initialization = json!({ "infrastructureProvisioned": true, "controlPlaneInitialized": is_initialized });
    edit_status::<Cluster>(user, "edge", json!({ "status": { "initialization": initialization } })).await;
}

async fn kubeconfig(user: &kube::Client) {
    make::<Secret>(user, "edge-kubeconfig", json!({})).await;
}

/// A worker of the Cluster without bootstrap data.
async fn worker(user: &kube::Client, name: &str, kind: &str) {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": "edge" });
    let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name });
    let bootstrap = json!({ "configRef": { "apiGroup": "bootstrap.cluster.x-k8s.io", "kind": kind, "name": name } });
    let spec = json!({ "clusterName": "edge", "bootstrap": bootstrap, "infrastructureRef": reference });
    let owner: Machine = make(user, name, json!({ "metadata": { "labels": labels }, "spec": spec })).await;
    let image = json!({ "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256", "checksumType": "sha256", "diskFormat": "raw" });
    let meta = json!({ "labels": labels, "ownerReferences": owned(&owner) });
    make::<Metal3Machine>(user, name, json!({ "metadata": meta, "spec": { "image": image } })).await;
}

async fn preflight(fixture: &Fixture) -> Option<(String, String, String)> {
    let object = fixture.user.get(INFRASTRUCTURE, "metal3clusters/edge").await;
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.iter()
        .any(|one| one["type"] == TYPE)
        .then(|| condition(&object, TYPE))
}

async fn machine_says(fixture: &Fixture, name: &str) -> String {
    let object = fixture
        .user
        .get(INFRASTRUCTURE, &format!("metal3machines/{name}"))
        .await;
    condition(&object, "AssociateBareMetalHost").2
}

#[tokio::test(start_paused = true)]
async fn foreign_control_plane_is_looked_at_when_a_machine_joins_and_after_each_change() {
    let fixture = Fixture::start();
    let checks = Lacking::new(Some(Requisite::KubeletConfig));
    let _program = start(&fixture, Some(Arc::clone(&checks)));
    let user = &fixture.user.0;
    fixture.cluster(json!({ "spec": cluster_spec("Metal3Cluster") })).await;
    fixture.metal3_cluster(json!({ "type": "ControlPlane" })).await;
    wait().await;
    initialized(user, false).await;
    kubeconfig(user).await;
    worker(user, "m0", "KubeadmConfig").await;
    wait().await;
    assert_eq!(
        (checks.looks(), preflight(&fixture).await),
        (0, None),
        "the control plane is not there"
    );
    initialized(user, true).await;
    wait().await;
    assert_eq!(checks.looks(), 1);
    let (status, reason, message) = preflight(&fixture).await.unwrap();
    assert_eq!((status.as_str(), reason.as_str()), ("False", "JoinRequisitesMissing"));
    assert!(message.contains("ConfigMap kube-system/kubelet-config"), "{message}");
    let waiting = machine_says(&fixture, "m0").await;
    assert!(
        waiting.contains("see the condition WorkerJoinPreflight of Metal3Cluster edge"),
        "{waiting}"
    );
    // The kubeconfig changes, and the missing object appears.
    *checks.requisite.lock() = None;
    sleep(Duration::from_secs(10)).await;
    edit::<Secret>(user, "edge-kubeconfig", json!({ "stringData": { "value": "x" } })).await;
    wait().await;
    assert_eq!(checks.looks(), 2);
    assert_eq!(preflight(&fixture).await.unwrap().0, "True");
    let waiting = machine_says(&fixture, "m0").await;
    assert!(
        waiting.starts_with("waiting for the bootstrap data") && !waiting.contains(TYPE),
        "{waiting}"
    );
    fixture.server.reset_audit();
    sleep(Duration::from_hours(24)).await;
    assert_eq!(
        (checks.looks(), fixture.writes()),
        (2, BTreeMap::new()),
        "nothing is polled once all is there"
    );
    // Another bootstrap provider.
    worker(user, "m1", "EKSConfig").await;
    wait().await;
    assert_eq!(checks.looks(), 3);
    assert!(preflight(&fixture).await.unwrap().2.contains("EKSConfig"));
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_looked_for_again_ever_more_rarely_and_found_without_an_event() {
    let fixture = Fixture::start();
    let checks = Lacking::new(Some(Requisite::ClusterInfo));
    let program = start(&fixture, Some(Arc::clone(&checks)));
    let user = &fixture.user.0;
    fixture.cluster(json!({ "spec": cluster_spec("Metal3Cluster") })).await;
    fixture.metal3_cluster(json!({ "type": "ControlPlane" })).await;
    initialized(user, true).await;
    kubeconfig(user).await;
    worker(user, "m0", "KubeadmConfig").await;
    wait().await;
    let first = checks.looks();
    assert!((1..=2).contains(&first), "{first}");
    fixture.server.reset_audit();
    sleep(Duration::from_hours(24)).await;
    let looks = checks.looks() - first;
    assert!((25..=32).contains(&looks), "{looks} looks in a day");
    assert_eq!(
        fixture.writes(),
        BTreeMap::new(),
        "the same answer is not written again"
    );
    // Nothing joins for a while: what was missing is said no longer, and the next machine is a new question.
    delete::<Machine>(user, "m0").await;
    delete::<Metal3Machine>(user, "m0").await;
    wait().await;
    assert_eq!(preflight(&fixture).await, None);
    let looks = checks.looks();
    worker(user, "m1", "KubeadmConfig").await;
    wait().await;
    assert_eq!(checks.looks(), looks + 1);
    assert_eq!(preflight(&fixture).await.unwrap().0, "False");
    *checks.requisite.lock() = None;
    sleep(Duration::from_mins(62)).await;
    assert_eq!(preflight(&fixture).await.unwrap().0, "True");
    // Whether anything changed during a restart is not known, so one look follows it.
    drop(program);
    let looks = checks.looks();
    let _program = start(&fixture, Some(Arc::clone(&checks)));
    sleep(Duration::from_hours(2)).await;
    assert_eq!(checks.looks(), looks + 1);
    // A Secret that is written each second for an hour.
    for value in 0..3600 {
        edit::<Secret>(
            user,
            "edge-kubeconfig",
            json!({ "stringData": { "value": value.to_string() } }),
        )
        .await;
        sleep(Duration::from_secs(1)).await;
    }
    let looks = checks.looks() - looks;
    assert!((300..=362).contains(&looks), "{looks} looks");
}

/// Nothing is written on it, so nothing is asked.
#[tokio::test(start_paused = true)]
async fn metal3_cluster_that_another_program_manages_is_not_looked_at() {
    let fixture = Fixture::start();
    let checks = Lacking::new(Some(Requisite::ClusterInfo));
    let _program = start(&fixture, Some(Arc::clone(&checks)));
    let user = &fixture.user.0;
    fixture.cluster(json!({ "spec": cluster_spec("Metal3Cluster") })).await;
    fixture.metal3_cluster(json!({ "type": "ControlPlane" })).await;
    let managed = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/managed-by": "another" } } });
    edit::<Metal3Cluster>(user, "edge", managed).await;
    initialized(user, true).await;
    kubeconfig(user).await;
    worker(user, "m0", "KubeadmConfig").await;
    sleep(Duration::from_mins(5)).await;
    assert_eq!(checks.looks(), 0);
}

#[tokio::test(start_paused = true)]
async fn cluster_of_kubeadm_and_program_without_the_flag_pay_no_request() {
    let mut requests = Vec::new();
    for (kind, is_enabled) in [
        ("KubeadmControlPlane", false),
        ("KubeadmControlPlane", true),
        ("KamajiControlPlane", false),
    ] {
        let fixture = Fixture::start();
        let checks = Lacking::new(None);
        let _program = start(&fixture, is_enabled.then(|| Arc::clone(&checks)));
        let user = &fixture.user.0;
        let mut spec = cluster_spec("Metal3Cluster");
        spec["controlPlaneRef"]["kind"] = json!(kind);
        fixture.cluster(json!({ "spec": spec })).await;
        make::<Metal3Cluster>(
            user,
            "edge",
            json!({ "spec": { "clusterName": "edge", "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } } }),
        )
        .await;
        wait().await;
        initialized(user, true).await;
        wait().await;
        kubeconfig(user).await;
        wait().await;
        worker(user, "m0", "KubeadmConfig").await;
        sleep(Duration::from_mins(2)).await;
        assert_eq!(
            (checks.looks(), preflight(&fixture).await),
            (0, None),
            "{kind} {is_enabled}"
        );
        requests.push(fixture.requests());
    }
    assert_eq!(requests[0], requests[1]);
    assert_eq!(requests[0], requests[2]);
}

/// A step of a user or another program. In these scenarios the workload cluster lacks the scheduler.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A Cluster whose control plane is initialized, with its Metal3Cluster and kubeconfig.
    Cluster,
    /// A worker.
    Worker,
    /// The Cluster is deleted.
    Delete,
}

impl ScenarioStep for Step {
    async fn perform(self, client: &kube::Client) {
        match self {
            Self::Cluster => {
                let endpoint = json!({ "host": "192.0.2.1", "port": 6443 });
                let mut spec = cluster_spec("ByoCluster");
                spec["controlPlaneEndpoint"] = endpoint;
                make::<Cluster>(
                    client,
                    "edge",
                    json!({ "metadata": { "finalizers": ["cluster.cluster.x-k8s.io"] }, "spec": spec }),
                )
                .await;
                initialized(client, true).await;
                make::<Metal3Cluster>(client, "edge", json!({ "spec": { "clusterName": "edge" } })).await;
                kubeconfig(client).await;
            }
            Self::Worker => worker(client, "m0", "KubeadmConfig").await,
            Self::Delete => {
                delete::<Metal3Machine>(client, "m0").await;
                delete::<Cluster>(client, "edge").await;
            }
        }
    }

    fn kinds(_: Others) -> Vec<String> {
        vec![
            State::path::<Metal3Cluster>(),
            State::path::<Metal3Machine>(),
            State::path::<Cluster>(),
        ]
    }

    /// It is no part of the summary.
    fn violations(state: &State, _: Others) -> Vec<String> {
        let is_wrong = |object: &Metal3Cluster| {
            let mut ready = object.status.conditions.iter().filter(|one| one.type_ == "Ready");
            ready.any(|one| one.message.contains(TYPE))
        };
        let all = state.of::<Metal3Cluster>().into_iter().filter(is_wrong);
        all.map(|object| format!("{:?}", object.status)).collect()
    }

    /// Each Metal3Cluster with the condition.
    fn end(state: &State) -> Vec<String> {
        let line = |object: Metal3Cluster| {
            let mut conditions = object.status.conditions.into_iter();
            let found = conditions.find(|one| one.type_ == TYPE);
            let said = found.map(|one| format!("{:?} {}", one.status, one.reason));
            format!("{} {said:?}", object.metadata.name.unwrap_or_default())
        };
        state.of::<Metal3Cluster>().into_iter().map(line).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn condition_about_joins_recovers_from_every_write_fault() {
    sweep(Scenario {
        name: "a worker joins a control plane that lacks something",
        stages: &[&[Step::Cluster], &[Step::Worker]],
        end: &["edge Some(\"False JoinRequisitesMissing\")"],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cluster_with_the_condition_about_joins_is_deleted_after_every_write_fault() {
    sweep(Scenario {
        name: "a Secondary with the condition goes with its Cluster",
        stages: &[&[Step::Cluster, Step::Worker], &[Step::Delete]],
        end: &[],
        others: Others::None,
    })
    .await;
}
