//! Metrics of leader election.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::registered;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByLease {
    name: String,
}

pub(super) struct Families {
    leading: Family<ByLease, Gauge>,
    failures: Family<ByLease, Counter>,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Self {
        Self {
            leading: registered(
                registry,
                "leader_election_master_status",
                "1 while this process holds the lease, else 0",
            ),
            failures: registered(
                registry,
                "leader_election_slowpath",
                "Renewals of a held lease that did not succeed at once",
            ),
        }
    }
}

/// The metrics of one lease; clones share them.
#[derive(Debug, Clone)]
pub struct LeaseMetrics {
    leading: Gauge,
    failures: Counter,
}

impl LeaseMetrics {
    pub(super) fn new(families: &Families, name: &str) -> Self {
        let by = ByLease { name: name.to_owned() };
        Self {
            leading: families.leading.get_or_create_owned(&by),
            failures: families.failures.get_or_create_owned(&by),
        }
    }

    /// Whether this process holds the lease now.
    pub fn leading(&self, leading: bool) {
        self.leading.set(i64::from(leading));
    }

    /// A renewal failed; the next one may succeed.
    pub fn renewal_failed(&self) {
        self.failures.inc();
    }
}
