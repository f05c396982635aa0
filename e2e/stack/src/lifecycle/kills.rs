//! A life cycle of a cluster in which leaders are killed at five points. It ends like an undisturbed one.
//!
//! A point is a number of writes by the three managers together, and the manager to kill. It depends on the seed only, not
//! on the speed of the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use anyhow::{Context, ensure};
use metal3_ledger::Call;

use super::audit::MANAGERS;
use super::cluster::{deleted, settled};
use super::env::TestEnv;
use super::fleet::MACHINES;
use super::phases::PERIODIC;
use super::{checks, install};
use crate::claim::Proof;
use crate::claims::stack::Stack;
use crate::products::machines::cluster::{Leader, leader, running};
use crate::products::machines::host_simulator::concurrently;
use crate::wait::Stopwatch;

const POINTS: usize = 5;
/// A life cycle with three machines has more than this number of writes.
const WRITES: u64 = 110;
/// Namespaces of the managers of Cluster API.
const CLUSTER_API: [&str; 3] = [
    "capi-system",
    "capi-kubeadm-bootstrap-system",
    "capi-kubeadm-control-plane-system",
];

pub(super) fn survived(env: &TestEnv<'_>) -> Proof {
    let stack = env.stack;
    two_of_each(stack)?;
    let points = points(env.seed);
    let plan = points
        .iter()
        .rev()
        .filter_map(|(point, at)| Some((point, MANAGERS.get(*at)?.namespace)));
    println!("       seed {}: kills {:?}", env.seed, plan.collect::<Vec<_>>());
    let mut killer = LeaderKiller::begin(stack, points)?;
    let watch = Stopwatch::start();
    let tick = || {
        env.simulator().step()?;
        killer.tick()
    };
    concurrently("the simulated machines", tick, || {
        install::cluster(env)?;
        running(stack, 3)?;
        settled(env)?;
        let (hosts, nodes) = (checks::hosts(env)?, checks::nodes(env)?);
        ensure!(
            (hosts, nodes) == ((3, MACHINES - 3), 3),
            "{hosts:?} hosts, {nodes} Nodes"
        );
        // It starts a second simulator loop, which is harmless.
        deleted(env)
    })?;
    let killed = killer.killed.join(", ");
    ensure!(
        killer.points.is_empty(),
        "only {killed} were killed: there were {} writes",
        killer.writes
    );
    Ok(format!("{killed} killed, {:.1} s", watch.elapsed().as_secs_f64()))
}

/// Scales each manager to two replicas.
fn two_of_each(stack: &Stack) -> anyhow::Result<()> {
    for namespace in CLUSTER_API {
        stack.kubectl(&["--namespace", namespace, "scale", "deployment", "--all", "--replicas=2"])?;
    }
    for namespace in CLUSTER_API
        .into_iter()
        .chain(MANAGERS.iter().map(|manager| manager.namespace))
    {
        let args = [
            "--namespace",
            namespace,
            "rollout",
            "status",
            "deployment",
            "--timeout=120s",
        ];
        stack.kubectl(&args)?;
        let path = "--output=jsonpath={.items[*].status.availableReplicas}";
        let there = stack.kubectl(&["--namespace", namespace, "get", "deployments", path])?;
        ensure!(there == "2", "{namespace}: {there} replicas");
    }
    Ok(())
}

/// Numbers of writes and the manager to kill after them, the last point first.
fn points(seed: u64) -> Vec<(u64, usize)> {
    let mut state = seed;
    let mut points = BTreeMap::new();
    while points.len() < POINTS {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        points.insert(
            (state >> 33) % WRITES + 1,
            usize::from(state.to_be_bytes()[2]) % MANAGERS.len(),
        );
    }
    points.into_iter().rev().collect()
}

/// Follows the audit log and kills leaders.
struct LeaderKiller<'a> {
    stack: &'a Stack,
    log: File,
    /// An incomplete line.
    incomplete: String,
    writes: u64,
    points: Vec<(u64, usize)>,
    killed: Vec<String>,
    /// Lease holders that were killed.
    killed_holders: BTreeSet<String>,
}

impl<'a> LeaderKiller<'a> {
    fn begin(stack: &'a Stack, points: Vec<(u64, usize)>) -> anyhow::Result<Self> {
        let mut log = File::open(stack.places.log("audit")).context("opening the audit log")?;
        log.seek(SeekFrom::End(0))?;
        Ok(Self {
            stack,
            log,
            incomplete: String::new(),
            writes: 0,
            points,
            killed: Vec::new(),
            killed_holders: BTreeSet::new(),
        })
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        self.log.read_to_string(&mut self.incomplete)?;
        while let Some((line, incomplete)) = self.incomplete.split_once('\n') {
            let call = Call::read(line)?;
            self.incomplete = incomplete.to_owned();
            if !call.as_ref().is_some_and(is_work) {
                continue;
            }
            self.writes = self.writes.saturating_add(1);
            if let Some((point, manager)) = self.points.last().copied()
                && self.writes >= point
            {
                self.kill(manager)?;
            }
        }
        Ok(())
    }

    /// Does nothing while the lease names a killed process; then the next write is the point.
    fn kill(&mut self, manager: usize) -> anyhow::Result<()> {
        let manager = MANAGERS.get(manager).context("no such manager")?;
        let Leader { holder, pod, process } = leader(self.stack, manager.namespace, manager.lease)?;
        let Some(process) = process else {
            return Ok(());
        };
        if self.killed_holders.insert(holder) {
            self.stack.run("kill", &["-9", &process], None)?;
            self.points.pop();
            self.killed.push(format!("{pod} after {} writes", self.writes));
        }
        Ok(())
    }
}

/// Whether the call is a write of one of the managers, except leases and Events, which occur at any time.
fn is_work(call: &Call) -> bool {
    let target = &call.target;
    ["create", "update", "patch", "delete"].contains(&target.verb.as_str())
        && !PERIODIC.contains(&target.resource.as_str())
        && MANAGERS.iter().any(|manager| manager.account.user == call.user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_follow_from_the_seed_and_differ() {
        for seed in 0..100 {
            let found = points(seed);
            assert_eq!(found, points(seed));
            assert!(found.is_sorted_by(|a, b| a.0 > b.0), "{found:?}");
            assert!(found.iter().all(|(point, _)| (1..=WRITES).contains(point)));
            assert_eq!(found.len(), POINTS);
        }
        assert_ne!(points(1), points(2));
    }
}
