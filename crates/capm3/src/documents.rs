//! How a change of an object is said to the server.

use metal3_runtime::patch::Changes;
use serde::Serialize;
use serde_json::Value;

/// What changed between two forms of one object. One that cannot be written at all has not changed.
pub(crate) fn changes<K: Serialize>(before: &K, after: &K) -> Changes {
    let document = |object: &K| serde_json::to_value(object).unwrap_or(Value::Null);
    Changes::between(&document(before), &document(after))
}
