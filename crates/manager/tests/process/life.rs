//! Start, leadership and stop of a process.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::http::{Request, StatusCode};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_manager::run::Ended;
use serde_json::json;

use crate::environment::{LEASE, NAMESPACE, TestCluster, assert_no_writes, at_work, count, until};

#[tokio::test(start_paused = true)]
async fn a_process_is_ready_when_it_serves_and_stops_after_its_reconciles() {
    let world = TestCluster::with_kinds().await;
    let replica = world.start("a", "");
    assert!(!replica.ready().await, "a probe may arrive first");
    until("work", async || at_work() == 1).await;
    until("ready", async || replica.ready().await).await;
    assert_eq!(replica.probe("/healthz").await.0, StatusCode::OK);
    assert_eq!(replica.end().await, Ended::Stopped);
    assert_eq!(at_work(), 0, "running reconciles finished");
}

#[tokio::test(start_paused = true)]
async fn a_process_waits_for_missing_kinds_and_names_them() {
    let world = TestCluster::empty().await;
    let replica = world.start("a", "");
    until("words", async || {
        let (status, text) = replica.probe("/readyz").await;
        status == StatusCode::OK && text.contains("install ipam-components.yaml")
    })
    .await;
    assert_eq!(count().ever.load(Ordering::SeqCst), 0);
    world.install();
    until("work", async || at_work() == 1).await;
    assert!(replica.ready().await);
    assert_eq!(replica.end().await, Ended::Stopped);
}

#[tokio::test]
async fn insecure_diagnostics_serve_metrics_without_tls() {
    let world = TestCluster::with_kinds().await;
    let address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let replica = world.start("a", &format!("--insecure-diagnostics --diagnostics-address={address}"));
    until("work", async || at_work() == 1).await;
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let scraper = kube::Client::try_from(config).unwrap();
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let text = scraper.request_text(request).await.unwrap();
    assert!(text.contains("\n# TYPE "), "{text}");
    assert_eq!(replica.end().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_waits_for_kinds_can_be_stopped() {
    let world = TestCluster::empty().await;
    let replica = world.start("a", "");
    until("words", async || {
        replica
            .probe("/readyz")
            .await
            .1
            .contains("install ipam-components.yaml")
    })
    .await;
    assert_eq!(replica.end().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn of_two_replicas_one_leads_both_are_ready_and_the_lease_is_released_at_once() {
    let world = TestCluster::with_kinds().await;
    let first = world.start("a", "--leader-elect");
    until("work", async || at_work() == 1).await;
    let second = world.start("b", "--leader-elect");
    until("ready", async || second.ready().await).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(count().ever.load(Ordering::SeqCst), 1);
    assert!(first.metrics.render().contains("leader_election_master_status"));
    assert_eq!(first.end().await, Ended::Stopped);
    // Released, so that the second replica, which watches it, does not wait for its expiry.
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(world.holder(LEASE).await, "b");
    assert_eq!(at_work(), 1);
    assert_eq!(second.end().await, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_loses_its_lease_exits() {
    let world = TestCluster::with_kinds().await;
    let replica = world.start("a", "--leader-elect");
    until("work", async || at_work() == 1).await;
    let leases = world.api::<Lease>();
    let patch = Patch::Merge(json!({ "spec": { "holderIdentity": "other" } }));
    leases.patch(LEASE, &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(replica.ended.await.unwrap().unwrap(), Ended::LeadershipEnded);
}

fn foreign(replicas: u32) -> Deployment {
    named("ipam-controller-manager", replicas)
}

async fn scale(deployments: &Api<Deployment>, replicas: u32) {
    let scaled = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
    deployments
        .patch("ipam-controller-manager", &PatchParams::default(), &scaled)
        .await
        .unwrap();
}

pub(crate) fn named(name: &str, replicas: u32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "manager", "image": "i" }] },
            },
        },
    }))
    .unwrap()
}

/// Release 1.9 of the Go manager of machines installs the address manager in its own namespace.
#[tokio::test(start_paused = true)]
async fn next_to_the_go_manager_of_addresses_of_release_1_9_it_is_idle() {
    let world = TestCluster::with_kinds().await;
    let namespaces: Api<Namespace> = Api::all(world.cluster.client("admin"));
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "capm3-system" } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(world.cluster.client("admin"), "capm3-system");
    deployments.create(&PostParams::default(), &foreign(1)).await.unwrap();
    let replica = world.start("a", "");
    until("the reason", async || {
        replica
            .probe("/readyz")
            .await
            .1
            .contains("capm3-system/ipam-controller-manager")
    })
    .await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(count().ever.load(Ordering::SeqCst), 0);
    scale(&deployments, 0).await;
    until("work", async || at_work() == 1).await;
    scale(&deployments, 1).await;
    assert_eq!(replica.ended.await.unwrap().unwrap(), Ended::LeadershipEnded);
}

