//! Metrics of hosts and of Ironic that a scrape reads: states, errors, the deprovision budget, requests to Ironic and the
//! change feed. None has a label with text of an object or of
//! Ironic; that of one Ironic of several is its name in the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, OperationalStatus, ProvisioningState as State};
use metal3_domain::clock::Clock;
use metal3_domain::objectives::{NEW, Subject};
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::metrics::{Metrics, StateRecorder};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;

use super::budget::DeprovisionBudget;
use super::index::HostIndex;
use super::ironic_gauges;
use super::sessions::Sessions;
use crate::names::{HELD, reason};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByError {
    error_type: &'static str,
}

const fn error_name(error: ErrorType) -> &'static str {
    match error {
        ErrorType::ProvisionedRegistration => "provisioned registration error",
        ErrorType::Registration => "registration error",
        ErrorType::Inspection => "inspection error",
        ErrorType::Preparation => "preparation error",
        ErrorType::Provisioning => "provisioning error",
        ErrorType::PowerManagement => "power management error",
        ErrorType::Servicing => "servicing error",
    }
}

/// The sources of the metrics.
pub(super) struct Gauges {
    ironics: Sessions,
    index: HostIndex,
    budget: DeprovisionBudget,
    clock: Arc<dyn Clock>,
    problems: Arc<Mutex<Problems>>,
}

/// Hosts that need a user.
#[derive(Default)]
struct Problems {
    /// The error of each host that has one.
    errors: BTreeMap<Key, ErrorType>,
    /// Hosts that the deprovision budget withholds.
    withheld: BTreeSet<Key>,
}

impl Problems {
    fn note(&mut self, key: &Key, host: &BareMetalHost) {
        self.remove(key);
        if let Some(error) = host.status.error_type {
            self.errors.insert(key.clone(), error);
        }
        let mut conditions = host.status.conditions.iter();
        if conditions.any(|condition| condition.type_ == HELD && condition.reason == reason::BUDGET_SPENT.as_str()) {
            self.withheld.insert(key.clone());
        }
    }

    fn remove(&mut self, key: &Key) {
        self.errors.remove(key);
        self.withheld.remove(key);
    }
}

impl Gauges {
    /// Registers the metrics, which follow the cache. Call it before the cache is filled.
    pub(super) fn register(
        metrics: &Metrics,
        hosts: &SharedCache<BareMetalHost>,
        (ironics, index, budget): (Sessions, HostIndex, DeprovisionBudget),
        clock: Arc<dyn Clock>,
    ) {
        let states = metrics.states(Subject::Host, Arc::clone(&clock));
        let problems = Arc::<Mutex<Problems>>::default();
        let follower = Arc::clone(&problems);
        hosts.subscribe(move |change| note(change, &states, &mut follower.lock()));
        metrics.collect(Box::new(Self {
            ironics,
            index,
            budget,
            clock,
            problems,
        }));
    }
}

fn note(change: &Change<'_, BareMetalHost>, states: &StateRecorder, problems: &mut Problems) {
    match change {
        Change::Applied { new, .. } => {
            let (key, state) = (Key::of(*new), new.status.provisioning.state.to_string());
            let state = if state.is_empty() { NEW } else { &state };
            problems.note(&key, new);
            states.set(key.clone(), state, began(new));
            states.hold(&key, is_held(new));
        }
        Change::Deleted { key, .. } => {
            states.remove(key);
            problems.remove(key);
        }
        // The cached object stays.
        Change::Unreadable { .. } | Change::Synced => {}
    }
}

/// Whether no operation is in progress on purpose: the host waits for a slot of Ironic, or is paused.
fn is_held(host: &BareMetalHost) -> bool {
    host.status.operational_status == OperationalStatus::Delayed || host.is_paused()
}

/// When the present state began, if the host records it: an operation that has not ended.
fn began(host: &BareMetalHost) -> Option<DateTime<Utc>> {
    let history = &host.status.operation_history;
    let operation = match host.status.provisioning.state {
        State::Registering => &history.register,
        State::Inspecting => &history.inspect,
        State::Provisioning => &history.provision,
        State::Deprovisioning => &history.deprovision,
        State::None
        | State::Unmanaged
        | State::MatchProfile
        | State::Preparing
        | State::Available
        | State::Ready
        | State::Provisioned
        | State::ExternallyProvisioned
        // A host may be deprovisioned between its deletion and these.
        | State::PoweringOffBeforeDelete
        | State::Deleting
        | State::Other(_) => return None,
    };
    let start = operation.start?.get();
    let has_ended = operation.end.is_some_and(|end| end.get() >= start);
    (!has_ended).then_some(start)
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauges").finish_non_exhaustive()
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.errors(&mut encoder)?;
        self.budget(&mut encoder)?;
        ironic_gauges::encode(&mut encoder, &self.ironics)
    }
}

