use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::service_fn;

use super::*;
use crate::client::{ClientFactory, Settings};
use crate::clock::TimerClock;
use crate::metrics::Metrics;

crate::role! {
    /// The role of a guard.
    pub(crate) struct Guarding {
        Deployment: List, Watch;
    }
}

const SOON: Duration = Duration::from_secs(5);

struct TestEnv {
    cluster: Cluster,
    deployments: Api<Deployment>,
    tasks: JoinSet<()>,
}

impl TestEnv {
    async fn start() -> Self {
        let cluster = Cluster::start(&Options::seeded(1));
        let (namespace, _) = CAPM3;
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.client("admin"));
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        namespaces.create(&PostParams::default(), &object).await.unwrap();
        let deployments = Api::namespaced(cluster.client("admin"), namespace);
        Self {
            cluster,
            deployments,
            tasks: JoinSet::new(),
        }
    }

    fn guard(&mut self) -> Guard {
        let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let foreign = ForeignDeployment::at("capm3", CAPM3);
        let (task, guard) = DeploymentGuard::new::<Guarding>(self.cluster.client("manager"), foreign, clock);
        self.tasks.spawn(task.run());
        guard
    }

    async fn install(&self, replicas: &Value, pod_labels: &Value) {
        let (namespace, name) = CAPM3;
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": pod_labels}, "spec": {"containers": [{"name": "m", "image": "m"}]}},
            },
        });
        let deployment = serde_json::from_value(deployment).unwrap();
        self.deployments
            .create(&PostParams::default(), &deployment)
            .await
            .unwrap();
    }

    async fn patch(&self, patch: Value) {
        let patch = Patch::Merge(patch);
        self.deployments
            .patch(CAPM3.1, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    async fn patch_status(&self, patch: Value) {
        let patch = Patch::Merge(patch);
        let params = PatchParams::default();
        self.deployments.patch_status(CAPM3.1, &params, &patch).await.unwrap();
    }
}

fn foreign_labels() -> Value {
    json!({"a": "b", "control-plane": "controller-manager"})
}

#[tokio::test(start_paused = true)]
async fn a_group_starts_when_no_other_implementation_runs() {
    let mut env = TestEnv::start().await;
    let guard = env.guard();
    assert!(
        matches!(guard.status(), GuardStatus::Unknown { .. }),
        "the status is unknown before the first list"
    );
    timeout(SOON, guard.clear()).await.unwrap();
    assert_eq!(guard.status(), GuardStatus::Clear);
}

#[tokio::test(start_paused = true)]
async fn a_group_is_idle_while_the_other_deployment_has_replicas_and_starts_at_once_without_them() {
    let mut env = TestEnv::start().await;
    // Absent replicas mean one.
    env.install(&Value::Null, &foreign_labels()).await;
    let guard = env.guard();
    assert!(timeout(Duration::from_hours(3), guard.clear()).await.is_err());
    let status = guard.status().to_string();
    for part in [
        "capm3",
        "Deployment capm3-system/capm3-controller-manager",
        "(replicas: 1)",
        "--force-controllers",
    ] {
        assert!(status.contains(part), "{status}");
    }
    env.patch(json!({"spec": {"replicas": 0}})).await;
    timeout(SOON, guard.clear()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_scaled_down_deployment_counts_until_its_pods_are_deleted() {
    let mut env = TestEnv::start().await;
    env.install(&json!(2), &foreign_labels()).await;
    env.patch_status(json!({"status": {"replicas": 2}})).await;
    let guard = env.guard();
    env.patch(json!({"spec": {"replicas": 0}})).await;
    assert!(timeout(Duration::from_mins(10), guard.clear()).await.is_err());
    env.patch_status(json!({"status": {"replicas": 0}})).await;
    timeout(SOON, guard.clear()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_group_stops_when_the_other_deployment_returns_and_resumes_when_it_is_deleted() {
    let mut env = TestEnv::start().await;
    let guard = env.guard();
    timeout(SOON, guard.clear()).await.unwrap();
    env.install(&json!(1), &foreign_labels()).await;
    timeout(SOON, guard.blocked()).await.unwrap();
    env.deployments.delete(CAPM3.1, &DeleteParams::default()).await.unwrap();
    timeout(SOON, guard.clear()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn own_deployment_under_the_same_name_is_not_foreign() {
    let mut env = TestEnv::start().await;
    let (label, value) = PART_OF_LABEL;
    env.install(&json!(2), &json!({"a": "b", label: value})).await;
    let guard = env.guard();
    timeout(SOON, guard.clear()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn forbidden_deployment_is_unknown_and_not_absent() {
    let mut env = TestEnv::start().await;
    let forbidden = Fault::refused(403);
    env.cluster
        .inject(Plan::none().with(Rule::random(1000, forbidden).resource("deployments")));
    let guard = env.guard();
    assert!(timeout(Duration::from_hours(3), guard.clear()).await.is_err());
    let status = guard.status().to_string();
    assert!(
        status.contains("not known (403") && status.contains("list and watch"),
        "{status}"
    );
    // Once reads are permitted, the watch recovers.
    env.cluster.inject(Plan::none());
    timeout(Duration::from_mins(2), guard.clear()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_view_stays_valid_during_a_short_interruption_and_not_during_a_long_one() {
    let mut env = TestEnv::start().await;
    let guard = env.guard();
    timeout(SOON, guard.clear()).await.unwrap();
    let down = Fault::refused(503);
    // The open watch continues until the server ends it; the next one is rejected.
    env.cluster
        .inject(Plan::none().with(Rule::random(1000, down).resource("deployments")));
    timeout(Duration::from_mins(10), guard.blocked()).await.unwrap();
    assert!(matches!(guard.status(), GuardStatus::Unknown { .. }));
    env.cluster
        .inject(Plan::none().with(Rule::at(2, down).resource("deployments")));
    timeout(Duration::from_mins(2), guard.clear()).await.unwrap();
    assert!(
        timeout(Duration::from_mins(30), guard.blocked()).await.is_err(),
        "one rejected watch does not stop a group"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_deployment_costs_a_watch_and_no_polling() {
    let mut env = TestEnv::start().await;
    env.install(&json!(1), &foreign_labels()).await;
    let _guard = env.guard();
    sleep(Duration::from_secs(10)).await;
    env.cluster.reset_audit();
    sleep(Duration::from_hours(1)).await;
    let audit = env.cluster.audit();
    assert_eq!(
        audit.of("manager", "list", "deployments") + audit.of("manager", "get", "deployments"),
        0
    );
    // Each watch has a timeout of 290 seconds, and the next one starts a second later.
    assert_eq!(audit.of("manager", "watch", "deployments"), 12, "{audit:?}");
}

/// Lists and watches in a minute, on a server that ends each watch after some text.
async fn requests_in_a_minute(watched: &'static str) -> (usize, GuardStatus) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let service = service_fn(move |request: Request<Body>| {
        // Paused time does not advance in a tight loop: beyond 1000 requests the server stops answering.
        let loops = count.fetch_add(1, Ordering::Relaxed) > 1000;
        let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
        let text = if watches { watched } else { EMPTY_LIST };
        async move {
            if loops {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(Full::from(text)))
        }
    });
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let connector = ClientFactory::new(Settings::new("m", "v"), Arc::clone(&clock), Metrics::new().requests());
    let foreign = ForeignDeployment::at("capm3", CAPM3);
    let (task, guard) = DeploymentGuard::new::<Guarding>(connector.over(service, "sim"), foreign, clock);
    drop(timeout(Duration::from_mins(1), task.run()).await);
    (asked.load(Ordering::Relaxed), guard.status())
}

const EMPTY_LIST: &str =
    r#"{"kind":"DeploymentList","apiVersion":"apps/v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
const BOOKMARK: &str = "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\
                        \"metadata\":{\"resourceVersion\":\"2\"}}}\n";

#[tokio::test(start_paused = true)]
async fn a_watch_without_events_gives_no_view_and_one_that_ends_at_once_no_loop() {
    let (asked, status) = requests_in_a_minute("").await;
    assert_eq!(status, GuardStatus::Clear, "each list was an answer");
    assert!(
        (60..=122).contains(&asked),
        "a list and a watch each second, not {asked}"
    );
    let (asked, _) = requests_in_a_minute(BOOKMARK).await;
    assert!((30..=62).contains(&asked), "a watch each second, not {asked}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_not_trusted_beyond_the_silence_limit() {
    let mut env = TestEnv::start().await;
    let frozen = Rule::at(1, Fault::WatchFrozen { after: 0 }).verb("watch");
    env.cluster.inject(Plan::none().with(frozen.resource("deployments")));
    let guard = env.guard();
    timeout(SOON, guard.clear()).await.unwrap();
    env.install(&json!(1), &foreign_labels()).await;
    timeout(crate::watch::SILENCE_LIMIT + SOON, guard.blocked())
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_forced_group_stays_clear() {
    let guard = Guard::forced();
    guard.clear().await;
    assert!(timeout(Duration::from_hours(1), guard.blocked()).await.is_err());
    assert!(guard.status().to_string().contains("--force-controllers"));
}
