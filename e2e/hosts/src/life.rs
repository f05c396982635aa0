//! Life cycles of concurrent hosts: each phase is started for all, awaited for all, checked and counted.

use anyhow::ensure;
use futures::future::try_join_all;
use metal3_ledger::Ledger;
use tokio::time::Instant;

use crate::Arguments;
use crate::checks::{check, claim};
use crate::claims::Claims;
use crate::counts::{take_counts, wait_until_idle};
use crate::env::{Setup, TestEnv};
use crate::inspection::{self, NodeStats};
use crate::phase::Phase;

/// Runs them, and records the claims.
pub(crate) async fn run(arguments: &Arguments, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    let env = TestEnv::start(arguments, setup).await?;
    let mut stats = NodeStats::default();
    let outcome = tokio::select! {
        outcome = phases(&env, setup, claims) => outcome,
        failed = inspection::serve(&env, &mut stats) => failed,
    };
    let limit = setup.slots;
    let within = if stats.busiest <= limit && stats.listings > 0 {
        Ok(())
    } else {
        Err(anyhow::anyhow!("{} were", stats.busiest))
    };
    // With as many slots as hosts the claim could not fail.
    let is_limited = usize::from(setup.hosts) > limit;
    if outcome.is_ok() && is_limited && setup.level == metal3_ironic_life::Level::Fake {
        let claim = format!(
            "never more than {limit} hosts load the provisioning network (most: {}, {} listings)",
            stats.busiest, stats.listings
        );
        claims.record(claim, within);
    }
    env.stop().await?;
    outcome
}

async fn phases(env: &TestEnv, setup: Setup, claims: &mut Claims) -> anyhow::Result<()> {
    let (mut ledger, mut text) = (Ledger::default(), String::new());
    take_counts(env);
    for phase in Phase::ALL {
        let started = Instant::now();
        try_join_all(env.numbers().map(|number| phase.start(env, number))).await?;
        try_join_all(env.numbers().map(|number| phase.wait(env, number))).await?;
        let took = started.elapsed();
        let mut result = Ok(());
        for number in env.numbers() {
            result = result.and(check(env, phase, number).await);
        }
        claims.record(claim(setup.level, phase), result);
        wait_until_idle(env).await;
        let counts = take_counts(env);
        counts.enter(&mut ledger, phase, setup.hosts);
        text.push_str(&counts.detail(phase));
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
    claims.record("each phase is within its request goals", within());
    Ok(())
}
