//! What API servers answer and evaluate: versions, paths, managed fields, schemas, CEL and quantities.

use metal3_runtime::version::ResourceVersion;
use metal3_schema::{CustomResource, FieldSet, Schema};
use metal3_sim_cluster::Target as ApiPath;
use serde_json::{Value, json};

use crate::target::{Answer, Parse, Target, answers_alike, prints_what_it_reads, text};

static TARGETS: [Target; 6] = [
    Target::text(
        "resource-version",
        &["0", "1", "18446744073709551616"],
        version,
        prints_what_it_reads,
        &["99", "55"],
    ),
    Target::json(
        "managed-fields",
        FIELDS,
        field_set,
        prints_what_it_reads,
        &["k:{", "v:", "i:"],
    ),
    Target::json(
        "custom-resource",
        CRD,
        custom_resource,
        answers_alike,
        &["Webhook", "selectable_fields: [\"", "deprecated: true"],
    ),
    Target::json("cel", CEL, cel, answers_alike, &["valid", "size(", ".map("]),
    Target::text(
        "quantity",
        &["1", "Gi", "Ki", "m", "e3", "E", "n", ".5", "-", "+", "0"],
        quantity,
        quantity_equals_itself,
        &["-", "Ki"],
    ),
    Target::text(
        "api-path",
        &[
            "/api",
            "/apis",
            "/v1",
            "/metal3.io/v1alpha1",
            "/namespaces",
            "/b",
            "/baremetalhosts",
            "/a",
            "/status",
            "//",
        ],
        api_path,
        answers_alike,
        &["subresource: \"status\"", "group: \"metal3.io\""],
    ),
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

fn version(input: &[u8]) -> Answer {
    Answer::of(ResourceVersion::parse(&text(input)), |version| {
        version.as_str().to_owned()
    })
}

const FIELDS: &[&str] = &[
    "f:spec",
    "f:metadata",
    "f:a",
    ".",
    "k:{\"name\":\"a\"}",
    "k:{\"name\":1}",
    "v:\"a\"",
    "v:1",
    "i:0",
    "i:-1",
    "k:{}",
    "f:",
];

fn field_set(input: &[u8]) -> Answer {
    match serde_json::from_slice::<Value>(input) {
        Ok(value) => Answer::of(FieldSet::parse(&value), |set| set.to_value().to_string()),
        Err(error) => Answer::Rejected(error.to_string()),
    }
}

const CRD: &[&str] = &[
    "spec",
    "group",
    "names",
    "kind",
    "plural",
    "singular",
    "listKind",
    "scope",
    "Namespaced",
    "versions",
    "name",
    "v1",
    "served",
    "storage",
    "schema",
    "openAPIV3Schema",
    "type",
    "object",
    "string",
    "integer",
    "array",
    "items",
    "properties",
    "additionalProperties",
    "required",
    "enum",
    "default",
    "pattern",
    "^a+$",
    "(",
    "minimum",
    "maxLength",
    "nullable",
    "x-kubernetes-list-type",
    "map",
    "set",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
    "x-kubernetes-validations",
    "rule",
    "self.size() > 0",
    "deprecated",
    "conversion",
    "strategy",
    "Webhook",
    "None",
    "selectableFields",
    "jsonPath",
    ".spec.a",
    "additionalPrinterColumns",
    "subresources",
    "status",
    "scale",
];

/// A definition, and a value judged by it.
fn custom_resource(input: &[u8]) -> Answer {
    let value: Value = match serde_json::from_slice(input) {
        Ok(value) => value,
        Err(error) => return Answer::Rejected(error.to_string()),
    };
    Answer::of(CustomResource::parse(&value), |resource| {
        let mut object = json!({ "apiVersion": "example.org/v1", "kind": "A", "metadata": { "name": "a" }, "spec": { "a": [1, "x", null] } });
        let mut shown = format!("{:?} {}", resource.conversion, resource.violations().len());
        for version in &resource.versions {
            version.schema.prune(&mut object);
            version.schema.default(&mut object);
            let errors = resource.create_errors(version, &object).len();
            shown.push_str(&format!(
                " {} deprecated: {} selectable_fields: {:?} errors {errors}",
                version.name, version.deprecated, version.selectable_fields
            ));
        }
        shown
    })
}

const CEL: &[&str] = &[
    "rule",
    "self",
    "self.a",
    "self.b",
    "size(self.l)",
    "self.l.all(x, x > 0)",
    "self.l.exists(x, x == 1)",
    "self.l.map(x, x * 2)",
    " == ",
    " && ",
    " || ",
    "!",
    "has(self.a)",
    "1",
    "'x'",
    "true",
    "(",
    ")",
    "[",
    "]",
    ".matches('^a')",
    ".startsWith('x')",
    "oldSelf",
    "quantity(self.b)",
    "isIP(self.b)",
    "duration('1h')",
    " ? ",
    " : ",
    " + ",
    " / ",
    " % ",
    "0",
    "-9223372036854775808",
    "{",
    "}",
    "object",
    "a",
    "b",
    "l",
    "self.b.format([1])",
    "type(self)",
    "dyn(self)",
];

/// The member `rule` over the member `object`.
fn cel(input: &[u8]) -> Answer {
    let value: Value = match serde_json::from_slice(input) {
        Ok(value) => value,
        Err(error) => return Answer::Rejected(error.to_string()),
    };
    let rule = value.get("rule").and_then(Value::as_str).unwrap_or("true");
    let schema = Schema::parse(&json!({
        "type": "object", "x-kubernetes-validations": [{ "rule": rule }],
        "properties": {
            "a": { "type": "integer" }, "b": { "type": "string", "maxLength": 64 },
            "l": { "type": "array", "maxItems": 8, "items": { "type": "integer" } },
        },
    }));
    Answer::of(schema, |schema| {
        let object = value.get("object").cloned().unwrap_or(json!({}));
        let errors: Vec<String> = schema.validate(&object).iter().map(ToString::to_string).collect();
        if errors.is_empty() {
            format!("valid {rule} {object}")
        } else {
            errors.join("; ")
        }
    })
}

fn quantity_schema(rule: &str) -> Result<Schema, metal3_schema::SchemaError> {
    Schema::parse(&json!({ "type": "string", "x-kubernetes-validations": [{ "rule": rule }] }))
}

fn quantity(input: &[u8]) -> Answer {
    let text = text(input);
    match quantity_schema("isQuantity(self)") {
        Ok(schema) if schema.validate(&json!(text)).is_empty() => Answer::Accepted(text),
        Ok(_) => Answer::Rejected("no quantity".to_owned()),
        Err(error) => Answer::Rejected(error.to_string()),
    }
}

fn quantity_equals_itself(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Some(text) = answer.accepted() {
        let schema =
            quantity_schema("quantity(self).compareTo(quantity(self)) == 0").map_err(|error| error.to_string())?;
        if let Some(error) = schema.validate(&json!(text)).first() {
            return Err(format!("{text:?} differs from itself: {error}"));
        }
    }
    answers_alike(input, answer, parse)
}

fn api_path(input: &[u8]) -> Answer {
    Answer::some(ApiPath::parse(&text(input)), |path| format!("{path:?}"))
}
