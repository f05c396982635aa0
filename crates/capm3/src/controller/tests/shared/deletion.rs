//! Clusters of two providers are deleted in either order, and leave nothing.

use super::providers::{Part, ProviderFixture, TWO_PROVIDERS, seconds};

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
