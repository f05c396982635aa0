//! The goals of the page, with what was measured.

use super::charts::{peak, per_life};
use crate::outcome::{Api, Measured, Outcome, Phase, Size, number};
use crate::table::{GROWING, LIFE, cost, growth};

/// A goal for any number of hosts: its figure is of one host, or has several sizes in it.
pub(super) const ANY: u32 = 1;
/// A first leader, a new one and idle hosts.
const MANY: u32 = 10_000;
/// An outage, and an image for each host.
const BUSY: u32 = 1000;

/// A figure with its goal: at most so much, with so many hosts.
pub(super) struct Goal {
    pub(super) what: String,
    pub(super) most: f64,
    pub(super) unit: &'static str,
    pub(super) hosts: u32,
    pub(super) measured: Measured,
}

impl Goal {
    fn new(what: impl Into<String>, (most, unit): (f64, &'static str), hosts: u32, measured: Option<f64>) -> Self {
        Self {
            what: what.into(),
            most,
            unit,
            hosts,
            measured: Measured::of(measured),
        }
    }

    /// What a run with so many hosts says about it. More hosts make no figure smaller, so that few of them can miss a goal.
    pub(super) fn result(&self, hosts: u32) -> &'static str {
        match self.measured {
            Measured::Missing | Measured::Disturbed => "",
            Measured::Value(value) if value > self.most => "missed",
            Measured::Value(_) if hosts < self.hosts => "not measured at this size",
            Measured::Value(_) => "kept",
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

/// The requests in a life are the sums of the limits in `crates/hosts/tests/life/goals.rs`.
fn of_counts(outcome: &Outcome, size: &Size) -> Vec<Goal> {
    let idle = size.phase("idle");
    let writes = |phase: &Phase| Api::total(&phase.api.writes);
    let life = |of: fn(&Phase) -> u64| Some(per_life(size, of));
    let mut goals = vec![
        Goal::new("API writes in the life of a host", (30.0, ""), ANY, life(writes)),
        Goal::new(
            "API reads in the life of a host",
            (8.0, ""),
            ANY,
            life(|phase| Api::total(&phase.api.reads)),
        ),
        Goal::new(
            "Ironic requests in the life of a host",
            (23.0, ""),
            ANY,
            life(|phase| phase.ironic.of_hosts()),
        ),
        Goal::new(
            "API writes of idle hosts",
            (0.0, ""),
            ANY,
            idle.map(|phase| number(writes(phase))),
        ),
        Goal::new(
            "Ironic requests of idle hosts",
            (60.0, "a minute"),
            MANY,
            idle.map(|phase| number(phase.ironic.requests.values().sum()) * 60.0 / phase.seconds.max(1.0)),
        ),
    ];
    for (what, of) in GROWING.into_iter().take(3) {
        let most = LIFE.iter().flat_map(|phase| growth(&outcome.sizes, phase, of));
        let most = most.reduce(f64::max);
        let what = format!("largest exponent of {what} in a phase");
        goals.push(Goal::new(what, (1.02, ""), ANY, most));
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
        Goal::new("memory of the manager per further host", (60.0, "KiB"), ANY, growth),
        Goal::new(
            "processor of the manager in the life of a host",
            (23.0, "ms"),
            ANY,
            Some(per_life(size, |phase| cost(phase, "manager").cpu_millis)),
        ),
        Goal::new(
            "processor of the manager with idle hosts",
            (2.0, "% of a core"),
            MANY,
            idle.map(|phase| number(cost(phase, "manager").cpu_millis) / phase.seconds.max(1.0) / 10.0),
        ),
    ]
}

fn of_times(size: &Size) -> Vec<Goal> {
    let figure = |phase: &str, figure: &str| size.phase(phase)?.figures.get(figure).copied();
    let calm = LIFE
        .iter()
        .filter_map(|name| Some(size.phase(name)?.reaction.as_ref()?.calm));
    let slowest = calm.max_by(|one, other| one.p99.total_cmp(&other.p99));
    let name_of_p99 = slowest.map(|slowest| slowest.name_of_p99());
    vec![
        Goal::new(
            format!(
                "reaction to changes one after the other, {} in a phase",
                name_of_p99.as_deref().unwrap_or("slowest")
            ),
            (50.0, "ms"),
            ANY,
            slowest.map(|slowest| slowest.p99),
        ),
        Goal {
            what: "all provisioned, beyond one host alone and the same writes".to_owned(),
            most: 60.0,
            unit: "s",
            hosts: BUSY,
            measured: size.phase("provision").map_or(Measured::Missing, Phase::beyond),
        },
        Goal::new(
            "first write after a start",
            (3.0, "s"),
            MANY,
            figure("restart", "first write"),
        ),
        Goal::new(
            "first write after the leader is killed: its lease of 15 s, and 2 s",
            (17.0, "s"),
            MANY,
            figure("kill", "without a leader"),
        ),
        Goal::new(
            "first write after the leader stops",
            (2.0, "s"),
            MANY,
            figure("stop", "without a leader"),
        ),
        Goal::new(
            "all busy hosts go on after Ironic is back",
            (10.0, "s"),
            BUSY,
            figure("away", "all progress"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(measured: Measured) -> Goal {
        Goal {
            measured,
            ..Goal::new("first write", (3.0, "s"), MANY, None)
        }
    }

    #[test]
    fn a_goal_for_many_hosts_is_kept_with_so_many_only() {
        let disturbed = Measured::Disturbed;
        for (measured, hosts, result) in [
            (Measured::Value(3.0), MANY, "kept"),
            (Measured::Value(3.0), MANY - 1, "not measured at this size"),
            (Measured::Value(3.1), MANY, "missed"),
            (Measured::Value(3.1), 100, "missed"),
            (Measured::Missing, MANY, ""),
            (disturbed, MANY, ""),
        ] {
            assert_eq!(goal(measured).result(hosts), result, "{measured:?} with {hosts} hosts");
        }
    }

    #[test]
    fn times_of_a_disturbed_run_keep_no_goal() {
        let size = Size {
            hosts: BUSY,
            phases: vec![Phase {
                name: "provision".to_owned(),
                seconds: 9.0,
                alone: Some(4.0),
                floor: Some(20.0),
                ..Phase::default()
            }],
        };
        let goals = of_times(&size);
        let disturbed = goals.iter().filter(|goal| goal.measured == Measured::Disturbed);
        let disturbed: Vec<&str> = disturbed.map(|goal| goal.what.as_str()).collect();
        assert_eq!(
            disturbed,
            ["all provisioned, beyond one host alone and the same writes"]
        );
        assert!(
            goals.iter().all(|goal| goal.result(BUSY).is_empty()),
            "no phase has other figures"
        );
    }
}