#[tokio::test(start_paused = true)]
async fn next_to_the_go_manager_it_is_idle_ready_and_reports_why() {
    let world = TestCluster::with_kinds().await;
    let deployments = world.api::<Deployment>();
    deployments.create(&PostParams::default(), &foreign(1)).await.unwrap();
    let replica = world.start("a", "");
    until("ready", async || replica.ready().await).await;
    let (_, text) = replica.probe("/readyz").await;
    assert!(
        text.contains("ipam-controller-manager") && text.contains("--force-controllers"),
        "{text}"
    );
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(count().ever.load(Ordering::SeqCst), 0);
    scale(&deployments, 0).await;
    until("work", async || at_work() == 1).await;
    scale(&deployments, 1).await;
    assert_eq!(replica.ended.await.unwrap().unwrap(), Ended::LeadershipEnded);
    assert_eq!(at_work(), 0, "running reconciles finished");
}

#[tokio::test(start_paused = true)]
async fn the_flag_sets_the_deployment_of_the_go_manager() {
    let world = TestCluster::with_kinds().await;
    let deployments = world.api::<Deployment>();
    let params = PostParams::default();
    deployments.create(&params, &named("addresses", 1)).await.unwrap();
    let replica = world.start("a", &format!("--foreign-deployments=ipam={NAMESPACE}/addresses"));
    until("words", async || {
        replica
            .probe("/readyz")
            .await
            .1
            .contains(&format!("{NAMESPACE}/addresses runs"))
    })
    .await;
    assert_eq!(count().ever.load(Ordering::SeqCst), 0);
    assert_eq!(replica.end().await, Ended::Stopped);
}

/// Reasons and notes of the events about a Deployment.
async fn events_about(world: &TestCluster, about: &Deployment) -> Vec<(String, String)> {
    let events = world.api::<Event>();
    let all = events.list(&Default::default()).await.unwrap().items;
    let about = all
        .into_iter()
        .filter(|event| event.involved_object.uid == about.metadata.uid);
    about
        .map(|event| (event.reason.unwrap_or_default(), event.message.unwrap_or_default()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn events_about_the_deployment_report_an_idle_group() {
    let world = TestCluster::with_kinds().await;
    let deployments = world.api::<Deployment>();
    let deployment = deployments.create(&PostParams::default(), &foreign(1)).await.unwrap();
    let replica = world.start("a", "");
    until("an event", async || {
        let events = events_about(&world, &deployment).await;
        events
            .iter()
            .any(|(reason, note)| reason == "ControllersIdle" && note.contains("scale it to 0"))
    })
    .await;
    scale(&deployments, 0).await;
    until("another", async || {
        let events = events_about(&world, &deployment).await;
        events.iter().any(|(reason, _)| reason == "ControllersResumed")
    })
    .await;
    // The last event is published although the process exits.
    scale(&deployments, 3).await;
    assert_eq!(replica.ended.await.unwrap().unwrap(), Ended::LeadershipEnded);
    let events = events_about(&world, &deployment).await;
    assert!(
        events.iter().any(|(_, note)| note.contains("(replicas: 3)")),
        "{events:?}"
    );
    assert_eq!(events.len(), 3, "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_group_that_was_never_idle_emits_no_event() {
    let world = TestCluster::with_kinds().await;
    let replica = world.start("a", "");
    until("work", async || at_work() == 1).await;
    assert_eq!(replica.end().await, Ended::Stopped);
    let events: Api<Event> = Api::all(world.cluster.client("admin"));
    assert_eq!(events.list(&Default::default()).await.unwrap().items, []);
}

#[tokio::test(start_paused = true)]
async fn with_force_or_observe_only_it_runs_next_to_the_go_manager() {
    for flags in ["--force-controllers", "--observe-only --leader-elect"] {
        let world = TestCluster::with_kinds().await;
        let deployments = world.api::<Deployment>();
        deployments.create(&PostParams::default(), &foreign(1)).await.unwrap();
        let replica = world.start("a", flags);
        until("work", async || at_work() == 1).await;
        assert_eq!(replica.end().await, Ended::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn observing_writes_nothing_not_even_a_lease() {
    let world = TestCluster::with_kinds().await;
    let replica = world.start("a", "--observe-only --leader-elect");
    until("work", async || at_work() == 1).await;
    assert_eq!(replica.end().await, Ended::Stopped);
    assert_no_writes(&world.cluster);
}
