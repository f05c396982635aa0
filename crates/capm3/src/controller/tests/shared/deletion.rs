//! Clusters of two providers are deleted in either order, and leave nothing.

use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;

use super::super::steps::{delete, make};
use super::fixture::{Fixture, MANAGER, cluster_spec, wait};
use super::providers::{Part, ProviderFixture, TWO_PROVIDERS, seconds};
use crate::data::reconciler::tests::lab::INFRASTRUCTURE;

async fn joined() -> (ProviderFixture, tokio::task::JoinSet<()>) {
    let fixture = ProviderFixture::start();
    let program = fixture.program(false);
    fixture.make_two_providers().await;
    seconds(10).await;
    let secondary = fixture.get(Part::Secondary).await.unwrap();
    assert_eq!(secondary["spec"]["controlPlaneEndpoint"]["host"], "192.0.2.20");
    assert_eq!(secondary["status"]["role"], "Secondary");
    (fixture, program)
}

async fn assert_nothing_left(fixture: &ProviderFixture) {
    for part in TWO_PROVIDERS {
        assert_eq!(fixture.get(part).await, None, "{part:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_cluster_deletes_its_secondary() {
    let (fixture, _program) = joined().await;
    fixture.delete(Part::ForeignCluster).await;
    seconds(30).await;
    assert_nothing_left(&fixture).await;
}

#[tokio::test(start_paused = true)]
async fn secondary_that_is_deleted_first_is_deleted_alone() {
    let (fixture, _program) = joined().await;
    fixture.delete(Part::Secondary).await;
    seconds(10).await;
    assert_eq!(fixture.get(Part::Secondary).await, None);
    assert!(fixture.get(Part::ForeignCluster).await.is_some());
    fixture.delete(Part::ForeignCluster).await;
    seconds(30).await;
    assert_nothing_left(&fixture).await;
}

/// What a deleted object gives up was used by its machines, which a watch may not have shown yet.
#[tokio::test(start_paused = true)]
async fn metal3_cluster_stays_while_the_watch_of_its_machines_is_behind() {
    for (has_machine, is_left) in [(true, true), (false, false)] {
        let fixture = Fixture::start();
        let frozen = Rule::random(1000, Fault::WatchFrozen { after: 0 });
        let frozen = frozen.verb("watch").resource("metal3machines");
        fixture.server.inject_for(&[MANAGER], Plan::none().with(frozen));
        let _program = fixture.program();
        let user = &fixture.user;
        fixture.cluster(json!({ "spec": cluster_spec("Metal3Cluster") })).await;
        fixture.metal3_cluster(json!({ "type": "ControlPlane" })).await;
        wait().await;
        if has_machine {
            let labels = json!({ "cluster.x-k8s.io/cluster-name": "edge" });
            let image = json!({ "url": "http://192.0.2.9/os.raw", "checksum": "http://192.0.2.9/os.raw.sha256", "checksumType": "sha256", "diskFormat": "raw" });
            let machine = json!({ "metadata": { "labels": labels }, "spec": { "image": image } });
            make::<Metal3Machine>(&user.0, "m0", machine).await;
        }
        delete::<Metal3Cluster>(&user.0, "edge").await;
        seconds(20).await;
        let left = user.list(INFRASTRUCTURE, "metal3clusters").await;
        assert_eq!(!left.is_empty(), is_left, "{left:?}");
        if has_machine {
            let text = left[0]["status"].to_string();
            assert!(text.contains("such as m0"), "{text}");
        }
    }
}
