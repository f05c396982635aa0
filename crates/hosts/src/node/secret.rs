//! Values of Secrets as text. None of them is ever shown.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

use super::Refusal;

/// The values of a Secret.
pub(super) type Values = BTreeMap<String, ByteString>;

/// The key that stands for any other.
const ANY: &str = "value";

/// The text under a key, or under `value`. `None`: it is under neither.
///
/// # Errors
/// When it is no text. `field` is the reference to the Secret.
pub(super) fn text<'a>(values: &'a Values, key: &str, field: &'static str) -> Result<Option<&'a str>, Refusal> {
    let found = values.get(key).or_else(|| values.get(ANY));
    found
        .map(|bytes| std::str::from_utf8(&bytes.0).map_err(|_| Refusal::NotText { field }))
        .transpose()
}
