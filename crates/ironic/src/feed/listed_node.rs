//! A node of a list, with a fingerprint of its record.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::model::node::Node;

/// A node of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNode {
    /// The node.
    pub node: Node,
    /// A hash of the whole record, unknown fields included. The time alone does not distinguish two records: some
    /// databases keep whole seconds.
    pub fingerprint: u64,
}

impl<'de> Deserialize<'de> for ListedNode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let record = Value::deserialize(from)?;
        let mut hasher = DefaultHasher::new();
        // Maps are ordered by key, so equal records have equal text.
        record.to_string().hash(&mut hasher);
        let node = serde_json::from_value(record).map_err(serde::de::Error::custom)?;
        Ok(Self {
            node,
            fingerprint: hasher.finish(),
        })
    }
}