impl Gauges {
    fn errors(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Hosts with an error, by its type";
        let mut metric = encoder.encode_descriptor("metal3_hosts_by_error", help, None, MetricType::Gauge)?;
        let errors = &self.problems.lock().errors;
        for error_type in ErrorType::ALL {
            let hosts = errors.values().filter(|error| **error == error_type).count();
            let by = ByError {
                error_type: error_name(error_type),
            };
            metric.encode_family(&by)?.encode_gauge(&number(hosts))?;
        }
        Ok(())
    }

    fn budget(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let budgets = self.index.budgets(&self.budget, self.clock.now());
        let gauges = [
            (
                "metal3_deprovision_budget_limit",
                "Provisioned hosts of a namespace that may be deprovisioned per hour, by --deprovision-budget",
                f64::from(self.budget.limit),
            ),
            (
                "metal3_deprovision_budget_left",
                "What is left of it in the namespace with the least",
                f64::from(budgets.least),
            ),
            (
                "metal3_deprovision_budget_spent_namespaces",
                "Namespaces of which none is left",
                number(budgets.spent),
            ),
            (
                "metal3_hosts_withheld_by_budget",
                "Hosts that are not deprovisioned before a user confirms it",
                number(self.problems.lock().withheld.len()),
            ),
        ];
        for (name, help, value) in gauges {
            encoder
                .encode_descriptor(name, help, None, MetricType::Gauge)?
                .encode_gauge(&value)?;
        }
        Ok(())
    }
}

/// Metrics are floating-point numbers.
fn number(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn host(status: &serde_json::Value) -> BareMetalHost {
        serde_json::from_value(json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": "h", "namespace": "metal", "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "online": true }, "status": status,
        }))
        .unwrap()
    }

    fn status(state: &str, history: &serde_json::Value) -> serde_json::Value {
        json!({ "operationalStatus": "OK", "errorMessage": "", "poweredOn": true, "errorCount": 0,
            "operationHistory": history, "provisioning": { "state": state, "ID": "", "image": { "url": "" } } })
    }

    #[test]
    fn state_began_with_its_operation_unless_that_has_ended() {
        let running = json!({ "inspect": { "start": "2026-01-01T01:00:00Z", "end": null } });
        let repeated = json!({ "inspect": { "start": "2026-01-01T03:00:00Z", "end": "2026-01-01T02:00:00Z" } });
        let ended = json!({ "inspect": { "start": "2026-01-01T01:00:00Z", "end": "2026-01-01T02:00:00Z" } });
        let rows = [
            ("inspecting", &running, Some("2026-01-01T01:00:00+00:00")),
            ("inspecting", &repeated, Some("2026-01-01T03:00:00+00:00")),
            ("inspecting", &ended, None),
            ("provisioned", &running, None),
            ("deleting", &running, None),
            ("a state of tomorrow", &running, None),
        ];
        for (state, history, expected) in rows {
            let began = began(&host(&status(state, history))).map(|at| at.to_rfc3339());
            assert_eq!(began.as_deref(), expected, "{state} {history}");
        }
    }

    #[test]
    fn host_is_withheld_by_the_budget_while_its_condition_has_that_reason() {
        let mut status = status("provisioned", &json!({}));
        let (mut problems, key) = (Problems::default(), Key::of(&host(&status)));
        for (reason, is_withheld) in [
            ("DeprovisionBudgetSpent", true),
            ("RequestRefused", false),
            ("DeprovisionBudgetSpent", true),
            ("", false),
        ] {
            let held = json!({ "type": "Held", "status": "True", "reason": reason, "message": "x",
                "lastTransitionTime": "2026-01-01T00:00:00Z" });
            status["conditions"] = match reason {
                "" => json!([]),
                _ => json!([held]),
            };
            problems.note(&key, &host(&status));
            assert_eq!(problems.withheld.contains(&key), is_withheld, "{reason}");
        }
        problems.withheld.insert(key.clone());
        problems.remove(&key);
        assert_eq!(problems.withheld.len(), 0, "a deleted host");
    }

    #[test]
    fn errors_have_the_spelling_of_the_api() {
        for error in ErrorType::ALL {
            assert_eq!(serde_json::to_value(error).unwrap(), error_name(error));
        }
    }
}
