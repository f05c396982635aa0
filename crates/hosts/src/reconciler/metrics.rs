//! Metrics of hosts, under upstream's names.

use std::collections::BTreeMap;

use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::action::Count;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Host {
    namespace: String,
    host: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Change {
    prev_state: String,
    new_state: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failure {
    error_type: &'static str,
}

/// Counters per host and their help texts. Scrapes append `_total`.
const EVENTS: [(&str, &str); 11] = [
    ("metal3_operation_power_change", "Requested power changes"),
    (
        "metal3_delayed__provisioning",
        "Hosts delayed because no busy-host slot is free",
    ),
    (
        "metal3_delayed__deprovisioning",
        "Deprovisionings delayed because no busy-host slot is free",
    ),
    ("metal3_credentials_missing", "Times the Secret of a BMC did not exist"),
    (
        "metal3_credentials_invalid",
        "Times the Secret of a BMC had no usable credentials",
    ),
    ("metal3_credentials_updated", "Times the Secret of a BMC changed"),
    ("metal3_host_registration_required", "Hosts that have to be registered"),
    ("metal3_host_unmanaged", "Hosts without a BMC"),
    (
        "metal3_delete_without_deprovisioning",
        "Deletions without deprovisioning, after failures",
    ),
    (
        "metal3_delete_without_powering_off",
        "Deletions without powering off, after failures",
    ),
    (
        "metal3_delete_delayed_for_detached",
        "Deletions delayed because the host is detached",
    ),
];
/// Histograms of operations, in seconds.
const OPERATIONS: [(&str, &str); 4] = [
    (
        "metal3_operation_register_duration_seconds",
        "Duration of registrations",
    ),
    ("metal3_operation_inspect_duration_seconds", "Duration of inspections"),
    ("metal3_operation_provision_duration_seconds", "Duration of deployments"),
    (
        "metal3_operation_deprovision_duration_seconds",
        "Duration of deprovisionings",
    ),
];
const BUCKETS: [f64; 6] = [30.0, 90.0, 180.0, 360.0, 720.0, 1440.0];
const SUFFIX: &str = "_total";

type Durations = Family<Host, Histogram, fn() -> Histogram>;

pub(super) struct HostMetrics {
    events: BTreeMap<&'static str, Family<Host, Counter>>,
    durations: BTreeMap<&'static str, Durations>,
    changes: Family<Change, Counter>,
    failures: Family<Failure, Counter>,
}

impl HostMetrics {
    pub(super) fn register(metrics: &Metrics) -> Self {
        let events = EVENTS.map(|(name, help)| {
            let family = Family::default();
            metrics.register(name, help, family.clone());
            (name, family)
        });
        let durations = OPERATIONS.map(|(name, help)| {
            let family = Durations::new_with_constructor(|| Histogram::new(BUCKETS));
            metrics.register(name, help, family.clone());
            (name, family)
        });
        let (changes, failures) = (Family::default(), Family::default());
        metrics.register(
            "metal3_provisioning_state_change",
            "State changes of hosts",
            changes.clone(),
        );
        metrics.register("metal3_host_error", "Errors of hosts by type", failures.clone());
        Self {
            events: BTreeMap::from(events),
            durations: BTreeMap::from(durations),
            changes,
            failures,
        }
    }

    pub(super) fn count(&self, host: &Key, count: &Count) {
        match count {
            Count::StateChange { from, to } => {
                let change = Change {
                    prev_state: from.clone(),
                    new_state: to.clone(),
                };
                self.changes.get_or_create_owned(&change).inc();
            }
            Count::Error(reason) => {
                let failure = Failure {
                    error_type: reason.as_str(),
                };
                self.failures.get_or_create_owned(&failure).inc();
            }
            Count::One(name) => {
                if let Some(family) = self.events.get(name.trim_end_matches(SUFFIX)) {
                    family.get_or_create_owned(&labels(host)).inc();
                }
            }
            Count::Duration(name, took) => {
                if let Some(family) = self.durations.get(name) {
                    family.get_or_create_owned(&labels(host)).observe(took.as_secs_f64());
                }
            }
        }
    }

    pub(super) fn remove(&self, host: &Key) {
        let host = labels(host);
        for family in self.events.values() {
            family.remove(&host);
        }
        for family in self.durations.values() {
            family.remove(&host);
        }
    }
}

fn labels(host: &Key) -> Host {
    Host {
        namespace: host.namespace.clone(),
        host: host.name.clone(),
    }
}
