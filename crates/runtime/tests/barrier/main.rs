//! What reading our own writes is worth: one flow of claims, children and addresses over a watch that is up to two
//! seconds late, with crashes and lost answers; with the barrier, without it, and on `kube::runtime::Controller`. What is in
//! `anywhere` also runs on a real API server, whose kubeconfig METAL3_API_SERVER names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account;
mod anywhere;
mod flow;
mod late;
mod ours;
#[path = "../server/mod.rs"]
mod server;
mod site;
mod theirs;

use metal3_sim_faults::{Fault, Plan, Rule};

use account::Tally;
use ours::{Awareness, run};

const MANY: u32 = 1000;
/// For the library's controller: without an index it looks through all objects in each pass.
const FEWER: u32 = 100;
/// One write for each object of the flow, and one status for each but the addresses; see [`flow`].
const WRITES: u32 = 6;

fn clean(claims: u32) -> Tally {
    Tally {
        claims,
        ..Tally::default()
    }
}

/// The tally without what only measures effort.
fn harm(tally: &Tally) -> Tally {
    Tally {
        writes: 0,
        passes: 0,
        failed: 0,
        restarts: 0,
        ..tally.clone()
    }
}

fn on_writes(mut plan: Plan, rule: impl Fn() -> Rule) -> Plan {
    for verb in ["create", "patch"] {
        plan = plan.with(rule().verb(verb));
    }
    plan
}

#[tokio::test(start_paused = true)]
async fn flow_survives_that_the_answer_to_every_write_is_lost() {
    let plan = on_writes(Plan::none(), || Rule::random(1000, Fault::ReplyLost));
    let tally = run(MANY, plan, Awareness::Barrier).await;
    println!("aware, every answer lost: {tally}");
    assert_eq!(harm(&tally), clean(MANY));
    assert_eq!((tally.writes, tally.failed), (WRITES * MANY, WRITES * MANY));
}

#[tokio::test(start_paused = true)]
async fn flow_survives_crashes_at_random_writes() {
    let plan = on_writes(Plan::seeded(7), || Rule::random(1, Fault::CrashAfter));
    let plan = on_writes(plan, || Rule::random(1, Fault::CrashBefore));
    let tally = run(MANY, plan, Awareness::Barrier).await;
    println!("aware, crashes at random writes: {tally}");
    assert_eq!(harm(&tally), clean(MANY));
    assert!(tally.restarts > 5, "{tally}");
}

#[tokio::test(start_paused = true)]
async fn flow_survives_a_crash_before_and_after_each_of_its_writes() {
    let few = 2;
    let mut restarts = 0;
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        for verb in ["create", "patch"] {
            for nth in 1..=u64::from(3 * few) {
                let plan = Plan::none().with(Rule::at(nth, fault).verb(verb));
                let tally = run(few, plan, Awareness::Barrier).await;
                assert_eq!(harm(&tally), clean(few), "{fault:?} {verb} {nth}");
                restarts += tally.restarts;
            }
        }
    }
    println!("aware, a crash before and after each write: {restarts} crashes");
    assert_eq!(restarts, 2 * WRITES * few);
}

#[tokio::test(start_paused = true)]
async fn without_the_barrier_lost_answers_make_duplicates() {
    let plan = on_writes(Plan::seeded(7), || Rule::random(100, Fault::ReplyLost));
    let tally = run(MANY, plan, Awareness::None).await;
    println!("unaware, a tenth of the answers lost: {tally}");
    assert!(tally.duplicates > 0, "{tally}");
}

#[tokio::test(start_paused = true)]
async fn librarys_controller_does_as_badly_as_no_barrier() {
    let tally = theirs::run(FEWER, Plan::none()).await;
    println!("kube::runtime::Controller, no faults: {tally}");
    assert!(tally.conflicts > 0 && tally.extra > 0, "{tally}");
    let plan = on_writes(Plan::seeded(7), || Rule::random(100, Fault::ReplyLost));
    let tally = theirs::run(FEWER, plan).await;
    println!("kube::runtime::Controller, a tenth of the answers lost: {tally}");
    assert!(tally.duplicates > 0, "{tally}");
}
