//! What the cases do to requests, to the registry, and what other processes show.

use std::time::Duration;

use metal3_runtime::metrics::{Metrics, ReconcileResult};
use metal3_runtime::queue::QueueStats;
use metal3_sim_faults::{Fault as Broken, Plan, Rule};

/// A process of another namespace that does not lead.
pub(super) const IDLE: &str = "leader_election_master_status{name=\"capm3\",namespace=\"other\"} 0\n";
/// A pool with free addresses and a claim without one.
pub(super) const REFUSED: &str = "metal3_ipam_pool_addresses{namespace=\"metal\",pool=\"a\",state=\"waiting\"} 1\n\
                       metal3_ipam_pool_addresses{namespace=\"metal\",pool=\"a\",state=\"available\"} 200\n";
/// A process of other controllers.
pub(super) const OTHER: &str = "metal3_build_info{controllers=\"others\",version=\"v1\"} 1\n";

pub(super) fn slow() -> Plan {
    Plan::seeded(1).with(Rule::random(1000, Broken::Delay(Duration::from_secs(15))))
}

const UNAVAILABLE: Broken = Broken::Refused {
    code: 503,
    retry_after: None,
};

pub(super) fn no_reads() -> Plan {
    let plan = Plan::seeded(1).with(Rule::random(1000, UNAVAILABLE).verb("list"));
    plan.with(Rule::random(1000, UNAVAILABLE).verb("watch"))
}

pub(super) fn no_writes() -> Plan {
    Plan::seeded(1).with(Rule::random(1000, UNAVAILABLE).verb("patch"))
}

pub(super) fn panics(metrics: &Metrics) {
    let active = metrics.controller("baremetalhost", 1).begin(Duration::ZERO);
    active.end(ReconcileResult::Panicked, Duration::ZERO);
}

pub(super) fn leads(metrics: &Metrics) {
    metrics.lease("capm3").leading(true);
}

pub(super) fn idle(metrics: &Metrics) {
    metrics.lease("capm3").leading(false);
}

pub(super) fn waiting(metrics: &Metrics) {
    metrics.queue("baremetalhost", || QueueStats {
        oldest_ready: Duration::from_mins(11),
        ..QueueStats::default()
    });
}

pub(super) fn expiring(metrics: &Metrics) {
    // The simulated world begins on 1 January 2026.
    let until = chrono::DateTime::from_timestamp(1_767_225_600 + 3 * 86_400, 0);
    metrics.servers().certificates().expires(until);
}

pub(super) fn failing(metrics: &Metrics) {
    metrics.servers().begin("/validate").end(500, Duration::ZERO);
}
