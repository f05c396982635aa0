//! Metrics of hosts, under upstream's names and labels.

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
struct PowerChange {
    namespace: String,
    host: String,
    on_off: &'static str,
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConfigData {
    host_data_type: &'static str,
}

/// Counters and their help texts. Scrapes append `_total`.
// differs: `host-metrics`. The Go manager does not register the one of deletions without powering off.
const EVENTS: [(&str, &str); 13] = [
    ("metal3_reconcile_error", "Reconciles of hosts that failed"),
    ("metal3_credentials_missing", "Times the Secret of a BMC did not exist"),
    (
        "metal3_credentials_invalid",
        "Times the address or the Secret of a BMC was not usable",
    ),
    (
        "metal3_credentials_unhandled_error",
        "Times the Secret of a BMC could not be read",
    ),
    ("metal3_credentials_updated", "Times the Secret of a BMC changed"),
    (
        "metal3_credentials_no_management_access",
        "Times Ironic could not verify the access to a BMC",
    ),
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
    (
        "metal3_waiting_for_preprov_image",
        "Times a host began to wait for the image of its agent",
    ),
    (
        "metal3_provisioner_not_ready",
        "Reconciles of hosts to which Ironic did not respond",
    ),
];
/// The same per host.
const EVENTS_BY_HOST: [(&str, &str); 3] = [
    (RECONCILE, "Reconciles of hosts"),
    (
        "metal3_delayed__provisioning",
        "Hosts delayed because no busy-host slot is free",
    ),
    (
        "metal3_delayed__deprovisioning",
        "Deprovisionings delayed because no busy-host slot is free",
    ),
];
const RECONCILE: &str = "metal3_reconcile";
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
const ON: &str = "on";
const OFF: &str = "off";

type Durations = Family<Host, Histogram, fn() -> Histogram>;

pub(super) struct HostMetrics {
    events: BTreeMap<&'static str, Counter>,
    events_by_host: BTreeMap<&'static str, Family<Host, Counter>>,
    durations: BTreeMap<&'static str, Durations>,
    power: Family<PowerChange, Counter>,
    changes: Family<Change, Counter>,
    failures: Family<Failure, Counter>,
    config_data: Family<ConfigData, Counter>,
}

impl HostMetrics {
    pub(super) fn register(metrics: &Metrics) -> Self {
        let events = EVENTS.map(|(name, help)| {
            let counter = Counter::default();
            metrics.register(name, help, counter.clone());
            (name, counter)
        });
        let events_by_host = EVENTS_BY_HOST.map(|(name, help)| {
            let family = Family::default();
            metrics.register(name, help, family.clone());
            (name, family)
        });
        let durations = OPERATIONS.map(|(name, help)| {
            let family = Durations::new_with_constructor(|| Histogram::new(BUCKETS));
            metrics.register(name, help, family.clone());
            (name, family)
        });
        let all = Self {
            events: BTreeMap::from(events),
            events_by_host: BTreeMap::from(events_by_host),
            durations: BTreeMap::from(durations),
            power: Family::default(),
            changes: Family::default(),
            failures: Family::default(),
            config_data: Family::default(),
        };
        metrics.register(
            "metal3_operation_power_change",
            "Requested power changes",
            all.power.clone(),
        );
        metrics.register(
            "metal3_provisioning_state_change",
            "State changes of hosts",
            all.changes.clone(),
        );
        metrics.register("metal3_host_error", "Errors of hosts by type", all.failures.clone());
        metrics.register(
            "metal3_host_config_data_error",
            "Times a Secret for the config drive of a host had no value",
            all.config_data.clone(),
        );
        all
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
            Count::Power { on } => {
                let change = power_change(host, if *on { ON } else { OFF });
                self.power.get_or_create_owned(&change).inc();
            }
            Count::ConfigData(host_data_type) => {
                let data = ConfigData { host_data_type };
                self.config_data.get_or_create_owned(&data).inc();
            }
            Count::One(name) => {
                let name = name.trim_end_matches(SUFFIX);
                if let Some(counter) = self.events.get(name) {
                    counter.inc();
                }
                if let Some(family) = self.events_by_host.get(name) {
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
        for on_off in [ON, OFF] {
            self.power.remove(&power_change(host, on_off));
        }
        let host = labels(host);
        for family in self.events_by_host.values() {
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

fn power_change(host: &Key, on_off: &'static str) -> PowerChange {
    let Host { namespace, host } = labels(host);
    PowerChange {
        namespace,
        host,
        on_off,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The metrics that the Go manager counts, with their labels.
    const REGISTERED: [(&str, &str); 24] = [
        ("metal3_reconcile_total", "namespace,host"),
        ("metal3_reconcile_error_total", ""),
        ("metal3_host_error_total", "error_type"),
        ("metal3_operation_power_change_total", "namespace,host,on_off"),
        ("metal3_delayed__provisioning_total", "namespace,host"),
        ("metal3_delayed__deprovisioning_total", "namespace,host"),
        ("metal3_operation_register_duration_seconds_count", "namespace,host"),
        ("metal3_operation_inspect_duration_seconds_count", "namespace,host"),
        ("metal3_operation_provision_duration_seconds_count", "namespace,host"),
        ("metal3_operation_deprovision_duration_seconds_count", "namespace,host"),
        ("metal3_credentials_missing_total", ""),
        ("metal3_credentials_invalid_total", ""),
        ("metal3_credentials_unhandled_error_total", ""),
        ("metal3_credentials_updated_total", ""),
        ("metal3_credentials_no_management_access_total", ""),
        ("metal3_host_config_data_error_total", "host_data_type"),
        ("metal3_provisioning_state_change_total", "prev_state,new_state"),
        ("metal3_host_registration_required_total", ""),
        ("metal3_host_unmanaged_total", ""),
        ("metal3_delete_without_deprovisioning_total", ""),
        ("metal3_delete_without_powering_off_total", ""),
        ("metal3_provisioner_not_ready_total", ""),
        ("metal3_delete_delayed_for_detached_total", ""),
        ("metal3_waiting_for_preprov_image_total", ""),
    ];

    #[test]
    fn every_metric_of_the_go_manager_has_its_labels() {
        let metrics = Metrics::new();
        let host_metrics = HostMetrics::register(&metrics);
        let host = Key {
            namespace: "metal".to_owned(),
            name: "h".to_owned(),
        };
        let mut counts = vec![
            Count::StateChange {
                from: String::new(),
                to: "registering".to_owned(),
            },
            Count::Error(crate::names::reason::REGISTRATION_ERROR),
            Count::Power { on: true },
            Count::ConfigData("userData"),
        ];
        counts.extend(OPERATIONS.map(|(name, _)| Count::Duration(name, Duration::from_secs(1))));
        let counters = REGISTERED.into_iter().filter(|(name, _)| name.ends_with(SUFFIX));
        counts.extend(counters.map(|(name, _)| Count::One(name)));
        for count in &counts {
            host_metrics.count(&host, count);
        }
        let text = metrics.render();
        for (name, labels) in REGISTERED {
            let line = text.lines().find(|line| {
                let rest = line.strip_prefix(name);
                rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            });
            let line = line.unwrap_or_else(|| panic!("{name} is missing in {text}"));
            assert!(line.ends_with(" 1"), "{line}");
            let shown = line
                .split_once('{')
                .map_or("", |(_, rest)| rest.split_once('}').unwrap().0);
            let shown: Vec<&str> = shown.split(',').map(|label| label.split('=').next().unwrap()).collect();
            assert_eq!(shown.join(","), labels, "{line}");
        }
        host_metrics.remove(&host);
        assert!(!metrics.render().contains(r#"host="h""#));
    }
}
