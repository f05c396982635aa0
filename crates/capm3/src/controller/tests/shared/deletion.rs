//! Clusters of two providers go in either order, and leave nothing.

use super::living::{Living, Part, seconds};

const PARTS: [Part; 4] = [Part::ForeignCluster, Part::Byo, Part::Hosted, Part::Secondary];

async fn joined() -> (Living, tokio::task::JoinSet<()>) {
    let world = Living::start();
    let program = world.program(false);
    for part in PARTS {
        world.make(part).await;
    }
    seconds(10).await;
    let secondary = world.get(Part::Secondary).await.unwrap();
    assert_eq!(secondary["spec"]["controlPlaneEndpoint"]["host"], "192.0.2.20");
    assert_eq!(secondary["status"]["role"], "Secondary");
    (world, program)
}

async fn assert_nothing_left(world: &Living) {
    for part in PARTS {
        assert_eq!(world.get(part).await, None, "{part:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn cluster_that_is_deleted_takes_its_secondary_along() {
    let (world, _program) = joined().await;
    world.delete(Part::ForeignCluster).await;
    seconds(30).await;
    assert_nothing_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn secondary_that_is_deleted_first_goes_alone_and_the_rest_follows() {
    let (world, _program) = joined().await;
    world.delete(Part::Secondary).await;
    seconds(10).await;
    assert_eq!(world.get(Part::Secondary).await, None);
    assert!(world.get(Part::ForeignCluster).await.is_some());
    world.delete(Part::ForeignCluster).await;
    seconds(30).await;
    assert_nothing_left(&world).await;
}
