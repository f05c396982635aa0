//! Rules of alerts and dashboards: as files, and as templates of the chart.

use metal3_domain::yaml;
use metal3_monitoring::alerts::{groups, prometheus_rule};
use metal3_monitoring::dashboards::DASHBOARDS;
use serde_json::{Map, Value, json};

use super::layout::ALL_IN_ONE;

/// What stands before the path of a runbook in the files: the folder of the source.
const SOURCE: &str = "docs/";

/// The rules, for Prometheus and for its operator.
pub(crate) fn files() -> [(&'static str, String); 2] {
    let header = crate::codegen::header("crates/monitoring");
    let rules = yaml::text(&groups(SOURCE));
    let object = yaml::document(&prometheus_rule(ALL_IN_ONE.suite.namespace, SOURCE));
    [
        ("rules.yaml", format!("{header}{rules}")),
        ("prometheusrule.yaml", format!("{header}{object}")),
    ]
}

/// The dashboards.
pub(crate) fn dashboards() -> impl Iterator<Item = (&'static str, String)> {
    DASHBOARDS
        .iter()
        .map(|dashboard| (dashboard.file, format!("{:#}\n", dashboard.json())))
}

/// The object with the rules, for the chart: names of labels in braces are for Prometheus, not for Helm.
pub(super) fn rule(namespace: &str) -> Value {
    let mut object = prometheus_rule(namespace, "@runbooks@");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("labels".to_owned(), "@labels@".into());
    }
    object
}

/// The ConfigMap with the dashboards, for the chart.
pub(super) fn config_map(namespace: &str) -> Value {
    let data: Map<String, Value> = dashboards()
        .map(|(name, text)| (name.to_owned(), text.into()))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "metal3-dashboards", "namespace": namespace, "labels": "@labels@" },
        "data": data,
    })
}
