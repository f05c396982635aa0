//! What the program asks of API server and Ironic in each phase, beside the goals of the simulated worlds.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_ledger::{Figure, Ledger};
use tokio::time::sleep;

use crate::goals::{self, Goal};
use crate::phase::Phase;
use crate::world::{US, World};

/// What is no part of the price of a host: what was told, who leads, whether another manager runs.
const APART: [&str; 5] = [
    "events",
    "leases",
    "deployments",
    "customresourcedefinitions",
    "nonresource",
];
/// The Secrets of a config-drive are read once each; the reference host of the goals has none.
const SECRETS: u64 = 3;
/// So long nothing is asked for, and the phase is at rest.
const REST: Duration = Duration::from_secs(2);

/// What was asked for since the last time, by what it is.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    writes: BTreeMap<String, u64>,
    reads: BTreeMap<String, u64>,
    ironic: BTreeMap<String, u64>,
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// Waits until nothing is asked for any more.
pub(crate) async fn rest(world: &World) {
    let mut before = None;
    loop {
        let asked = (world.tap.book().asked.len(), sum(&writes_and_reads(world).0));
        if before == Some(asked) {
            return;
        }
        before = Some(asked);
        sleep(REST).await;
    }
}

fn writes_and_reads(world: &World) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut writes, mut reads) = (BTreeMap::new(), BTreeMap::new());
    for ((user, verb, resource), number) in world.cluster.audit().counts() {
        if user != US || APART.iter().any(|apart| resource.starts_with(apart)) {
            continue;
        }
        let counts = match *verb {
            "list" | "watch" => continue,
            "get" => &mut reads,
            _ => &mut writes,
        };
        *counts.entry(format!("{verb} {resource}")).or_default() += number;
    }
    (writes, reads)
}

/// Takes what was asked for, and counts from nought again.
pub(crate) fn take(world: &World) -> Asked {
    let (writes, reads) = writes_and_reads(world);
    world.cluster.reset_audit();
    let mut ironic = BTreeMap::new();
    for what in world.tap.book().asked.drain(..) {
        *ironic.entry(what).or_default() += 1;
    }
    Asked { writes, reads, ironic }
}

impl Asked {
    /// Writes a phase down, per host; one request too many shows.
    pub(crate) fn enter(&self, ledger: &mut Ledger, phase: Phase, hosts: u16) {
        let goal = goal(phase);
        let of_drive = if phase == Phase::Provision { SECRETS } else { 0 };
        let figures = [
            ("API writes per host", &self.writes, goal.writes),
            ("API reads per host", &self.reads, goal.reads.max(1 + of_drive)),
            ("Ironic requests per host", &self.ironic, goal.ironic),
        ];
        for ((what, counts, goal), least) in figures.into_iter().zip(goal.least) {
            ledger.enter(Figure {
                phase: format!("{phase:?}, {hosts}").to_lowercase(),
                what: what.to_owned(),
                measured: sum(counts).div_ceil(u64::from(hosts.max(1))),
                goal,
                least: least.to_owned(),
            });
        }
    }

    /// Each request by name, of all hosts.
    pub(crate) fn detail(&self, phase: Phase) -> String {
        let mut text = String::new();
        for (kind, counts) in [("API", &self.writes), ("API", &self.reads), ("Ironic", &self.ironic)] {
            for (what, number) in counts {
                text.push_str(&format!("{phase:12?} {kind:7} {number:5}  {what}\n"));
            }
        }
        text
    }
}

const fn goal(phase: Phase) -> Goal {
    match phase {
        Phase::Enrol => goals::ENROL,
        Phase::Provision => goals::PROVISION,
        Phase::Deprovision => goals::DEPROVISION,
        Phase::Delete => goals::DELETE,
    }
}
