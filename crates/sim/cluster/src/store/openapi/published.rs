//! The published schemas of built-in kinds.

use std::sync::LazyLock;

use serde_json::{Map, Value};

/// Recorded from a real server.
const RECORDED: &str = include_str!("../../../openapi/schemas.json");
/// The start of a reference to another schema.
pub(super) const REFERENCE: &str = "#/components/schemas/";

/// The schemas of built-in kinds.
pub(super) static SCHEMAS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(RECORDED).unwrap_or_default());

/// The name and the schema of a built-in kind.
pub(super) fn built_in(group: &str, kind: &str) -> Option<(&'static str, &'static Value)> {
    let named = |schema: &Value| {
        let named = schema.pointer("/x-kubernetes-group-version-kind/0")?;
        Some(named.get("group")? == group && named.get("kind")? == kind)
    };
    let mut found = SCHEMAS.iter().filter(|(_, schema)| named(schema) == Some(true));
    found.next().map(|(name, schema)| (name.as_str(), schema))
}
