//! Rights: none on objects of other providers is needed, and a missing one is reported by verb and resource.

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_api::cluster::Cluster;
use metal3_runtime::access::Role as _;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use super::fixture::{Fixture, HOST, host, wait};
use crate::controller::sources::EndpointSources;
use crate::needs::Data;
use crate::needs::Machines;

/// Forbids all requests for these resources.
fn without_rights() -> Plan {
    let refused = Fault::Refused {
        code: 403,
        retry_after: None,
    };
    ["kamajicontrolplanes", "byoclusters", "services"]
        .into_iter()
        .fold(Plan::none(), |plan, resource| {
            plan.with(Rule::random(1000, refused).resource(resource))
        })
}

/// A Cluster of another provider, with or without an endpoint.
async fn foreign_cluster(fixture: &Fixture, endpoint: Value) {
    let spec = json!({
        "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "edge" },
        "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KamajiControlPlane", "name": "edge" },
        "controlPlaneEndpoint": endpoint,
    });
    let clusters: Api<Cluster> = Api::default_namespaced(fixture.user.clone());
    let document = clusters.get_opt("edge").await.unwrap().is_some();
    let cluster = json!({ "metadata": { "name": "edge" }, "spec": spec });
    if document {
        let params = PatchParams::default();
        clusters.patch("edge", &params, &Patch::Merge(cluster)).await.unwrap();
    } else {
        let cluster = serde_json::from_value(cluster).unwrap();
        clusters.create(&PostParams::default(), &cluster).await.unwrap();
    }
}

async fn secondary(fixture: &Fixture, source: Value) {
    let spec = json!({ "clusterName": "edge", "controlPlaneEndpointSource": source });
    let object = json!({ "metadata": { "name": "edge" }, "spec": spec });
    let object = serde_json::from_value(object).unwrap();
    fixture
        .metal3_clusters()
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn secondary_needs_no_right_on_objects_of_the_other_provider() {
    let fixture = Fixture::start();
    fixture.server.inject(without_rights());
    let _program = fixture.program();
    foreign_cluster(&fixture, Value::Null).await;
    secondary(&fixture, Value::Null).await;
    wait().await;
    assert_eq!(fixture.ready().await.1, "WaitingForCluster");
    foreign_cluster(&fixture, json!({ "host": HOST, "port": 6443 })).await;
    wait().await;
    let metal3 = fixture.metal3_clusters().get("edge").await.unwrap();
    assert_eq!(host(&metal3), Some(json!(HOST)));
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

/// Forbids watching control planes.
fn unwatched() -> Plan {
    let refused = Fault::Refused {
        code: 403,
        retry_after: None,
    };
    let rule = Rule::random(1000, refused).resource("kamajicontrolplanes");
    Plan::none().with(rule.verb("watch"))
}

#[tokio::test(start_paused = true)]
async fn source_that_may_be_listed_and_not_watched_does_not_count_as_absent() {
    let fixture = Fixture::start();
    fixture.server.inject(unwatched());
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
    let failing = Fault::Refused {
        code: 500,
        retry_after: None,
    };
    let rule = Rule::random(1000, failing).resource("kamajicontrolplanes");
    fixture.server.inject(Plan::none().with(rule.verb("watch")));
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
    let fixture = Fixture::start();
    let _program = fixture.program();
    for number in 0..3 {
        fixture.make(number).await;
    }
    fixture.publish(HOST).await;
    wait().await;
    assert_eq!(fixture.ready().await.1, "EndpointFromControlPlane");
    fixture.server.inject(unwatched());
    tokio::time::sleep(Duration::from_mins(31)).await;
    let (_, reason, message) = fixture.ready().await;
    assert_eq!(reason, "SourceForbidden", "{message}");
    let metal3 = fixture.metal3_clusters().get("edge").await.unwrap();
    assert_eq!(host(&metal3), Some(json!(HOST)));
    fixture.server.inject(Plan::none());
    fixture.publish("192.0.2.154").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let metal3 = fixture.metal3_clusters().get("edge").await.unwrap();
    assert_eq!(host(&metal3), Some(json!("192.0.2.154")));
}

#[tokio::test(start_paused = true)]
async fn every_request_is_declared_by_a_role() {
    let fixture = Fixture::start();
    let _program = fixture.program();
    for number in 0..3 {
        fixture.make(number).await;
    }
    fixture.publish(HOST).await;
    wait().await;
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
