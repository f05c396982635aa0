//! Random operations on the simulated Ironic alone: what holds whatever is asked.

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
/// Enough to meet every kind of operation many times.
const TWICE: usize = 500;

async fn run(seed: u64, operations: usize) -> Vec<Outcome> {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let lab = Lab::within(Ironic::start(Options::new(seed, Arc::clone(&clock))), clock).unwrap();
    let mut run = Run::begin(&lab, seed);
    let mut outcomes = Vec::new();
    for number in 0..operations {
        // A node that does not come to rest ends the sequence with its record.
        outcomes.push(
            run.next()
                .await
                .unwrap_or_else(|error| panic!("seed {seed}, operation {number}: {error:#}")),
        );
    }
    outcomes
}

#[tokio::test(start_paused = true)]
async fn every_sequence_comes_to_rest_and_is_answered_by_what_is_simulated() {
    for seed in [1, 2, 3] {
        let outcomes = run(seed, OPERATIONS).await;
        let mut refused = 0;
        for outcome in &outcomes {
            let status = outcome.answer.get("status").and_then(Value::as_u64);
            assert!(status.is_none_or(|status| status < 500), "seed {seed}: {outcome:?}");
            refused += usize::from(status.is_some());
            for node in &outcome.nodes {
                let resting = ["enroll", "manageable", "available", "active", "error"];
                let state = node["provision_state"].as_str().unwrap();
                assert_eq!(
                    node["target_provision_state"].is_null(),
                    resting.contains(&state),
                    "seed {seed}: {node}"
                );
                assert!(
                    node["fault"].is_null() || node["maintenance"] == true,
                    "seed {seed}: {node}"
                );
            }
        }
        // A sequence that is always refused, or never, would prove little.
        assert!(
            (200..1_800).contains(&refused),
            "seed {seed}: {refused} of {OPERATIONS} refused"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_answers_and_another_seed_others() {
    let (first, second, other) = (run(7, TWICE).await, run(7, TWICE).await, run(8, TWICE).await);
    assert!(first == second);
    assert!(first != other);
}

fn lab(seed: u64) -> Lab {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    Lab::within(Ironic::start(Options::new(seed, Arc::clone(&clock))), clock).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_another_sequence_left_behind_changes_nothing() {
    let (fresh, used) = (lab(1), lab(2));
    // Broken off in the middle: its nodes stay, with the instances and addresses that every sequence uses.
    let mut broken_off = Run::begin(&used, 4);
    for _ in 0..TWICE {
        broken_off.next().await.unwrap();
    }
    let found = compare(&fresh, &used, 5, 300).await.unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
