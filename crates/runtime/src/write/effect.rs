//! A write as a value, safe to log.

use std::fmt;

use kube_core::Resource;
use metal3_domain::uri;
use serde_json::{Map, Value};

use crate::access::{Permission, Verb};
use crate::cache::Key;

/// One write, without secret values.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// `create`, `patch` or `delete`.
    pub verb: &'static str,
    /// API group; empty for the core group.
    pub group: String,
    /// As rules name it: `ippools`, `ippools/status`.
    pub resource: String,
    /// The object.
    pub object: Key,
    /// What is sent. Without the values of Secrets.
    pub body: Value,
}

impl Effect {
    pub(super) fn of<V: Verb, K: Resource<DynamicType = ()>>(object: &Key, body: &Value) -> Self {
        let need = Permission::of::<V, K>();
        Self {
            verb: V::NAME,
            resource: need.path(),
            object: object.clone(),
            body: redacted(&need.group, &need.resource, body),
            group: need.group,
        }
    }

    /// One log line: the output of a dry run.
    pub(super) fn log(&self, role: &'static str) {
        tracing::info!(
            target: "metal3::effect",
            role,
            verb = self.verb,
            group = %self.group,
            resource = %self.resource,
            namespace = %self.object.namespace,
            name = %self.object.name,
            body = %self.body,
            "not performed"
        );
    }
}

/// In lower case, for errors: `patch ippools ns/name`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb, self.resource, self.object)
    }
}

/// The fields of a Secret that contain no secret.
const PUBLIC_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "type"];

/// `body`, with every value of a Secret replaced, annotations included: tools copy whole objects there. In other objects
/// the logins of URLs are hidden.
fn redacted(group: &str, resource: &str, body: &Value) -> Value {
    match body {
        Value::Object(members) if group.is_empty() && resource == "secrets" => {
            let hide = |(name, value): (&String, &Value)| {
                let value = match name.as_str() {
                    "metadata" => without_annotations(value),
                    field if PUBLIC_FIELDS.contains(&field) => value.clone(),
                    _ => without_values(value),
                };
                (name.clone(), value)
            };
            Value::Object(members.iter().map(hide).collect())
        }
        _ => without_logins(body),
    }
}

/// The same with the logins of URLs hidden.
fn without_logins(value: &Value) -> Value {
    match value {
        Value::String(text) => uri::without_logins(text).into(),
        Value::Array(items) => items.iter().map(without_logins).collect(),
        Value::Object(members) => {
            let hide = |(name, value): (&String, &Value)| (name.clone(), without_logins(value));
            Value::Object(members.iter().map(hide).collect::<Map<_, _>>())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn without_annotations(metadata: &Value) -> Value {
    let mut metadata = metadata.clone();
    if let Some(annotations) = metadata.get_mut("annotations") {
        *annotations = without_values(annotations);
    }
    metadata
}

/// The same keys without values. A null stays: it removes a field.
fn without_values(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Object(members) => {
            let hide = |(name, value): (&String, &Value)| (name.clone(), without_values(value));
            Value::Object(members.iter().map(hide).collect::<Map<_, _>>())
        }
        _ => "***".into(),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use serde_json::json;

    use super::*;
    use crate::access::verb;

    fn key() -> Key {
        Key {
            namespace: "ns".to_owned(),
            name: "a".to_owned(),
        }
    }

    #[test]
    fn dry_run_hides_the_login_of_a_url() {
        let body = json!({ "data": { "image": { "url": "https://u:hunter2@h/i.raw" }, "more": ["ftp://u:p@h/", 1] } });
        let effect = Effect::of::<verb::Patch, ConfigMap>(&key(), &body);
        let shown = json!({ "data": { "image": { "url": "https://***@h/i.raw" }, "more": ["ftp://***@h/", 1] } });
        assert_eq!(effect.body, shown);
    }

    #[test]
    fn values_of_secrets_are_hidden_and_their_names_are_not() {
        let body = json!({
            "metadata": {"name": "a", "annotations": {"copy": "hunter2"}},
            "type": "Opaque",
            "data": {"password": "hunter2", "old": null},
            "stringData": {"user": "hunter2"},
            "immutable": true,
        });
        let effect = Effect::of::<verb::Create, Secret>(&key(), &body);
        let expected = json!({
            "metadata": {"name": "a", "annotations": {"copy": "***"}},
            "type": "Opaque",
            "data": {"password": "***", "old": null},
            "stringData": {"user": "***"},
            "immutable": "***",
        });
        assert_eq!(effect.body, expected);
    }

    #[test]
    fn effects_of_other_kinds_are_shown_whole() {
        let body = json!({"data": {"k": "v"}});
        let effect = Effect::of::<verb::PatchStatus, ConfigMap>(&key(), &body);
        assert_eq!(effect.body, body);
        assert_eq!(effect.to_string(), "patch configmaps/status ns/a");
    }
}
