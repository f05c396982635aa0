//! What a script wishes of objects, and whether it is so.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

/// What is wished of objects: that so many are so.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// Their kind.
    pub kind: String,
    /// Only the one of this name.
    pub name: Option<String>,
    /// Only those of this Cluster.
    pub cluster: Option<String>,
    /// What they say, by JSON pointer.
    #[serde(default, rename = "where")]
    pub says: BTreeMap<String, Value>,
    /// Status of their conditions.
    #[serde(default)]
    pub condition: BTreeMap<String, String>,
    /// Texts that occur somewhere in them.
    #[serde(default)]
    pub mentions: Vec<String>,
    /// How many are so; of one name, one.
    pub count: Option<usize>,
}

/// What is wished of the Nodes of a workload cluster.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// Name of the Cluster.
    pub cluster: String,
    /// How many are so.
    pub count: usize,
    /// Labels that each of them has.
    #[serde(default)]
    pub labels: Vec<String>,
}

impl Wish {
    /// Whether it is so of all the objects of the kind.
    ///
    /// # Errors
    /// How many are so instead, and what those are like that are meant.
    pub fn judge(&self, all: &[Value]) -> Result<()> {
        let meant: Vec<&Value> = all.iter().filter(|object| self.is_meant(object)).collect();
        let found = meant.iter().filter(|object| self.is_so(object)).count();
        let wanted = self.count.unwrap_or(1);
        if found == wanted {
            return Ok(());
        }
        let shown: Vec<String> = meant.iter().map(|object| show(object)).collect();
        bail!("{found} of {} are so, not {wanted}:\n{}", meant.len(), shown.join("\n"));
    }

    fn is_meant(&self, object: &Value) -> bool {
        let cluster = text(object, "/metadata/labels/cluster.x-k8s.io~1cluster-name");
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        is(&self.name, text(object, "/metadata/name")) && is(&self.cluster, cluster)
    }

    fn is_so(&self, object: &Value) -> bool {
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

/// What a server may leave out as well as say.
fn is_empty(value: &Value) -> bool {
    value.as_str() == Some("")
}

impl Nodes {
    /// Whether it is so of all Nodes of the cluster. Only those count that say the ID of their machine.
    ///
    /// # Errors
    /// How many are so instead, and all of them.
    pub fn judge(&self, all: &[Value]) -> Result<()> {
        let labelled = |node: &Value, label: &String| {
            let labels = node.pointer("/metadata/labels");
            labels.is_some_and(|labels| labels.get(label).is_some())
        };
        let fits = |node: &&Value| {
            self.labels.iter().all(|label| labelled(node, label)) && !text(node, "/spec/providerID").is_empty()
        };
        let found = all.iter().filter(fits).count();
        ensure!(found == self.count, "{found} of {} Nodes are so: {all:#?}", all.len());
        Ok(())
    }
}

pub(crate) fn text<'a>(object: &'a Value, at: &str) -> &'a str {
    object.pointer(at).and_then(Value::as_str).unwrap_or_default()
}

/// An object, as far as a reader of a failure wants to see it.
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

    fn wish(text: &str) -> Wish {
        serde_saphyr::from_str(text).unwrap()
    }

    fn machine(name: &str, phase: &str, ready: &str) -> Value {
        json!({ "kind": "Machine", "metadata": { "name": name, "labels": { "cluster.x-k8s.io/cluster-name": "c" } },
            "status": { "phase": phase, "conditions": [{ "type": "Ready", "status": ready }] } })
    }

    #[test]
    fn as_many_are_so_as_are_wished_or_those_that_are_meant_are_shown() {
        let all = [machine("a", "Running", "True"), machine("b", "Pending", "False")];
        let holds = |text: &str| wish(text).judge(&all).map_err(|error| error.to_string());
        assert_eq!(holds("{ kind: Machine, count: 2 }"), Ok(()));
        assert_eq!(holds("{ kind: Machine, where: { /status/phase: Running } }"), Ok(()));
        assert_eq!(
            holds("{ kind: Machine, count: 1, condition: { Ready: \"True\" } }"),
            Ok(())
        );
        assert_eq!(holds("{ kind: Machine, count: 1, mentions: [Pending] }"), Ok(()));
        assert_eq!(holds("{ kind: Machine, cluster: other, count: 0 }"), Ok(()));
        let why = holds("{ kind: Machine, name: b, condition: { Ready: \"True\" } }").unwrap_err();
        assert!(why.contains("0 of 1 are so") && why.contains("Pending"), "{why}");
    }

    #[test]
    fn an_empty_text_and_none_are_the_same() {
        let wish = wish("{ kind: Machine, where: { /status/errorMessage: \"\" } }");
        assert!(wish.judge(&[json!({ "status": { "errorMessage": "" } })]).is_ok());
        assert!(wish.judge(&[json!({ "status": {} })]).is_ok());
        assert!(wish.judge(&[json!({ "status": { "errorMessage": "x" } })]).is_err());
    }

    #[test]
    fn nodes_without_an_id_do_not_count() {
        let wish: Nodes = serde_saphyr::from_str("{ cluster: c, count: 1, labels: [l] }").unwrap();
        let node = |id: &str| json!({ "metadata": { "labels": { "l": "" } }, "spec": { "providerID": id } });
        assert!(wish.judge(&[node("metal3://x"), node("")]).is_ok());
        assert!(wish.judge(&[node("")]).is_err());
    }
}
