//! The goals of the page, with what was measured.

use super::charts::{peak, per_life};
use crate::outcome::{Api, Outcome, Size, number};
use crate::table::{GROWING, LIFE, cost, growth};

/// A figure with its goal: at most so much.
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) most: f64,
    pub(super) unit: &'static str,
    pub(super) measured: Option<f64>,
}

impl Goal {
    fn new(what: impl Into<String>, most: f64, unit: &'static str, measured: Option<f64>) -> Self {
        Self {
            what: what.into(),
            most,
            unit,
            measured,
        }
    }
}

/// The goals at the largest size.
pub(super) fn of(outcome: &Outcome) -> Vec<Goal> {
    let mut goals = Vec::new();
    if let Some(size) = outcome.sizes.last() {
        goals.extend(of_counts(outcome, size));
        goals.extend(of_resources(outcome, size));
        goals.extend(of_times(size));
    }
    goals
}

fn of_counts(outcome: &Outcome, size: &Size) -> Vec<Goal> {
    let idle = size.phase("idle");
    let life = |of: fn(&crate::outcome::Phase) -> u64| Some(per_life(size, of));
    let mut goals = vec![
        Goal::new(
            "API writes in the life of a host",
            30.0,
            "",
            life(|phase| Api::total(&phase.api.writes)),
        ),
        Goal::new(
            "API reads in the life of a host",
            8.0,
            "",
            life(|phase| Api::total(&phase.api.reads)),
        ),
        Goal::new(
            "Ironic requests in the life of a host",
            23.0,
            "",
            life(|phase| phase.ironic.of_hosts()),
        ),
        Goal::new(
            "API writes of idle hosts",
            0.0,
            "",
            idle.map(|phase| number(Api::total(&phase.api.writes))),
        ),
        Goal::new(
            "Ironic requests of idle hosts",
            60.0,
            "a minute",
            idle.map(|phase| number(phase.ironic.requests.values().sum()) * 60.0 / phase.seconds.max(1.0)),
        ),
    ];
    for (what, of) in GROWING.into_iter().take(3) {
        let most = LIFE.iter().flat_map(|phase| growth(&outcome.sizes, phase, of));
        let most = most.reduce(f64::max);
        goals.push(Goal::new(
            format!("largest exponent of {what} in a phase"),
            1.02,
            "",
            most,
        ));
    }
    goals
}

fn of_resources(outcome: &Outcome, size: &Size) -> Vec<Goal> {
    let idle = size.phase("idle");
    let smallest = outcome.sizes.first().filter(|first| first.hosts < size.hosts);
    let growth = smallest.map(|first| {
        let kib = (peak(size, "manager") - peak(first, "manager")) * 1024.0;
        kib / f64::from(size.hosts.saturating_sub(first.hosts))
    });
    vec![
        Goal::new("memory of the manager per further host", 60.0, "KiB", growth),
        Goal::new(
            "processor of the manager in the life of a host",
            23.0,
            "ms",
            Some(per_life(size, |phase| cost(phase, "manager").cpu_millis)),
        ),
        Goal::new(
            "processor of the manager with idle hosts",
            2.0,
            "% of a core",
            idle.map(|phase| number(cost(phase, "manager").cpu_millis) / phase.seconds.max(1.0) / 10.0),
        ),
    ]
}

fn of_times(size: &Size) -> Vec<Goal> {
    let figure = |phase: &str, figure: &str| size.phase(phase)?.figures.get(figure).copied();
    let reactions = LIFE.iter().filter_map(|name| size.phase(name)?.reaction.clone());
    let slowest = reactions.map(|reaction| reaction.calm.p99).reduce(f64::max);
    let beyond = size
        .phase("provision")
        .and_then(|phase| Some(phase.seconds - phase.alone? - phase.floor?));
    vec![
        Goal::new("reaction to a single change, p99", 50.0, "ms", slowest),
        Goal::new(
            "all provisioned, beyond one host alone and the same writes",
            60.0,
            "s",
            beyond,
        ),
        Goal::new("first write after a start", 3.0, "s", figure("restart", "first write")),
        Goal::new(
            "first write after the leader is killed: its lease of 15 s, and 2 s",
            17.0,
            "s",
            figure("kill", "without a leader"),
        ),
        Goal::new(
            "first write after the leader stops",
            2.0,
            "s",
            figure("stop", "without a leader"),
        ),
        Goal::new(
            "all busy hosts go on after Ironic is back",
            10.0,
            "s",
            figure("away", "all progress"),
        ),
    ]
}
