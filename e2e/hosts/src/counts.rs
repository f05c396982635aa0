//! The program's requests to API server and Ironic in each phase, compared with the goals of the simulated servers.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_ledger::{Figure, Ledger};
use tokio::time::sleep;

use crate::env::{TestEnv, USER};
use crate::goals::{self, Goal};
use crate::phase::Phase;

/// Not counted: events, leader election, and the detection of another manager.
const UNCOUNTED: [&str; 5] = [
    "events",
    "leases",
    "deployments",
    "customresourcedefinitions",
    "nonresource",
];
/// Each Secret of a config-drive is read once; the goals are for a host without any.
const DRIVE_SECRETS: u64 = 3;
/// A phase without requests for this long is idle.
const IDLE: Duration = Duration::from_secs(2);

/// Numbers of requests by description.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    writes: BTreeMap<String, u64>,
    reads: BTreeMap<String, u64>,
    ironic: BTreeMap<String, u64>,
}

fn sum(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// Waits until the program sends no requests.
pub(crate) async fn wait_until_idle(env: &TestEnv) {
    let mut before = None;
    loop {
        let now = (env.interceptor.log().requests.len(), sum(&writes_and_reads(env).0));
        if before == Some(now) {
            return;
        }
        before = Some(now);
        sleep(IDLE).await;
    }
}

/// The writes of the program since the counts were reset, by verb and resource.
pub(crate) fn writes(env: &TestEnv) -> Vec<((&'static str, String), u64)> {
    let audit = env.cluster.audit();
    let of_program = audit.counts().filter(|((user, verb, resource), _)| {
        let is_write = !["list", "watch", "get"].contains(verb);
        user == USER && is_write && !UNCOUNTED.iter().any(|prefix| resource.starts_with(prefix))
    });
    of_program
        .map(|((_, verb, resource), number)| ((*verb, resource.clone()), number))
        .collect()
}

fn writes_and_reads(env: &TestEnv) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut writes, mut reads) = (BTreeMap::new(), BTreeMap::new());
    for ((user, verb, resource), number) in env.cluster.audit().counts() {
        if user != USER || UNCOUNTED.iter().any(|prefix| resource.starts_with(prefix)) {
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

/// Returns the counts and resets them.
pub(crate) fn take_counts(env: &TestEnv) -> RequestCounts {
    let (writes, reads) = writes_and_reads(env);
    env.cluster.reset_audit();
    let mut ironic = BTreeMap::new();
    for request in env.interceptor.log().requests.drain(..) {
        *ironic.entry(request).or_default() += 1;
    }
    RequestCounts { writes, reads, ironic }
}

impl RequestCounts {
    /// Enters a phase into the ledger, per host and rounded up, so that one excess request is visible.
    pub(crate) fn enter(&self, ledger: &mut Ledger, phase: Phase, hosts: u16) {
        let goal = goal(phase);
        let drive_reads = if phase == Phase::Provision { DRIVE_SECRETS } else { 0 };
        let figures = [
            ("API writes per host", &self.writes, goal.writes),
            ("API reads per host", &self.reads, goal.reads.max(1 + drive_reads)),
            ("Ironic requests per host", &self.ironic, goal.ironic),
        ];
        for ((what, counts, goal), least) in figures.into_iter().zip(goal.least) {
            ledger.add(Figure {
                phase: format!("{phase:?}, {hosts}").to_lowercase(),
                what: what.to_owned(),
                measured: sum(counts).div_ceil(u64::from(hosts.max(1))),
                goal,
                least: least.to_owned(),
            });
        }
    }

    /// Each request with its number over all hosts.
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
