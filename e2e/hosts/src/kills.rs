//! The program is killed right after Ironic accepted a change, before it hears of it: one life for each change that a calm
//! life makes. It dies by SIGKILL, in a process of its own, and is started again.
//!
//! Whatever it was killed after, the life ends as a calm one does, and nothing that destroys was done twice.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use metal3_sim_bmc::identity::Number;

use crate::Arguments;
use crate::claims::Claims;
use crate::judge::judge;
use crate::phase::Phase;
use crate::ramdisk::{self, Seen};
use crate::world::{Setup, World};

/// The only host.
const ONE: Number = Number(1);
/// What destroys, and is done once in a life.
const DESTROYS: [&str; 3] = [
    "PUT nodes/_/states/provision active",
    "PUT nodes/_/states/provision deleted",
    "DELETE nodes/_",
];

/// Lives a calm life, and one for every change of it, or for `most` that are spread over it.
pub(crate) async fn strike(
    arguments: &Arguments,
    setup: Setup,
    most: usize,
    claims: &mut Claims,
) -> anyhow::Result<()> {
    let world = World::begin(arguments, setup).await?;
    let mut seen = Seen::default();
    let outcome = tokio::select! {
        outcome = lives(&world, most, claims) => outcome,
        broken = ramdisk::watch(&world, &mut seen) => broken,
    };
    world.end().await?;
    outcome
}

async fn lives(world: &World, most: usize, claims: &mut Claims) -> anyhow::Result<()> {
    let trace = live(world, None).await.context("a life without a kill")?;
    println!(
        "       {} changes in a calm life:\n       {}",
        trace.len(),
        trace.join("\n       ")
    );
    let run = most.clamp(1, trace.len().max(1));
    for case in 0..run {
        // The first, the last, and what lies evenly between.
        let at = case.saturating_mul(trace.len().saturating_sub(1)) / run.saturating_sub(1).max(1);
        let after = trace.get(at).context("a life without changes")?;
        let says = format!(
            "killed after change {} ({after}), a life ends as it does without",
            at.saturating_add(1)
        );
        let lived = live(world, Some(at.saturating_add(1))).await;
        let (done, went) = lived.map_or_else(|error| (false, Err(error)), |done| (true, twice(&done)));
        claims.judge(says, went);
        // What is left of a life that failed would spoil the next.
        ensure!(done, "{} of {} kills were not tried", run.saturating_sub(case), run);
    }
    println!("       {run} of {} kills", trace.len());
    Ok(())
}

/// One life; what Ironic accepted in it.
async fn live(world: &World, kill_after: Option<usize>) -> anyhow::Result<Vec<String>> {
    let kills = {
        let mut book = world.tap.book();
        book.done.clear();
        book.kill_after = kill_after;
        book.kills
    };
    for phase in Phase::ALL {
        phase.begin(world, ONE).await?;
        phase.end(world, ONE).await?;
        judge(world, phase, ONE).await.with_context(|| format!("{phase:?}"))?;
    }
    let book = world.tap.book();
    let killed = book.kills.saturating_sub(kills);
    ensure!(
        killed == usize::from(kill_after.is_some()),
        "it was killed {killed} times"
    );
    Ok(book.done.clone())
}

fn twice(done: &[String]) -> anyhow::Result<()> {
    let mut tally: BTreeMap<&str, usize> = BTreeMap::new();
    for what in done {
        *tally.entry(what).or_default() += 1;
    }
    for what in DESTROYS {
        let times = tally.get(what).copied().unwrap_or_default();
        ensure!(times == 1, "{what} was done {times} times: {done:#?}");
    }
    Ok(())
}
