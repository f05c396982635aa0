//! Each fault has the effect of the real fault.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchParams};
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use tokio::time::{Instant, timeout};

fn start() -> (Cluster, Api<ConfigMap>) {
    let cluster = Cluster::start(&Options::seeded(1));
    let api = Api::namespaced(cluster.client("tester"), "default");
    (cluster, api)
}

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn create(api: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    api.create(&PostParams::default(), &config_map(name)).await
}

fn code(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an API error: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn crash_before_does_not_write_and_crash_after_writes() {
    for (fault, stored) in [(Fault::CrashBefore, false), (Fault::CrashAfter, true)] {
        let (cluster, api) = start();
        let mut crashes = cluster.crashes();
        cluster.inject(Plan::none().with(Rule::at(1, fault).verb("create")));
        tokio::select! {
            biased;
            _ = create(&api, "a") => panic!("the caller crashed"),
            crash = crashes.changed() => crash.unwrap(),
        }
        assert_eq!(api.get_opt("a").await.unwrap().is_some(), stored, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn lost_reply_is_an_error_after_a_successful_write() {
    let (cluster, api) = start();
    cluster.inject(Plan::none().with(Rule::at(1, Fault::ReplyLost).verb("create")));
    assert!(matches!(create(&api, "a").await, Err(kube::Error::Service(_))));
    assert_eq!(code(create(&api, "a").await.unwrap_err()), 409);
}

#[tokio::test(start_paused = true)]
async fn conflicts_and_errors_have_their_code_and_change_nothing() {
    let refused = Fault::Refused {
        code: 503,
        retry_after: None,
    };
    for (fault, expected) in [(Fault::Conflict, 409), (refused, 503)] {
        let (cluster, api) = start();
        create(&api, "a").await.unwrap();
        cluster.inject(Plan::none().with(Rule::at(1, fault).verb("patch").resource("configmaps")));
        let patch = Patch::Merge(serde_json::json!({"data": {"k": "v"}}));
        let error = api.patch("a", &PatchParams::default(), &patch).await.unwrap_err();
        assert_eq!(code(error), expected);
        assert_eq!(api.get("a").await.unwrap().data, None);
        assert!(api.patch("a", &PatchParams::default(), &patch).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_has_retry_after() {
    let (cluster, api) = start();
    let fault = Fault::Refused {
        code: 429,
        retry_after: Some(7),
    };
    cluster.inject(Plan::none().with(Rule::at(1, fault)));
    match create(&api, "a").await.unwrap_err() {
        kube::Error::Api(status) => {
            assert_eq!(status.code, 429);
            assert_eq!(status.details.unwrap().retry_after_seconds, 7);
        }
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn stale_read_misses_the_last_write() {
    let (cluster, api) = start();
    create(&api, "a").await.unwrap();
    create(&api, "b").await.unwrap();
    cluster.inject(Plan::none().with(Rule::at(1, Fault::StaleRead { writes: 1 }).verb("list")));
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn delayed_answer_arrives_after_the_delay() {
    let (cluster, api) = start();
    cluster.inject(Plan::none().with(Rule::at(1, Fault::Delay(Duration::from_secs(9)))));
    let before = Instant::now();
    create(&api, "a").await.unwrap();
    assert!(before.elapsed() >= Duration::from_secs(9));
}

async fn watched(fault: Option<Fault>) -> (usize, bool, bool) {
    let (cluster, api) = start();
    if let Some(fault) = fault {
        cluster.inject(Plan::none().with(Rule::at(1, fault).verb("watch")));
    }
    for name in ["a", "b", "c"] {
        create(&api, name).await.unwrap();
    }
    let mut stream = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let (mut seen, mut broken, mut silent) = (0, false, false);
    while seen < 6 {
        match timeout(Duration::from_hours(2), stream.try_next()).await {
            Ok(Ok(Some(kube::core::WatchEvent::Added(_)))) => seen += 1,
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => break,
            Ok(Err(_)) => {
                broken = true;
                break;
            }
            Err(_) => {
                silent = true;
                break;
            }
        }
    }
    (seen, broken, silent)
}

#[tokio::test(start_paused = true)]
async fn watches_break_freeze_and_repeat_as_planned_and_otherwise_time_out() {
    assert_eq!(watched(None).await, (3, false, false));
    assert_eq!(watched(Some(Fault::WatchDropped { after: 2 })).await, (2, true, false));
    assert_eq!(watched(Some(Fault::WatchFrozen { after: 1 })).await, (1, false, true));
    assert_eq!(watched(Some(Fault::DuplicateEvents)).await, (6, false, false));
}

#[tokio::test(start_paused = true)]
async fn faults_apply_only_to_the_given_users() {
    let (cluster, unaffected) = start();
    let affected: Api<ConfigMap> = Api::namespaced(cluster.client("affected"), "default");
    cluster.inject_for(
        &["affected"],
        Plan::none()
            .with(Rule::at(1, Fault::Conflict))
            .with(Rule::at(2, Fault::Conflict)),
    );
    create(&unaffected, "a").await.unwrap();
    assert_eq!(code(create(&affected, "b").await.unwrap_err()), 409);
    create(&unaffected, "c").await.unwrap();
    assert_eq!(code(create(&affected, "d").await.unwrap_err()), 409);
    create(&affected, "e").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn observer_receives_every_write_and_deletion_in_order() {
    let (cluster, api) = start();
    let observed: Arc<Mutex<Vec<(u64, String, bool)>>> = Arc::default();
    let recorded = Arc::clone(&observed);
    cluster.observe_writes(move |written| {
        let name = written.object["metadata"]["name"].as_str().unwrap_or_default();
        recorded
            .lock()
            .unwrap()
            .push((written.version, name.to_owned(), written.deleted));
    });
    create(&api, "a").await.unwrap();
    create(&api, "b").await.unwrap();
    api.get("a").await.unwrap();
    api.delete("a", &kube::api::DeleteParams::default()).await.unwrap();
    let observed = observed.lock().unwrap().clone();
    let versions: Vec<u64> = observed.iter().map(|(version, ..)| *version).collect();
    let newest = cluster.version();
    assert_eq!(versions, [newest - 2, newest - 1, newest]);
    let what: Vec<(&str, bool)> = observed.iter().map(|(_, name, gone)| (name.as_str(), *gone)).collect();
    assert_eq!(what, [("a", false), ("b", false), ("a", true)]);
}
