//! Merge patches between two states of an object, and its resource version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_runtime::patch::Changes;
use metal3_runtime::version::ResourceVersion;
use serde::Serialize;
use serde_json::Value;

/// The changes between two states of an object. An object that cannot be serialized has no changes.
pub(crate) fn changes<K: Serialize>(before: &K, after: &K) -> Changes {
    let document = |object: &K| serde_json::to_value(object).unwrap_or(Value::Null);
    Changes::between(&document(before), &document(after))
}

/// The resource version of a stored object.
pub(crate) fn version(metadata: &ObjectMeta) -> Option<ResourceVersion> {
    ResourceVersion::parse(metadata.resource_version.as_deref()?).ok()
}
