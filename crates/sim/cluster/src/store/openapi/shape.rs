//! The published schema of a built-in kind as a structural one, by which its objects are decoded and their managers are known.

use metal3_schema::Schema;
use serde_json::{Map, Value, json};

use super::published::{REFERENCE, SCHEMAS, built_in};

/// Keywords that a structural schema has too.
const KEPT: [&str; 4] = [
    "type",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// The structural schema of a kind; `None` if none is published.
pub(in crate::store) fn shape(group: &str, kind: &str) -> Option<Schema> {
    let (_, schema) = built_in(group, kind)?;
    let mut schema = structural(schema);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        // Type and metadata are the same for all kinds.
        for name in ["apiVersion", "kind", "metadata"] {
            properties.remove(name);
        }
    }
    Schema::parse(&schema).ok()
}

fn structural(schema: &Value) -> Value {
    if let Some(name) = reference(schema) {
        return match name.rsplit('.').next().unwrap_or_default() {
            "IntOrString" | "Quantity" => json!({ "x-kubernetes-int-or-string": true }),
            "Time" | "MicroTime" => json!({ "type": "string", "nullable": true }),
            "JSON" => json!({ "x-kubernetes-preserve-unknown-fields": true }),
            "ObjectMeta" | "JSONSchemaProps" => {
                json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
            }
            _ => SCHEMAS.get(name).map(structural).unwrap_or_else(|| json!({})),
        };
    }
    let Value::Object(members) = schema else {
        return json!({});
    };
    let mut kept: Map<String, Value> = KEPT
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone())))
        .collect();
    if let Some(Value::Object(properties)) = members.get("properties") {
        let inner = |(name, schema): (&String, &Value)| (name.clone(), structural(schema));
        kept.insert("properties".to_owned(), properties.iter().map(inner).collect());
    } else if let Some(inner) = members.get("additionalProperties") {
        kept.insert("additionalProperties".to_owned(), structural(inner));
    } else if members.get("type") == Some(&json!("object")) {
        kept.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
    }
    if let Some(inner) = members.get("items") {
        kept.insert("items".to_owned(), structural(inner));
        kept.entry("x-kubernetes-list-type").or_insert_with(|| "atomic".into());
    }
    // The other defaults are those of absent members.
    if let Some(default) = members.get("default").filter(|default| **default == "TCP") {
        kept.insert("default".to_owned(), default.clone());
    }
    kept.into()
}

/// The name of the schema that stands for this one.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    let own = schema.get("$ref");
    let named = own.or_else(|| schema.pointer("/allOf/0/$ref"))?;
    named.as_str()?.strip_prefix(REFERENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Group and kind of the published kinds.
    fn published() -> impl Iterator<Item = (&'static str, &'static str)> {
        SCHEMAS.values().filter_map(|schema| {
            let named = schema.pointer("/x-kubernetes-group-version-kind/0")?;
            Some((named.get("group")?.as_str()?, named.get("kind")?.as_str()?))
        })
    }

    #[test]
    fn each_published_kind_has_a_shape_that_finds_unknown_fields() {
        for (group, kind) in published() {
            let shape = shape(group, kind).unwrap();
            let mut body = json!({ "nosuchfield": 1 });
            assert_eq!(shape.prune(&mut body), ["nosuchfield"], "{kind}");
        }
    }

    #[test]
    fn ports_are_found_in_depth() {
        let shape = shape("apps", "Deployment").unwrap();
        let container = json!({ "name": "a", "ports": [{ "containerPort": 80, "hostport": 1 }] });
        let mut body = json!({ "spec": { "template": { "spec": { "containers": [container] } } } });
        assert_eq!(
            shape.prune(&mut body),
            ["spec.template.spec.containers[0].ports[0].hostport"]
        );
        shape.default(&mut body);
        assert_eq!(
            body["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"],
            "TCP"
        );
    }
}
