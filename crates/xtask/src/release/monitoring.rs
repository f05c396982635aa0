//! Rules of alerts: as files, and as a template of the chart.

use metal3_domain::yaml;
use metal3_monitoring::alerts::{groups, prometheus_rule};
use serde_json::Value;

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

/// The object with the rules, for the chart: names of labels in braces are for Prometheus, not for Helm.
pub(super) fn rule(namespace: &str) -> Value {
    let mut object = prometheus_rule(namespace, "@runbooks@");
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("labels".to_owned(), "@labels@".into());
    }
    object
}
