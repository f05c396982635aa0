//! What holds on a simulated server and on a real one.

use metal3_sim_faults::{Fault, Plan, Rule};

use crate::ours::{Awareness, run};
use crate::{FEWER, MANY, WRITES, clean, harm, on_writes};

#[tokio::test(start_paused = true)]
async fn late_watch_costs_an_aware_flow_nothing() {
    let tally = run(MANY, Plan::none(), Awareness::Barrier).await;
    println!("aware, no faults: {tally}");
    assert_eq!(harm(&tally), clean(MANY));
    assert_eq!((tally.writes, tally.passes, tally.failed), (WRITES * MANY, 5 * MANY, 0));
}

/// Each write is a program's last. Several workers write at once, so a start makes more than one.
#[tokio::test(start_paused = true)]
async fn flow_in_which_every_write_is_followed_by_a_crash_still_ends() {
    let plan = on_writes(Plan::none(), || Rule::random(1000, Fault::CrashAfter));
    let tally = run(FEWER, plan, Awareness::Barrier).await;
    println!("aware, a crash after every write: {tally}");
    assert_eq!(harm(&tally), clean(FEWER));
    assert!(tally.restarts > FEWER / 10, "{tally}");
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_lost_on_the_way_make_no_duplicates() {
    let plan = on_writes(Plan::seeded(7), || Rule::random(200, Fault::ReplyLost));
    let tally = run(FEWER, plan, Awareness::Barrier).await;
    println!("aware, a fifth of the answers lost: {tally}");
    assert_eq!(harm(&tally), clean(FEWER));
    assert!(tally.failed > FEWER / 2, "{tally}");
}

#[tokio::test(start_paused = true)]
async fn without_the_barrier_the_same_flow_conflicts_with_itself_and_looks_in_vain() {
    let tally = run(FEWER, Plan::none(), Awareness::None).await;
    println!("unaware, no faults: {tally}");
    assert!(tally.conflicts > 0 && tally.extra > 0, "{tally}");
}
