//! The alerts: rules for Prometheus and their runbook, from one table.
//!
//! Standbys report the same states as the leader, so that rules take the maximum over the processes, never the sum.

mod runbook;
mod table;

use serde_json::{Value, json};

pub use runbook::page;
pub use table::ALERTS;

/// The page with a section for each alert, below `docs`.
pub const RUNBOOK: &str = "runbooks/alerts.md";

/// How urgent an alert is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Someone acts now: nothing progresses, or hosts may be lost.
    Critical,
    /// Someone acts today.
    Warning,
}

impl Severity {
    /// The value of the label.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
        }
    }
}

/// An alert.
#[derive(Debug, Clone, Copy)]
pub struct Alert {
    /// The name, beginning with `Metal3`.
    pub name: &'static str,
    /// The query: each series of its result is an alert.
    pub query: &'static str,
    /// How many minutes the query has a result before the alert fires.
    pub minutes: u32,
    /// The severity.
    pub severity: Severity,
    /// One sentence with `{{ $labels }}` and `{{ $value }}`.
    pub summary: &'static str,
    /// What it means, for the runbook.
    pub meaning: &'static str,
    /// What to do.
    pub cure: &'static str,
    /// Sections of other runbooks: `hosts.md#error`.
    pub see: &'static [&'static str],
}

impl Alert {
    /// Its section, below `docs`.
    #[must_use]
    pub fn runbook(&self) -> String {
        format!("{RUNBOOK}#{}", self.name.to_ascii_lowercase())
    }
}

/// The groups of rules. `runbooks` is what stands before `runbooks/alerts.md` in the links.
#[must_use]
pub fn groups(runbooks: &str) -> Value {
    let rule = |alert: &Alert| {
        json!({
            "alert": alert.name,
            "expr": alert.query,
            "for": format!("{}m", alert.minutes),
            "labels": { "severity": alert.severity.name() },
            "annotations": {
                "summary": alert.summary,
                "description": alert.cure,
                "runbook_url": format!("{runbooks}{}", alert.runbook()),
            },
        })
    };
    let rules: Vec<Value> = ALERTS.iter().map(rule).collect();
    json!({ "groups": [{ "name": "metal3", "rules": rules }] })
}

/// The object of the Prometheus operator with the same rules.
#[must_use]
pub fn prometheus_rule(namespace: &str, runbooks: &str) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": { "name": "metal3-controller-manager", "namespace": namespace },
        "spec": groups(runbooks),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{metrics, query};

    #[test]
    fn each_alert_names_metrics_of_the_table_and_what_to_do() {
        for alert in ALERTS {
            let named = query::metrics(alert.query);
            assert!(!named.is_empty(), "{}", alert.name);
            for name in named {
                assert!(metrics::find(&name).is_some(), "{}: {name} is in no row", alert.name);
            }
            assert!(alert.name.starts_with("Metal3"), "{}", alert.name);
            assert!(
                alert.summary.ends_with('.') && alert.cure.ends_with('.'),
                "{}",
                alert.name
            );
            assert_eq!(ALERTS.iter().filter(|other| other.name == alert.name).count(), 1);
        }
    }

    /// Prometheus has metrics of the same names from every program that is built on controller-runtime.
    #[test]
    fn query_of_a_name_that_others_have_too_asks_for_this_program() {
        let of_alerts = ALERTS.iter().map(|alert| alert.query);
        for query in of_alerts.chain(
            crate::dashboards::DASHBOARDS
                .iter()
                .flat_map(crate::dashboards::Dashboard::queries),
        ) {
            let is_shared = query::metrics(query).iter().any(|name| !name.starts_with("metal3_"));
            let is_limited = query.contains("and on (job, instance) metal3_build_info");
            assert!(!is_shared || is_limited, "{query}");
        }
    }

    #[test]
    fn labels_of_a_summary_are_those_that_the_query_keeps() {
        for alert in ALERTS {
            for part in alert.summary.split("$labels.").skip(1) {
                let label = part.split(' ').next().unwrap();
                let kept = alert.query.split("by (").skip(1);
                let kept = kept
                    .filter_map(|rest| rest.split(')').next())
                    .flat_map(|labels| labels.split(", "));
                assert!(kept.into_iter().any(|kept| kept == label), "{}: {label}", alert.name);
            }
        }
    }

    #[test]
    fn both_forms_have_every_rule_with_its_runbook() {
        let object = prometheus_rule("n", "https://example.org/docs/");
        assert_eq!(object.pointer("/spec"), Some(&groups("https://example.org/docs/")));
        let link = object.pointer("/spec/groups/0/rules/0/annotations/runbook_url");
        let link = link.and_then(Value::as_str).unwrap();
        let (_, anchor) = link.rsplit_once('#').unwrap();
        let name = ALERTS.first().unwrap().name;
        assert_eq!(anchor, name.to_lowercase());
        assert!(page().contains(&format!("\n## {name}\n")));
    }
}
