//! The lives of a scenario: one without a kill, then one for each order of the program, in which it is killed after that
//! order and before it receives the answer. An order is a change that Ironic accepts, or a write to the API server.

use anyhow::{Context as _, ensure};
use metal3_sim_faults::{Fault, Plan, Rule};

use crate::claims::Claims;
use crate::counts::{wait_until_idle, writes};
use crate::env::{TestEnv, USER};

/// The order after which the program is killed.
enum Kill {
    None,
    /// The n-th change in Ironic, counted from 1.
    Change(usize),
    /// The n-th write of this verb to this resource.
    Write(&'static str, String, u64),
}

/// Runs the lives after the preparation, and stops the environment. What a life leaves is what the next one finds.
pub(super) async fn run(
    env: TestEnv,
    claims: &mut Claims,
    claim: &str,
    prepare: impl AsyncFn(&TestEnv) -> anyhow::Result<()>,
    life: impl AsyncFn(&TestEnv) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let outcome = async {
        prepare(&env).await.context("before the first life")?;
        wait_until_idle(&env).await;
        each_order(&env, claims, claim, &life).await
    };
    let outcome = outcome.await;
    env.stop().await?;
    outcome
}

async fn each_order(
    env: &TestEnv,
    claims: &mut Claims,
    claim: &str,
    life: &impl AsyncFn(&TestEnv) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // The first life makes what later ones find, such as the node's interfaces.
    lived(env, &Kill::None, life).await.context("the first life")?;
    env.cluster.reset_audit();
    let changes = lived(env, &Kill::None, life).await.context("a life without a kill")?;
    claims.record(claim, Ok(()));
    let mut kills = Vec::new();
    for (at, change) in (1..).zip(&changes) {
        let name = format!("{change}, request {at} of {}", changes.len());
        kills.push((Kill::Change(at), name));
    }
    for ((verb, resource), number) in writes(env) {
        for at in 1..=number {
            let name = format!("{verb} {resource}, {at} of {number}");
            kills.push((Kill::Write(verb, resource.clone(), at), name));
        }
    }
    let number = kills.len();
    let mut missing: usize = 0;
    for (tried, (kill, name)) in kills.into_iter().enumerate() {
        let outcome = lived(env, &kill, life).await;
        // A status that is read at other times passes through fewer states. The first write is never missing.
        let may_be_missing = matches!(kill, Kill::Write(_, _, at) if at > 1);
        if outcome.is_ok() && may_be_missing && env.cluster.injected() == 0 {
            println!("       not killed after {name}: it was not sent");
            missing += 1;
            continue;
        }
        let outcome = outcome.and_then(|changes| {
            let is_sent = !matches!(kill, Kill::Write(..)) || env.cluster.injected() > 0;
            ensure!(is_sent, "it was not sent");
            Ok(changes)
        });
        let ended = outcome.is_ok();
        claims.record(
            format!("the same when the program is killed after {name}"),
            outcome.map(drop),
        );
        ensure!(ended, "{} of {number} kills were not tried", number - tried - 1);
    }
    ensure!(missing * 4 <= number, "{missing} of {number} kills did not happen");
    Ok(())
}

/// One life; returns the changes that Ironic accepted.
async fn lived(
    env: &TestEnv,
    kill: &Kill,
    life: &impl AsyncFn(&TestEnv) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<String>> {
    let mut faults = Plan::none();
    if let Kill::Write(verb, resource, at) = kill {
        faults = faults.with(Rule::at(*at, Fault::CrashAfter).verb(*verb).resource(resource));
    }
    env.cluster.inject_for(&[USER], faults);
    let before = {
        let mut log = env.interceptor.log();
        log.changes.clear();
        log.kill_after = match kill {
            Kill::Change(at) => Some(*at),
            Kill::None | Kill::Write(..) => None,
        };
        log.kills
    };
    life(env).await?;
    wait_until_idle(env).await;
    let log = env.interceptor.log();
    let killed = log.kills.saturating_sub(before);
    let expected = match kill {
        Kill::None => 0,
        Kill::Change(_) => 1,
        Kill::Write(..) => usize::try_from(env.cluster.injected())?,
    };
    ensure!(
        killed == expected,
        "the program was killed {killed} times, not {expected}"
    );
    Ok(log.changes.clone())
}
