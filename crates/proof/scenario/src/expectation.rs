//! Expectations of a scenario about objects, and their check.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// Expectation that a number of objects match.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Their kind.
    pub kind: String,
    /// Only the object with this name.
    pub name: Option<String>,
    /// Only objects of this Cluster.
    pub cluster: Option<String>,
    /// Field values by JSON pointer.
    #[serde(default, rename = "where")]
    pub says: BTreeMap<String, Value>,
    /// Status of their conditions.
    #[serde(default)]
    pub condition: BTreeMap<String, String>,
    /// Texts that occur anywhere in the object.
    #[serde(default)]
    pub mentions: Vec<String>,
    /// Number of matching objects; 1 by default.
    pub count: Option<usize>,
}

/// Expectation about the Nodes of a workload cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedNodes {
    /// Name of the Cluster.
    pub cluster: String,
    /// Number of matching Nodes.
    pub count: usize,
    /// Labels of each of them.
    #[serde(default)]
    pub labels: Vec<String>,
}

impl Expectation {
    /// Checks all objects of the kind.
    ///
    /// # Errors
    /// The number of matching objects, and the selected objects.
    pub fn check(&self, all: &[Value]) -> Result<()> {
        let selected: Vec<&Value> = all.iter().filter(|object| self.is_selected(object)).collect();
        let found = selected.iter().filter(|object| self.is_match(object)).count();
        let wanted = self.count.unwrap_or(1);
        if found == wanted {
            return Ok(());
        }
        let shown: Vec<String> = selected.iter().map(|object| show(object)).collect();
        bail!(
            "{found} of {} match, not {wanted}:\n{}",
            selected.len(),
            shown.join("\n")
        );
    }

    fn is_selected(&self, object: &Value) -> bool {
        let cluster = text(object, "/metadata/labels/cluster.x-k8s.io~1cluster-name");
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.name, text(object, "/metadata/name")) && is(&self.cluster, cluster)
    }

    fn is_match(&self, object: &Value) -> bool {
        let has = |aspect: &str, status: &str| {
            let all = object.pointer("/status/conditions").and_then(Value::as_array);
            let mut all = all.into_iter().flatten();
            all.any(|condition| text(condition, "/type") == aspect && text(condition, "/status") == status)
        };
        let says = |at: &str, value: &Value| object.pointer(at).unwrap_or(&Value::Null) == value;
        let mentions = || {
            let whole = object.to_string();
            self.mentions.iter().all(|word| whole.contains(word.as_str()))
        };
        self.says
            .iter()
            .all(|(at, value)| says(at, value) || (is_empty(value) && says(at, &Value::Null)))
            && self.condition.iter().all(|(aspect, status)| has(aspect, status))
            && (self.mentions.is_empty() || mentions())
    }
}

/// Servers may omit an empty text.
fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("")
}

impl ExpectedNodes {
    /// Checks all Nodes of the cluster. Only Nodes with a provider ID count.
    ///
    /// # Errors
    /// The number of matching Nodes, and all Nodes.
    pub fn check(&self, all: &[Value]) -> Result<()> {
        let labelled = |node: &Value, label: &String| {
            let labels = node.pointer("/metadata/labels");
            labels.is_some_and(|labels| labels.get(label).is_some())
        };
        let fits = |node: &&Value| {
            self.labels.iter().all(|label| labelled(node, label)) && !text(node, "/spec/providerID").is_empty()
        };
        let found = all.iter().filter(fits).count();
        ensure!(found == self.count, "{found} of {} Nodes match: {all:#?}", all.len());
        Ok(())
    }
}

pub(crate) fn text<'a>(object: &'a Value, at: &str) -> &'a str {
    object.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// An object in the form of a failure message.
fn show(object: &Value) -> String {
    let part = |at: &str| object.pointer(at).unwrap_or(&Value::Null).to_string();
    let spec: String = part("/spec").chars().take(300).collect();
    format!(
        "  {} {}\n    spec {spec}\n    status {}",
        text(object, "/kind"),
        text(object, "/metadata/name"),
        part("/status")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expectation(text: &str) -> Expectation {
        serde_saphyr::from_str(text).unwrap()
    }

    fn machine(name: &str, phase: &str, ready: &str) -> Value {
        json!({ "kind": "Machine", "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": "c" } },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] } })
    }

    #[test]
    fn a_failed_check_shows_the_selected_objects() {
        let all = [machine("a", "Running", "True"), machine("b", "Pending", "False")];
        let holds = |text: &str| expectation(text).check(&all).map_err(|error| error.to_string());
        assert_eq!(holds("{ kind: Machine, count: 2 }"), Ok(()));
        assert_eq!(holds("{ kind: Machine, where: { /status/phase: Running } }"), Ok(()));
        assert_eq!(
            holds("{ kind: Machine, count: 1, condition: { Ready: \"True\" } }"),
            Ok(())
        );
        assert_eq!(holds("{ kind: Machine, count: 1, mentions: [Pending] }"), Ok(()));
        assert_eq!(holds("{ kind: Machine, cluster: other, count: 0 }"), Ok(()));
        let why = holds("{ kind: Machine, name: b, condition: { Ready: \"True\" } }").unwrap_err();
        assert!(why.contains("0 of 1 match") && why.contains("Pending"), "{why}");
    }

    #[test]
    fn an_empty_and_a_missing_text_are_equal() {
        let expectation = expectation("{ kind: Machine, where: { /status/errorMessage: \"\" } }");
        assert!(
            expectation
                .check(&[json!({ "status": { "errorMessage": "" } })])
                .is_ok()
        );
        assert!(expectation.check(&[json!({ "status": {} })]).is_ok());
        assert!(
            expectation
                .check(&[json!({ "status": { "errorMessage": "x" } })])
                .is_err()
        );
    }

    #[test]
    fn nodes_without_an_id_do_not_count() {
        let expectation: ExpectedNodes = serde_saphyr::from_str("{ cluster: c, count: 1, labels: [l] }").unwrap();
        let node = |id: &str| json!({ "metadata": { "labels": { "l": "" } }, "spec": { "providerID": id } });
        assert!(expectation.check(&[node("metal3://x"), node("")]).is_ok());
        assert!(expectation.check(&[node("")]).is_err());
    }
}
