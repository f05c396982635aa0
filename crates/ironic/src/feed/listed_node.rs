//! One node in one listing, with a mark that tells its record from an earlier one.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::model::node::Node;

/// A node as a listing shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNode {
    /// The node.
    pub node: Node,
    /// A hash of the whole record, fields that we do not read included. Time alone does not tell two records apart:
    /// some databases keep whole seconds.
    pub fingerprint: u64,
}

impl<'de> Deserialize<'de> for ListedNode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let record = Value::deserialize(from)?;
        let mut hasher = DefaultHasher::new();
        // Maps are ordered by key, so one record has one spelling.
        record.to_string().hash(&mut hasher);
        let node = serde_json::from_value(record).map_err(serde::de::Error::custom)?;
        Ok(Self {
            node,
            fingerprint: hasher.finish(),
        })
    }
}
