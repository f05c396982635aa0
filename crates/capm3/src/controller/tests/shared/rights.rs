//! Rights: none on objects of other providers is needed, and a missing one is reported by verb and resource.

use std::time::Duration;

use metal3_api::cluster::Cluster;
use metal3_runtime::access::Role as _;
use metal3_sim_faults::Plan;
use serde_json::{Value, json};

use super::super::steps::edit;
use super::fixture::{Fixture, HOST, cluster_spec, endpoint, rejecting, wait};
use crate::cluster::sources::EndpointSources;
use crate::needs::{Data, Machines};

/// Forbids all requests for these resources.
fn without_rights() -> Plan {
    ["kamajicontrolplanes", "byoclusters", "services"]
        .into_iter()
        .fold(Plan::none(), |plan, resource| plan.with(rejecting(403, resource)))
}

/// Rejects watches of control planes with this status code.
fn unwatched(code: u16) -> Plan {
    Plan::none().with(rejecting(code, "kamajicontrolplanes").verb("watch"))
}

#[tokio::test(start_paused = true)]
async fn secondary_needs_no_right_on_objects_of_the_other_provider() {
    let fixture = Fixture::start();
    fixture.server.inject(without_rights());
    let _program = fixture.program();
    fixture.cluster(json!({ "spec": cluster_spec("ByoCluster") })).await;
    fixture.metal3_cluster(Value::Null).await;
    wait().await;
    assert_eq!(fixture.ready().await.1, "WaitingForCluster");
    edit::<Cluster>(&fixture.user.0, "edge", endpoint(HOST)).await;
    wait().await;
    assert_eq!(fixture.host().await.as_deref(), Some(HOST));
    let metal3 = fixture.metal3().await;
    assert_eq!(metal3.metadata.owner_references.as_ref().unwrap()[0].name, "edge");
    let bad = metal3
        .status
        .conditions
        .iter()
        .find(|one| one.type_ == "Ready" && one.reason != "Ready");
    assert_eq!(bad, None);
    assert_eq!(fixture.ready().await.1, "EndpointFromCluster");
    fixture.server.reset_audit();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(
        fixture.requests().keys().all(|what| !what.contains("nonresource")),
        "no discovery any more"
    );
}

#[tokio::test(start_paused = true)]
async fn forbidden_source_is_reported_by_verb_and_resource_until_granted() {
    let fixture = Fixture::start();
    let _program = fixture.program();
    for number in 0..3 {
        if number == 1 {
            fixture.server.inject(without_rights());
        }
        if number != 2 {
            fixture.make(number).await;
        }
    }
    wait().await;
    let (status, reason, message) = fixture.ready().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SourceForbidden"));
    assert!(
        message.contains("may not list kamajicontrolplanes.controlplane.cluster.x-k8s.io"),
        "{message}"
    );
    fixture.server.inject(Plan::none());
    fixture.make(2).await;
    fixture.publish(HOST).await;
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert_eq!(fixture.ready().await.1, "EndpointFromControlPlane");
}

#[tokio::test(start_paused = true)]
async fn source_that_may_be_listed_and_not_watched_does_not_count_as_absent() {
    let fixture = Fixture::start();
    fixture.server.inject(unwatched(403));
    let _program = fixture.program();
    fixture.make(0).await;
    fixture.make(1).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (_, reason, message) = fixture.ready().await;
    assert_eq!(reason, "SourceForbidden");
    assert!(
        message.contains("may not watch kamajicontrolplanes.controlplane.cluster.x-k8s.io"),
        "{message}"
    );
    fixture.make(2).await;
    fixture.publish(HOST).await;
    fixture.server.reset_audit();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(fixture.writes(), [].into(), "it is reported once");
    fixture.server.inject(Plan::none());
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(fixture.ready().await.1, "EndpointFromControlPlane");
}

#[tokio::test(start_paused = true)]
async fn source_whose_watch_fails_is_reported_with_the_remedy() {
    let fixture = Fixture::start();
    fixture.server.inject(unwatched(500));
    let _program = fixture.program();
    fixture.make(0).await;
    fixture.make(1).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let (_, _, message) = fixture.ready().await;
    assert!(
        message.contains("which is retried") && message.contains("log of this manager"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn revoked_right_is_reported_and_the_endpoint_is_kept() {
    let (fixture, _program) = Fixture::published().await;
    assert_eq!(fixture.ready().await.1, "EndpointFromControlPlane");
    fixture.server.inject(unwatched(403));
    tokio::time::sleep(Duration::from_mins(31)).await;
    let (_, reason, message) = fixture.ready().await;
    assert_eq!(reason, "SourceForbidden", "{message}");
    assert_eq!(fixture.host().await.as_deref(), Some(HOST));
    fixture.server.inject(Plan::none());
    fixture.publish("192.0.2.154").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fixture.host().await.as_deref(), Some("192.0.2.154"));
}

#[tokio::test(start_paused = true)]
async fn every_request_is_declared_by_a_role() {
    let (fixture, _program) = Fixture::published().await;
    fixture.copy_endpoint().await;
    wait().await;
    let needs = Machines::permissions()
        .into_iter()
        .chain(EndpointSources::permissions());
    let needs = needs.chain(Data::permissions());
    let declared: Vec<String> = needs.map(|need| format!("{} {}", need.verb, need.path())).collect();
    let requests = fixture.requests().into_keys();
    let undeclared: Vec<String> = requests.filter(|what| !declared.contains(what)).collect();
    assert_eq!(undeclared, ["other nonresource"], "discovery needs no right");
}
