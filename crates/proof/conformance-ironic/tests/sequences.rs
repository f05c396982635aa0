//! Random operations on the simulated Ironic: invariants of all sequences.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use chrono::DateTime;
use metal3_conformance_ironic::Lab;
use metal3_conformance_ironic::differ::{Outcome, Run, compare};
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_ironic::{Ironic, Options};
use serde_json::Value;

const OPERATIONS: usize = 2_000;
/// Enough to run every kind of operation many times.
const SHORT: usize = 500;

async fn run(seed: u64, operations: usize) -> Vec<Outcome> {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let lab = Lab::in_process(Ironic::start(Options::new(seed, Arc::clone(&clock))), clock).unwrap();
    let mut run = Run::begin(&lab, seed);
    let mut outcomes = Vec::new();
    for number in 0..operations {
        // A node that does not become idle fails the test with its record.
        outcomes.push(
            run.next()
                .await
                .unwrap_or_else(|error| panic!("seed {seed}, operation {number}: {error:#}")),
        );
    }
    outcomes
}

#[tokio::test(start_paused = true)]
async fn every_sequence_becomes_idle_without_server_errors() {
    for seed in [1, 2, 3] {
        let outcomes = run(seed, OPERATIONS).await;
        let mut refused = 0;
        for outcome in &outcomes {
            let status = outcome.answer.get("status").and_then(Value::as_u64);
            assert!(status.is_none_or(|status| status < 500), "seed {seed}: {outcome:?}");
            refused += usize::from(status.is_some());
            for node in &outcome.nodes {
                let stable = ["enroll", "manageable", "available", "active", "error"];
                let state = node["provision_state"].as_str().unwrap();
                assert_eq!(
                    node["target_provision_state"].is_null(),
                    stable.contains(&state),
                    "seed {seed}: {node}"
                );
                assert!(
                    node["fault"].is_null() || node["maintenance"] == true,
                    "seed {seed}: {node}"
                );
            }
        }
        // A useful sequence has both successful and failing operations.
        assert!(
            (200..1_800).contains(&refused),
            "seed {seed}: {refused} of {OPERATIONS} refused"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn results_depend_on_the_seed_only() {
    let (first, second, other) = (run(7, SHORT).await, run(7, SHORT).await, run(8, SHORT).await);
    assert!(first == second);
    assert!(first != other);
}

fn lab(seed: u64) -> Lab {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    Lab::in_process(Ironic::start(Options::new(seed, Arc::clone(&clock))), clock).unwrap()
}

#[tokio::test(start_paused = true)]
async fn nodes_of_an_aborted_sequence_do_not_change_results() {
    let (fresh, used) = (lab(1), lab(2));
    // Aborted: its nodes stay, with the instances and addresses that every sequence uses.
    let mut aborted = Run::begin(&used, 4);
    for _ in 0..SHORT {
        aborted.next().await.unwrap();
    }
    let found = compare(&fresh, &used, 5, 300).await.unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
