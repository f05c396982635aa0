//! The matrix, one file for each verb.

mod apply;
mod apply_refused;
mod clients;
mod conversion;
mod create;
mod decoding;
mod definitions;
mod delete;
mod kinds;
mod owners;
mod patch;
mod read;
mod update;
mod watch;
mod workloads;

use serde_json::{Value, json};

use super::Claim;
pub(super) use conversion::{
    DEFINITION as CONVERTED_DEFINITION, GROUP as CONVERTED_GROUP, WHEEL, definition as converted_definition,
};

pub(super) const GROUP: &str = "conformance.metal3.io";
pub(super) const DEFINITION: &str = "widgets.conformance.metal3.io";
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Rows of the matrix: `verb, feature, sentence => function`.
macro_rules! rows {
    ($($verb:literal, $feature:literal, $text:literal => $check:path;)+) => {
        vec![$($crate::Claim {
            verb: $verb,
            feature: $feature,
            text: $text,
            check: |subject| Box::pin($check(subject)),
        }),+]
    };
}
use rows;

pub(super) fn all() -> Vec<Claim> {
    [
        create::rows(),
        read::rows(),
        update::rows(),
        patch::rows(),
        clients::rows(),
        apply::rows(),
        apply_refused::rows(),
        owners::rows(),
        delete::rows(),
        watch::rows(),
        kinds::rows(),
        workloads::rows(),
        decoding::rows(),
        definitions::rows(),
        conversion::rows(),
    ]
    .concat()
}

/// The CRD of the suite.
pub(super) fn definition() -> Value {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1},
                    "colour": {"type": "string", "default": "red"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "roles": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
                        },
                    },
                    "notes": {"type": "object", "additionalProperties": {"type": "string"}},
                    "pair": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "properties": {"left": {"type": "string"}, "right": {"type": "string"}},
                    },
                },
            },
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// A valid widget.
pub(super) fn widget(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "metadata": {"name": name}, "spec": {"size": 1},
    })
}

/// A widget with additional metadata.
fn widget_with(name: &str, metadata: Value) -> Value {
    let mut widget = widget(name);
    if let (Some(Value::Object(target)), Value::Object(more)) = (widget.get_mut("metadata"), metadata) {
        target.extend(more);
    }
    widget
}
