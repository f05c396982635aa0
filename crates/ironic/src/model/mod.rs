//! Ironic's responses, as far as the provider reads them.
//!
//! Decoding is lenient: a missing, null or empty field is absent, an unknown state keeps its text, unknown fields are
//! ignored. An unreadable node does not hide the others of its page.

pub mod hardware;
pub mod inventory;
pub mod node;
pub mod page;
pub mod port;
pub mod service;
pub mod state;

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A free-form map. It may contain secrets (Ironic masks those it knows): `Debug` shows the keys only.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Fields(#[serde(deserialize_with = "null_is_default")] pub Map<String, Value>);

impl Fields {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The value of a key that is text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Missing, null and empty text mean the same.
pub(crate) fn blank_is_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(from)?.filter(|text| !text.is_empty()))
}

/// Null means the default.
pub(crate) fn null_is_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}
