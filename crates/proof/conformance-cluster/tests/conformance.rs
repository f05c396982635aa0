//! The claims hold on the simulator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use metal3_conformance_cluster as conformance;

async fn violations(client: kube::Client) -> Vec<String> {
    let outcomes = conformance::check(client, "claims", &conformance::in_process())
        .await
        .unwrap();
    assert_eq!(outcomes.len(), conformance::claims().len());
    let violation =
        |outcome: &conformance::Outcome| Some(format!("{:?}: {}", outcome.claim, outcome.violation.as_ref()?));
    outcomes.iter().filter_map(violation).collect()
}

#[test]
fn committed_matrix_equals_the_claims() {
    let committed = include_str!("../../../../docs/simcluster.md");
    assert!(committed == conformance::matrix(), "run `make conformance-matrix`");
}

#[tokio::test(start_paused = true)]
async fn every_claim_holds_without_sockets() {
    let cluster = conformance::simulator(1);
    assert_eq!(violations(cluster.client("tester")).await, Vec::<String>::new());
}

#[tokio::test]
async fn every_claim_holds_over_http() {
    let cluster = conformance::simulator(1);
    let server = cluster.serve(0, "tester").await.unwrap();
    let mut config = kube::Config::new(server.url().parse().unwrap());
    // Some claims expect timeouts, which the client must not retry.
    config.default_retry = false;
    assert_eq!(
        violations(kube::Client::try_from(config).unwrap()).await,
        Vec::<String>::new()
    );
    server.stop().await;
}
