//! The effect of the own-writes barrier: one flow of claims, children and addresses over a watch that is up to two
//! seconds late, with crashes and lost responses; with the barrier, without it, and on `kube::runtime::Controller`. The
//! tests in `anywhere` also run on a real API server, whose kubeconfig METAL3_API_SERVER names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anywhere;
mod delays;
mod flow;
mod kube_controller;
mod own_controller;
mod report;
#[path = "../server/mod.rs"]
mod server;
mod setup;

use metal3_sim_faults::{Fault, Plan, Rule};

use own_controller::{Barrier, run};
use report::Counts;

const MANY: u32 = 1000;
/// For `kube::runtime`: without an index a reconcile scans all objects.
const FEWER: u32 = 100;
/// One write for each object of the flow, and one status for each but the addresses; see [`flow`].
const WRITES: u32 = 6;

fn no_defects(claims: u32) -> Counts {
    Counts {
        claims,
        ..Counts::default()
    }
}

/// The counts without those that only measure effort.
fn without_effort(counts: &Counts) -> Counts {
    Counts {
        writes: 0,
        reconciles: 0,
        failed: 0,
        restarts: 0,
        ..counts.clone()
    }
}

fn on_writes(mut plan: Plan, rule: impl Fn() -> Rule) -> Plan {
    for verb in ["create", "patch"] {
        plan = plan.with(rule().verb(verb));
    }
    plan
}

#[tokio::test(start_paused = true)]
async fn flow_survives_the_loss_of_every_response() {
    let plan = on_writes(Plan::none(), || Rule::random(1000, Fault::ReplyLost));
    let counts = run(MANY, plan, Barrier::On).await;
    println!("with barrier, every answer lost: {counts}");
    assert_eq!(without_effort(&counts), no_defects(MANY));
    assert_eq!((counts.writes, counts.failed), (WRITES * MANY, WRITES * MANY));
}

#[tokio::test(start_paused = true)]
async fn flow_survives_crashes_at_random_writes() {
    let plan = on_writes(Plan::seeded(7), || Rule::random(1, Fault::CrashAfter));
    let plan = on_writes(plan, || Rule::random(1, Fault::CrashBefore));
    let counts = run(MANY, plan, Barrier::On).await;
    println!("with barrier, crashes at random writes: {counts}");
    assert_eq!(without_effort(&counts), no_defects(MANY));
    assert!(counts.restarts > 5, "{counts}");
}

#[tokio::test(start_paused = true)]
async fn flow_survives_a_crash_before_and_after_each_of_its_writes() {
    let few = 2;
    let mut restarts = 0;
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        for verb in ["create", "patch"] {
            for nth in 1..=u64::from(3 * few) {
                let plan = Plan::none().with(Rule::at(nth, fault).verb(verb));
                let counts = run(few, plan, Barrier::On).await;
                assert_eq!(without_effort(&counts), no_defects(few), "{fault:?} {verb} {nth}");
                restarts += counts.restarts;
            }
        }
    }
    println!("with barrier, a crash before and after each write: {restarts} crashes");
    assert_eq!(restarts, 2 * WRITES * few);
}

#[tokio::test(start_paused = true)]
async fn without_the_barrier_lost_responses_make_duplicates() {
    let plan = on_writes(Plan::seeded(7), || Rule::random(100, Fault::ReplyLost));
    let counts = run(MANY, plan, Barrier::Off).await;
    println!("without barrier, a tenth of the answers lost: {counts}");
    assert!(counts.duplicates > 0, "{counts}");
}

#[tokio::test(start_paused = true)]
async fn controller_of_kube_rs_conflicts_as_often_as_no_barrier() {
    let counts = kube_controller::run(FEWER, Plan::none()).await;
    println!("kube::runtime::Controller, no faults: {counts}");
    assert!(counts.conflicts > 0 && counts.extra > 0, "{counts}");
    let plan = on_writes(Plan::seeded(7), || Rule::random(100, Fault::ReplyLost));
    let counts = kube_controller::run(FEWER, plan).await;
    println!("kube::runtime::Controller, a tenth of the answers lost: {counts}");
    assert!(counts.duplicates > 0, "{counts}");
}
