//! A Cluster with another provider's infrastructure, and machines on bare metal in it.

mod kills;
pub(super) mod provider;

use std::collections::BTreeSet;

use anyhow::ensure;

use super::cluster::{LONG, settled};
use super::env::TestEnv;
use super::fleet::MACHINES;
use super::{audit, checks, cluster_move, install};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::cluster::{freed, nothing_is_left, running, until_deleted};
use crate::products::machines::host_simulator::concurrently;
use crate::products::machines::template::CLUSTER;
use crate::wait::{Stopwatch, until};
use kills::ReplicaKiller;

/// Runs from creation to deletion, with a move to another management cluster and back.
pub(super) fn life_cycle(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    let before = secrets(stack)?;
    let target = cluster_move::second(env)?;
    for stack in [stack, target.stack] {
        provider::install(stack)?;
    }
    let created = create(env)?;
    let there = moves(env, &target, stack)?;
    let back = moves(&target, env, stack)?;
    audit::no_request_was_forbidden(target.stack)?;
    let deleted = delete(env)?;
    until(LONG, "the deletion of generated Secrets", || {
        Ok((secrets(stack)?.is_subset(&before)).then_some(()))
    })?;
    Ok(format!("{created}; there: {there}; back: {back}; {deleted}"))
}

fn create(env: &TestEnv<'_>) -> Proof {
    let watch = Stopwatch::start();
    let tick = || {
        env.simulator().step()?;
        provider::reconcile(env.stack)
    };
    let nodes = concurrently("the simulated machines", tick, || {
        install::cluster_with(env, provider::change_infrastructure)?;
        running(env.stack, 3)?;
        settled(env)?;
        let (taken, free) = checks::hosts(env)?;
        ensure!((taken, free) == (3, MACHINES - 3), "{taken} hosts taken, {free} free");
        provider::is_secondary(env.stack)?;
        checks::nodes(env)
    })?;
    Ok(format!("{nodes} Nodes after {:.1} s", watch.elapsed().as_secs_f64()))
}

/// Moves the cluster while one replica of each manager is killed at each phase, on both sides.
fn moves(from: &TestEnv<'_>, to: &TestEnv<'_>, near: &Stack) -> Proof {
    let mut killer = ReplicaKiller::begin(from.stack, to.stack, near)?;
    let tick = || {
        from.simulator().step()?;
        killer.tick()?;
        provider::reconcile(to.stack)
    };
    let figures = cluster_move::moves_during(from, to, tick)?;
    provider::is_secondary(to.stack)?;
    Ok(format!("{figures}, killed {}", killer.finish()?))
}

fn delete(env: &TestEnv<'_>) -> Proof {
    let (stack, watch) = (env.stack, Stopwatch::start());
    env.while_simulated(|| {
        stack.kubectl(&["--namespace", NAMESPACE, "delete", "cluster", CLUSTER, "--wait=false"])?;
        until_deleted(stack, &format!("clusters,machines,{}", provider::RESOURCE))?;
        freed(stack, MACHINES)
    })?;
    nothing_is_left(stack)?;
    let (taken, free) = checks::hosts(env)?;
    ensure!((taken, free) == (0, MACHINES), "{taken} hosts taken, {free} free");
    Ok(format!("nothing left after {:.1} s", watch.elapsed().as_secs_f64()))
}

fn secrets(stack: &Stack) -> anyhow::Result<BTreeSet<String>> {
    Ok(list(stack, NAMESPACE, "secrets")?.iter().map(name).collect())
}
