//! Kills the program after Ironic accepts a change and before the program receives the response: one life cycle for each
//! change of an undisturbed one. The program runs in its own process, is killed with SIGKILL and restarted.
//!
//! Each life cycle ends like an undisturbed one, and no destructive request is sent twice.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use metal3_sim_bmc::identity::Number;

use crate::Arguments;
use crate::checks::check;
use crate::claims::Claims;
use crate::env::{Setup, TestEnv};
use crate::inspection::{self, NodeStats};
use crate::phase::Phase;

/// The only host.
const ONE: Number = Number(1);
/// The destructive requests, each sent once in a life cycle.
const DESTRUCTIVE: [&str; 3] = [
    "PUT nodes/_/states/provision active",
    "PUT nodes/_/states/provision deleted",
    "DELETE nodes/_",
];

/// Runs an undisturbed life cycle, and one for each of its changes, or for `most` of them at even distances.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, most: usize, claims: &mut Claims) -> anyhow::Result<()> {
    let env = TestEnv::start(arguments, setup).await?;
    let mut stats = NodeStats::default();
    let outcome = tokio::select! {
        outcome = run_cycles(&env, most, claims) => outcome,
        failed = inspection::serve(&env, &mut stats) => failed,
    };
    env.stop().await?;
    outcome
}

async fn run_cycles(env: &TestEnv, most: usize, claims: &mut Claims) -> anyhow::Result<()> {
    let trace = run_cycle(env, None).await.context("a life cycle without a kill")?;
    println!(
        "       {} changes in an undisturbed life cycle:\n       {}",
        trace.len(),
        trace.join("\n       ")
    );
    let run = most.clamp(1, trace.len().max(1));
    for case in 0..run {
        // The first, the last, and changes at even distances between them.
        let at = case.saturating_mul(trace.len().saturating_sub(1)) / run.saturating_sub(1).max(1);
        let after = trace.get(at).context("a life cycle without changes")?;
        let claim = format!(
            "killed after change {} ({after}), a life cycle ends like an undisturbed one",
            at.saturating_add(1)
        );
        let changes = run_cycle(env, Some(at.saturating_add(1))).await;
        let (finished, result) =
            changes.map_or_else(|error| (false, Err(error)), |changes| (true, check_once(&changes)));
        claims.record(claim, result);
        // The objects of a failed life cycle would disturb the next.
        ensure!(finished, "{} of {} kills were not tried", run.saturating_sub(case), run);
    }
    println!("       {run} of {} kills", trace.len());
    Ok(())
}

/// Runs one life cycle; returns the changes that Ironic accepted.
async fn run_cycle(env: &TestEnv, kill_after: Option<usize>) -> anyhow::Result<Vec<String>> {
    changes_of(env, kill_after, async {
        for phase in Phase::ALL {
            phase.start(env, ONE).await?;
            phase.wait(env, ONE).await?;
            check(env, phase, ONE).await.with_context(|| format!("{phase:?}"))?;
        }
        Ok(())
    })
    .await
}

/// Does the work while the program is killed once, after this number of changes; returns the changes that Ironic accepted.
pub(crate) async fn changes_of(
    env: &TestEnv,
    kill_after: Option<usize>,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Vec<String>> {
    let kills = {
        let mut log = env.interceptor.log();
        log.changes.clear();
        log.kill_after = kill_after;
        log.kills
    };
    work.await?;
    let log = env.interceptor.log();
    let killed = log.kills.saturating_sub(kills);
    ensure!(
        killed == usize::from(kill_after.is_some()),
        "the program was killed {killed} times"
    );
    Ok(log.changes.clone())
}

fn check_once(changes: &[String]) -> anyhow::Result<()> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for change in changes {
        *counts.entry(change).or_default() += 1;
    }
    for request in DESTRUCTIVE {
        let times = counts.get(request).copied().unwrap_or_default();
        ensure!(times == 1, "{request} was accepted {times} times: {changes:#?}");
    }
    Ok(())
}
