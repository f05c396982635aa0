//! Path elements: a property, an item of a list by key or by value, or an item by position.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use crate::golang;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A property or an entry of a map.
    Field(Box<str>),
    /// The item of a list with these keys, sorted by name.
    Key(Box<[(Box<str>, Scalar)]>),
    /// The item of a set.
    Item(Scalar),
    /// The item at a position.
    Index(usize),
}

/// A value with the ordering and equality of the API server: numbers compare by value.
#[derive(Debug, Clone)]
pub struct Scalar(pub(super) Value);

impl Element {
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Parses a key of `fieldsV1`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::field(rest)),
            "v" => Some(Self::Item(Scalar(serde_json::from_str(rest).ok()?))),
            "i" => Some(Self::Index(rest.parse().ok()?)),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Self::keys(keys))
            }
            _ => None,
        }
    }

    pub(super) fn keys(keys: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut keys: Vec<(Box<str>, Scalar)> = keys
            .into_iter()
            .map(|(name, value)| (name.into_boxed_str(), Scalar(value)))
            .collect();
        keys.sort();
        Self::Key(keys.into_boxed_slice())
    }

    /// The key in `fieldsV1`.
    pub(super) fn encoded(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let keys: Map<String, Value> = keys
                    .iter()
                    .map(|(name, value)| (name.to_string(), value.0.clone()))
                    .collect();
                format!("k:{}", Value::Object(keys))
            }
            Self::Item(value) => format!("v:{}", value.0),
            Self::Index(index) => format!("i:{index}"),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", keys.join(","))
            }
            Self::Item(value) => write!(f, "[={value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(&golang::quote(text)),
            other => write!(f, "{other}"),
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |value: &Value| match value {
            Value::Number(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        };
        match (&self.0, &other.0) {
            (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
                (Some(one), Some(other)) => one.cmp(&other),
                _ => one
                    .as_f64()
                    .unwrap_or_default()
                    .total_cmp(&other.as_f64().unwrap_or_default()),
            },
            (Value::String(one), Value::String(other)) => one.cmp(other),
            (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
            (one, other) => rank(one)
                .cmp(&rank(other))
                .then_with(|| one.to_string().cmp(&other.to_string())),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_ordered_by_kind_and_value() {
        let rising = [
            json!(-1.5),
            json!(1),
            json!(9_007_199_254_740_992_i64),
            json!(9_007_199_254_740_993_i64),
            json!("a"),
            json!("b"),
            json!(false),
            json!(true),
            json!([]),
            json!({}),
            json!(null),
        ]
        .map(Scalar);
        for pair in rising.windows(2) {
            let (one, other) = (&pair[0], &pair[1]);
            assert_eq!(one.partial_cmp(other), Some(Ordering::Less), "{one} {other}");
            assert_eq!(other.cmp(one), Ordering::Greater, "{one} {other}");
        }
        assert_eq!(Scalar(json!(1)), Scalar(json!(1.0)));
    }
}
