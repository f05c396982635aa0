//! A whole life of a cluster in which whoever leads is killed at five points, and comes to the same end.
//!
//! A point is a number of writes by the three managers together, and one of the three. So points do not depend on how
//! fast the machine is, and follow from the seed alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use anyhow::{Context, ensure};
use metal3_ledger::Call;

use super::audit::MANAGERS;
use super::fleet::MACHINES;
use super::life::{deleted, settled};
use super::phases::STEADY;
use super::{Scene, install, judge};
use crate::claims::world::World;
use crate::products::Proof;
use crate::products::machines::cluster::{Leader, leader, running};
use crate::products::machines::metal::beside;
use crate::wait::Stopwatch;

const POINTS: usize = 5;
/// Writes of a life with three machines; it has some more.
const WRITES: u64 = 110;
/// Where the managers of Cluster API are.
const CLUSTER_API: [&str; 3] = [
    "capi-system",
    "capi-kubeadm-bootstrap-system",
    "capi-kubeadm-control-plane-system",
];

pub(super) fn survived(scene: &Scene<'_>) -> Proof {
    let world = scene.world;
    two_of_each(world)?;
    let points = points(scene.seed);
    let told = points
        .iter()
        .rev()
        .filter_map(|(point, at)| Some((point, MANAGERS.get(*at)?.namespace)));
    println!("       seed {}: killed are {:?}", scene.seed, told.collect::<Vec<_>>());
    let mut striker = Striker::begin(world, points)?;
    let watch = Stopwatch::start();
    let look = || {
        scene.boots().look()?;
        striker.look()
    };
    beside("the metal", look, || {
        install::cluster(scene)?;
        running(world, 3)?;
        settled(scene)?;
        let (metal, nodes) = (judge::metal(scene)?, judge::nodes(scene)?);
        ensure!(
            (metal, nodes) == ((3, MACHINES - 3), 3),
            "{metal:?} hosts, {nodes} Nodes"
        );
        // Its own look at what boots goes on beside this one.
        deleted(scene)
    })?;
    let struck = striker.struck.join(", ");
    ensure!(
        striker.points.is_empty(),
        "only {struck} were killed: there were {} writes",
        striker.writes
    );
    Ok(format!("{struck} killed, {:.1} s", watch.elapsed().as_secs_f64()))
}

/// All managers run twice.
fn two_of_each(world: &World) -> anyhow::Result<()> {
    for namespace in CLUSTER_API {
        world.kubectl(&["--namespace", namespace, "scale", "deployment", "--all", "--replicas=2"])?;
    }
    for namespace in CLUSTER_API
        .into_iter()
        .chain(MANAGERS.iter().map(|manager| manager.namespace))
    {
        let words = [
            "--namespace",
            namespace,
            "rollout",
            "status",
            "deployment",
            "--timeout=120s",
        ];
        world.kubectl(&words)?;
        let path = "--output=jsonpath={.items[*].status.availableReplicas}";
        let there = world.kubectl(&["--namespace", namespace, "get", "deployments", path])?;
        ensure!(there == "2", "{namespace}: {there} replicas");
    }
    Ok(())
}

/// Numbers of writes, and who is struck after them; the last one first.
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

/// Follows the audit log, and kills.
struct Striker<'a> {
    world: &'a World,
    log: File,
    /// A line that is not whole yet.
    rest: String,
    writes: u64,
    points: Vec<(u64, usize)>,
    struck: Vec<String>,
    /// Whom leases named that were killed.
    dead: BTreeSet<String>,
}

impl<'a> Striker<'a> {
    fn begin(world: &'a World, points: Vec<(u64, usize)>) -> anyhow::Result<Self> {
        let mut log = File::open(world.places.log("audit")).context("opening the audit log")?;
        log.seek(SeekFrom::End(0))?;
        Ok(Self {
            world,
            log,
            rest: String::new(),
            writes: 0,
            points,
            struck: Vec::new(),
            dead: BTreeSet::new(),
        })
    }

    fn look(&mut self) -> anyhow::Result<()> {
        self.log.read_to_string(&mut self.rest)?;
        while let Some((line, rest)) = self.rest.split_once('\n') {
            let call = Call::read(line)?;
            self.rest = rest.to_owned();
            if !call.as_ref().is_some_and(is_work) {
                continue;
            }
            self.writes = self.writes.saturating_add(1);
            if let Some((point, manager)) = self.points.last().copied()
                && self.writes >= point
            {
                self.strike(manager)?;
            }
        }
        Ok(())
    }

    /// While the lease still names one that is dead already, the next write is the point.
    fn strike(&mut self, manager: usize) -> anyhow::Result<()> {
        let manager = MANAGERS.get(manager).context("no such manager")?;
        let Leader { holder, pod, process } = leader(self.world, manager.namespace, manager.lease)?;
        let Some(process) = process else {
            return Ok(());
        };
        if self.dead.insert(holder) {
            self.world.run("kill", &["-9", &process], None)?;
            self.points.pop();
            self.struck.push(format!("{pod} after {} writes", self.writes));
        }
        Ok(())
    }
}

/// Whether one of the managers wrote; leases are renewed and Events told whatever happens.
fn is_work(call: &Call) -> bool {
    let target = &call.target;
    ["create", "update", "patch", "delete"].contains(&target.verb.as_str())
        && !STEADY.contains(&target.resource.as_str())
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
