//! Whole lives of hosts, side by side: each phase begun for all, ended by all, judged and counted.

use anyhow::ensure;
use futures::future::try_join_all;
use metal3_ledger::Ledger;
use tokio::time::Instant;

use crate::Arguments;
use crate::claims::Claims;
use crate::counts::{rest, take};
use crate::judge::{judge, promise};
use crate::phase::Phase;
use crate::ramdisk::{self, Seen};
use crate::world::{Setup, World};

/// Lives them, and says what held.
pub(crate) async fn live(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    let world = World::begin(arguments, setup).await?;
    let mut seen = Seen::default();
    let outcome = tokio::select! {
        outcome = phases(&world, setup, claims) => outcome,
        broken = ramdisk::watch(&world, &mut seen) => broken,
    };
    let limit = setup.slots;
    let within = if seen.busiest <= limit && seen.looks > 0 {
        Ok(())
    } else {
        Err(anyhow::anyhow!("{} were", seen.busiest))
    };
    // With as many slots as hosts the claim could not fail.
    let is_crowded = usize::from(setup.hosts) > limit;
    if outcome.is_ok() && is_crowded && setup.level == metal3_ironic_life::Level::Fake {
        let says = format!(
            "never more than {limit} hosts load the provisioning network (most: {}, {} looks)",
            seen.busiest, seen.looks
        );
        claims.judge(says, within);
    }
    world.end().await?;
    outcome
}

async fn phases(world: &World, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    let (mut ledger, mut text) = (Ledger::default(), String::new());
    take(world);
    for phase in Phase::ALL {
        let began = Instant::now();
        try_join_all(world.numbers().map(|number| phase.begin(world, number))).await?;
        try_join_all(world.numbers().map(|number| phase.end(world, number))).await?;
        let took = began.elapsed();
        let mut kept = Ok(());
        for number in world.numbers() {
            kept = kept.and(judge(world, phase, number).await);
        }
        claims.judge(promise(setup.level, phase), kept);
        rest(world).await;
        let asked = take(world);
        asked.enter(&mut ledger, phase, setup.hosts);
        text.push_str(&asked.detail(phase));
        println!(
            "       {phase:?} of {} hosts took {:.1} s",
            setup.hosts,
            took.as_secs_f64()
        );
    }
    if setup.direct {
        return Ok(());
    }
    println!("\n{text}\n{ledger}\n");
    let within = || {
        ensure!(ledger.within_goals(), "see the table");
        Ok(())
    };
    claims.judge("each phase costs what it may", within());
    Ok(())
}
