//! The simulator keeps its claims.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_conformance_cluster as conformance;

async fn broken(client: kube::Client) -> Vec<String> {
    let outcomes = conformance::check(client, "claims", &conformance::in_process())
        .await
        .unwrap();
    assert_eq!(outcomes.len(), conformance::claims().len());
    let broken = |outcome: &conformance::Outcome| Some(format!("{:?}: {}", outcome.claim, outcome.broken.as_ref()?));
    outcomes.iter().filter_map(broken).collect()
}

#[test]
fn the_committed_matrix_is_that_of_the_claims() {
    let committed = include_str!("../../../../docs/simcluster.md");
    assert!(committed == conformance::matrix(), "run `make conformance-matrix`");
}

#[tokio::test(start_paused = true)]
async fn every_claim_holds_without_sockets() {
    let cluster = conformance::simulator(1);
    assert_eq!(broken(cluster.client("tester")).await, Vec::<String>::new());
}

#[tokio::test]
async fn every_claim_holds_over_http() {
    let cluster = conformance::simulator(1);
    let serving = cluster.serve(0, "tester").await.unwrap();
    let mut config = kube::Config::new(serving.url().parse().unwrap());
    // Timeouts are among the claims: they must arrive and not be tried again.
    config.default_retry = false;
    assert_eq!(
        broken(kube::Client::try_from(config).unwrap()).await,
        Vec::<String>::new()
    );
    serving.stop().await;
}
