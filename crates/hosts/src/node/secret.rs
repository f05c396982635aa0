//! Text values of Secrets. They are never logged.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;

use super::invalid_host::InvalidHost;

pub(super) type Values = BTreeMap<String, ByteString>;

const ANY: &str = "value";

/// The text under a key, or under `value`. `None`: neither key exists.
///
/// # Errors
/// When it is not UTF-8. `field` is the reference to the Secret.
pub(super) fn text<'a>(values: &'a Values, key: &str, field: &'static str) -> Result<Option<&'a str>, InvalidHost> {
    let found = values.get(key).or_else(|| values.get(ANY));
    found
        .map(|bytes| std::str::from_utf8(&bytes.0).map_err(|_| InvalidHost::NotText { field }))
        .transpose()
}
