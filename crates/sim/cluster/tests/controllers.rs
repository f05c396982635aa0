//! kube-rs watchers and reflectors run on the simulator unmodified and deterministically.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Api, ResourceExt as _};
use metal3_sim_cluster::{Cluster, Options};
use tokio::time::{Instant, sleep_until};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

async fn reflects(config: watcher::Config) {
    let cluster = Cluster::start(&Options::seeded(3));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("tester"), "default");
    api.create(&PostParams::default(), &config_map("before")).await.unwrap();
    let (store, writer) = reflector::store();
    let mut events = reflector(writer, watcher(api.clone(), config))
        .default_backoff()
        .touched_objects()
        .boxed();
    assert_eq!(events.next().await.unwrap().unwrap().name_any(), "before");
    api.create(&PostParams::default(), &config_map("after")).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().name_any(), "after");
    cluster.compact();
    api.delete("before", &DeleteParams::default()).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap().name_any(), "before");
    let names: Vec<String> = store.state().iter().map(|object| object.name_any()).collect();
    assert_eq!(names, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn kubes_reflector_follows_lists_and_watches() {
    reflects(watcher::Config::default()).await;
}

#[tokio::test(start_paused = true)]
async fn kubes_reflector_follows_streaming_lists() {
    reflects(watcher::Config::default().streaming_lists()).await;
}

#[tokio::test(start_paused = true)]
async fn dependents_are_deleted_after_their_last_owner() {
    let cluster = Cluster::start(&Options::seeded(3));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("tester"), "default");
    let owner = api.create(&PostParams::default(), &config_map("owner")).await.unwrap();
    let mut child = config_map("child");
    child.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: "owner".to_owned(),
        uid: owner.uid().unwrap(),
        ..OwnerReference::default()
    }]);
    api.create(&PostParams::default(), &child).await.unwrap();
    assert_eq!(cluster.collect_garbage(), 0);
    api.delete("owner", &DeleteParams::default()).await.unwrap();
    assert!(api.get_opt("child").await.unwrap().is_some());
    assert_eq!(cluster.collect_garbage(), 1);
    assert!(api.get_opt("child").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn kinds_of_the_provider_install_and_their_rules_deny() {
    let cluster = Cluster::start(&Options::seeded(3));
    cluster.install(&metal3_api::catalog::definitions()).unwrap();
    for reviewer in metal3_api::catalog::reviewers() {
        cluster.review(reviewer);
    }
    let api: Api<metal3_api::ipam::v1alpha1::IPPool> = Api::namespaced(cluster.client("tester"), "default");
    let pool = |spec: serde_json::Value| {
        let document = serde_json::json!({"metadata": {"name": "p"}, "spec": spec});
        serde_json::from_value::<metal3_api::ipam::v1alpha1::IPPool>(document).unwrap()
    };
    let backwards = serde_json::json!({"namePrefix": "p", "pools": [{"start": "10.0.0.9", "end": "10.0.0.1"}]});
    let error = api
        .create(&PostParams::default(), &pool(backwards))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("denied the request"), "{error}");
    let good = pool(serde_json::json!({"namePrefix": "p"}));
    assert!(api.create(&PostParams::default(), &good).await.is_ok());
}

/// A controller that updates some objects every hour; returns a log of all events.
async fn simulate_day(seed: u64) -> Vec<String> {
    const OBJECTS: usize = 1000;
    let cluster = Cluster::start(&Options::seeded(seed));
    let api: Api<ConfigMap> = Api::namespaced(cluster.client("controller"), "default");
    for _ in 0..OBJECTS {
        let mut object = config_map("");
        object.metadata.name = None;
        object.metadata.generate_name = Some("o-".to_owned());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let (store, writer) = reflector::store();
    let mut events = reflector(writer, watcher(api.clone(), watcher::Config::default()))
        .default_backoff()
        .touched_objects()
        .boxed();
    let mut log = Vec::new();
    let (start, mut hour) = (Instant::now(), 0_u32);
    while hour < 24 {
        tokio::select! {
            biased;
            event = events.next() => {
                let object = event.unwrap().unwrap();
                log.push(format!("{} {}", object.name_any(), object.resource_version().unwrap()));
            }
            () = sleep_until(start + Duration::from_hours(u64::from(hour + 1))) => {
                hour += 1;
                let mut names: Vec<String> = store.state().iter().map(|object| object.name_any()).collect();
                names.sort();
                let due: BTreeMap<&str, String> = [("hour", hour.to_string())].into();
                for name in names.iter().skip(usize::try_from(hour).unwrap()).step_by(24) {
                    let patch = Patch::Merge(serde_json::json!({"data": due}));
                    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
                }
            }
        }
    }
    assert!(cluster.audit().of("controller", "patch", "configmaps") > 900);
    log
}

#[tokio::test(start_paused = true)]
async fn simulated_day_of_a_controller_is_deterministic_for_its_seed() {
    let first = simulate_day(11).await;
    assert!(first.len() > 1900, "{}", first.len());
    assert_eq!(first, simulate_day(11).await);
    assert_ne!(first, simulate_day(12).await);
}
