//! Tests for a simulated server and a real one.

use metal3_sim_faults::{Fault, Plan, Rule};

use crate::own_controller::{Barrier, run};
use crate::{FEWER, MANY, WRITES, no_defects, on_writes, without_effort};

#[tokio::test(start_paused = true)]
async fn late_watch_costs_nothing_with_the_barrier() {
    let counts = run(MANY, Plan::none(), Barrier::On).await;
    println!("with barrier, no faults: {counts}");
    assert_eq!(without_effort(&counts), no_defects(MANY));
    assert_eq!(
        (counts.writes, counts.reconciles, counts.failed),
        (WRITES * MANY, 5 * MANY, 0)
    );
}

/// Each write is followed by a crash. Several workers write at once, so one process makes more than one write.
#[tokio::test(start_paused = true)]
async fn flow_with_a_crash_after_every_write_still_ends() {
    let plan = on_writes(Plan::none(), || Rule::random(1000, Fault::CrashAfter));
    let counts = run(FEWER, plan, Barrier::On).await;
    println!("with barrier, a crash after every write: {counts}");
    assert_eq!(without_effort(&counts), no_defects(FEWER));
    assert!(counts.restarts > FEWER / 10, "{counts}");
}

#[tokio::test(start_paused = true)]
async fn lost_responses_make_no_duplicates() {
    let plan = on_writes(Plan::seeded(7), || Rule::random(200, Fault::ReplyLost));
    let counts = run(FEWER, plan, Barrier::On).await;
    println!("with barrier, a fifth of the answers lost: {counts}");
    assert_eq!(without_effort(&counts), no_defects(FEWER));
    assert!(counts.failed > FEWER / 2, "{counts}");
}

#[tokio::test(start_paused = true)]
async fn without_the_barrier_the_same_flow_conflicts_with_itself_and_reconciles_in_vain() {
    let counts = run(FEWER, Plan::none(), Barrier::Off).await;
    println!("without barrier, no faults: {counts}");
    assert!(counts.conflicts > 0 && counts.extra > 0, "{counts}");
}
