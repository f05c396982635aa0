//! Ironic's responses, as far as the provider reads them.
//!
//! Decoding is lenient: a missing, null or empty field is absent, an unknown state keeps its text, unknown fields are
//! ignored. An unreadable node does not hide the others of its page.

/// Declares parts of a response. A field that is missing, null or empty text is absent, unless it is required.
macro_rules! lenient {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(required { $($(#[$required_doc:meta])* pub $required:ident: $required_type:ty,)* })?
            $($(#[$doc:meta])* pub $field:ident: $type:ty,)*
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
        pub struct $name {
            $($($(#[$required_doc])* pub $required: $required_type,)*)?
            $($(#[$doc])* #[serde(default, deserialize_with = "crate::model::absent_or")] pub $field: $type,)*
        }
    )+};
}

/// Declares types of fields whose text, if any, has a meaning even when it is empty.
macro_rules! never_blank {
    ($($type:ty),+ $(,)?) => { $(impl crate::model::Absent for $type {})+ };
}

pub mod hardware;
pub mod inventory;
pub mod node;
pub mod page;
pub mod port;
pub mod service;
pub mod state;

use std::fmt;

use chrono::{DateTime, Utc};
use metal3_domain::ids::NodeUuid;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A free-form map. It may contain secrets (Ironic masks those it knows): `Debug` shows the keys only.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Fields(pub Map<String, Value>);

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

/// The type of a field that may be absent: null gives the default.
trait Absent: Default {
    /// The value, unless it is empty text.
    #[must_use]
    fn unless_blank(self) -> Self {
        self
    }
}

never_blank!(
    bool,
    Value,
    Fields,
    Option<i64>,
    Option<bool>,
    Option<DateTime<Utc>>,
    Option<NodeUuid>
);

impl<T> Absent for Vec<T> {}

impl Absent for Option<String> {
    fn unless_blank(self) -> Self {
        self.filter(|text| !text.is_empty())
    }
}

fn absent_or<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Absent + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default().unless_blank())
}
