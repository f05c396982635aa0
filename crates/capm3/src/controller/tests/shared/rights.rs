//! What is done with which right: nothing of others is needed, and what is missing is said by verb and resource.

use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_api::cluster::Cluster;
use metal3_runtime::access::Role as _;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use super::scene::{HOST, World, host, settle};
use crate::controller::data::needs::Data;
use crate::controller::sources::EndpointSources;
use crate::needs::Machines;

/// Nothing of these may be looked at or touched.
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

/// A Cluster of another provider, which says its endpoint or not yet.
async fn foreign_cluster(world: &World, endpoint: Value) {
    let spec = json!({
        "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "ByoCluster", "name": "edge" },
        "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KamajiControlPlane", "name": "edge" },
        "controlPlaneEndpoint": endpoint,
    });
    let clusters: Api<Cluster> = Api::default_namespaced(world.user.clone());
    let made = clusters.get_opt("edge").await.unwrap().is_some();
    let cluster = json!({ "metadata": { "name": "edge" }, "spec": spec });
    if made {
        let params = PatchParams::default();
        clusters.patch("edge", &params, &Patch::Merge(cluster)).await.unwrap();
    } else {
        let cluster = serde_json::from_value(cluster).unwrap();
        clusters.create(&PostParams::default(), &cluster).await.unwrap();
    }
}

async fn secondary(world: &World, source: Value) {
    let spec = json!({ "clusterName": "edge", "controlPlaneEndpointSource": source });
    let object = json!({ "metadata": { "name": "edge" }, "spec": spec });
    let object = serde_json::from_value(object).unwrap();
    world
        .metal3_clusters()
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn secondary_needs_no_right_on_anything_of_the_other_provider() {
    let world = World::start();
    world.server.inject(without_rights());
    let _program = world.program();
    foreign_cluster(&world, Value::Null).await;
    secondary(&world, Value::Null).await;
    settle().await;
    assert_eq!(world.ready().await.1, "WaitingForCluster");
    foreign_cluster(&world, json!({ "host": HOST, "port": 6443 })).await;
    settle().await;
    let metal3 = world.metal3_clusters().get("edge").await.unwrap();
    assert_eq!(host(&metal3), Some(json!(HOST)));
    assert_eq!(metal3.metadata.owner_references.as_ref().unwrap()[0].name, "edge");
    let bad = metal3
        .status
        .conditions
        .iter()
        .find(|one| one.type_ == "Ready" && one.reason != "Ready");
    assert_eq!(bad, None);
    assert_eq!(world.ready().await.1, "EndpointFromCluster");
    world.server.reset_audit();
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(
        world.requests().keys().all(|what| !what.contains("nonresource")),
        "nobody asks any more"
    );
}

#[tokio::test(start_paused = true)]
async fn source_that_may_not_be_read_is_named_by_verb_and_resource_until_it_may() {
    let world = World::start();
    let _program = world.program();
    for which in 0..3 {
        if which == 1 {
            world.server.inject(without_rights());
        }
        if which != 2 {
            world.make(which).await;
        }
    }
    settle().await;
    let (status, reason, message) = world.ready().await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SourceForbidden"));
    assert!(
        message.contains("may not list kamajicontrolplanes.controlplane.cluster.x-k8s.io"),
        "{message}"
    );
    world.server.inject(Plan::none());
    world.make(2).await;
    world.publish(HOST).await;
    tokio::time::sleep(Duration::from_secs(62)).await;
    assert_eq!(world.ready().await.1, "EndpointFromControlPlane");
}

/// Control planes may not be watched.
fn unwatched() -> Plan {
    let refused = Fault::Refused {
        code: 403,
        retry_after: None,
    };
    let rule = Rule::random(1000, refused).resource("kamajicontrolplanes");
    Plan::none().with(rule.verb("watch"))
}

#[tokio::test(start_paused = true)]
async fn source_that_may_be_listed_and_not_watched_is_not_taken_for_absent() {
    let world = World::start();
    world.server.inject(unwatched());
    let _program = world.program();
    world.make(0).await;
    world.make(1).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (_, reason, message) = world.ready().await;
    assert_eq!(reason, "SourceForbidden");
    assert!(
        message.contains("may not watch kamajicontrolplanes.controlplane.cluster.x-k8s.io"),
        "{message}"
    );
    world.make(2).await;
    world.publish(HOST).await;
    world.server.reset_audit();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(world.writes(), [].into(), "it stays so, and is said once");
    world.server.inject(Plan::none());
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(world.ready().await.1, "EndpointFromControlPlane");
}

#[tokio::test(start_paused = true)]
async fn source_whose_watch_is_not_served_is_said_with_who_mends_it() {
    let world = World::start();
    let failing = Fault::Refused {
        code: 500,
        retry_after: None,
    };
    let rule = Rule::random(1000, failing).resource("kamajicontrolplanes");
    world.server.inject(Plan::none().with(rule.verb("watch")));
    let _program = world.program();
    world.make(0).await;
    world.make(1).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    let (_, _, message) = world.ready().await;
    assert!(
        message.contains("tried again by itself") && message.contains("log of this manager"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn right_that_is_taken_back_is_said_and_the_endpoint_is_kept() {
    let world = World::start();
    let _program = world.program();
    for which in 0..3 {
        world.make(which).await;
    }
    world.publish(HOST).await;
    settle().await;
    assert_eq!(world.ready().await.1, "EndpointFromControlPlane");
    world.server.inject(unwatched());
    tokio::time::sleep(Duration::from_mins(31)).await;
    let (_, reason, message) = world.ready().await;
    assert_eq!(reason, "SourceForbidden", "{message}");
    let metal3 = world.metal3_clusters().get("edge").await.unwrap();
    assert_eq!(host(&metal3), Some(json!(HOST)));
    world.server.inject(Plan::none());
    world.publish("192.0.2.154").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let metal3 = world.metal3_clusters().get("edge").await.unwrap();
    assert_eq!(host(&metal3), Some(json!("192.0.2.154")));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_that_no_role_declares() {
    let world = World::start();
    let _program = world.program();
    for which in 0..3 {
        world.make(which).await;
    }
    world.publish(HOST).await;
    settle().await;
    world.core().await;
    settle().await;
    let needs = Machines::permissions()
        .into_iter()
        .chain(EndpointSources::permissions());
    let needs = needs.chain(Data::permissions());
    let declared: Vec<String> = needs.map(|need| format!("{} {}", need.verb, need.path())).collect();
    let requests = world.requests().into_keys();
    let undeclared: Vec<String> = requests.filter(|what| !declared.contains(what)).collect();
    assert_eq!(undeclared, ["other nonresource"], "everybody may ask what is served");
}
