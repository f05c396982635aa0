//! How a change of an object is said to the server, and of which version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_runtime::patch::Changes;
use metal3_runtime::version::ResourceVersion;
use serde::Serialize;
use serde_json::Value;

/// What changed between two forms of one object. One that cannot be written at all has not changed.
pub(crate) fn changes<K: Serialize>(before: &K, after: &K) -> Changes {
    let document = |object: &K| serde_json::to_value(object).unwrap_or(Value::Null);
    Changes::between(&document(before), &document(after))
}

/// The version of an object that was stored.
pub(crate) fn version(metadata: &ObjectMeta) -> Option<ResourceVersion> {
    ResourceVersion::parse(metadata.resource_version.as_deref()?).ok()
}
