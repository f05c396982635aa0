//! Label selectors for the hosts of a machine or claim.
//!
//! Operators are those of Kubernetes, regardless of case: `In`, `in`, `=`, `!=`, `Exists`, `!`, `Gt` and so on;
//! `DoesNotExist` means `!`, which the Go manager rejects. A selector without requirements matches everything.

mod syntax;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use thiserror::Error;

pub use syntax::{LabelError, check_key, check_value};

/// A selector whose requirements are all valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    test: Test,
}

/// A requirement that is not satisfied, for messages.
#[derive(Debug, Clone, Copy)]
pub struct Mismatch<'a>(&'a Requirement);

/// Values in a message.
const MOST_VALUES: usize = 3;

/// The condition on a label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    GreaterThan(i64),
    LessThan(i64),
}

/// What the labels of an object are that does not satisfy it: `label rack is not a`.
impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Requirement { key, test } = self.0;
        match test {
            Test::In(values) if values.len() == 1 => write!(f, "label {key} is not {}", Values(values)),
            Test::In(values) => write!(f, "label {key} is none of {}", Values(values)),
            Test::NotIn(values) if values.len() == 1 => write!(f, "label {key} is {}", Values(values)),
            Test::NotIn(values) => write!(f, "label {key} is one of {}", Values(values)),
            Test::Exists => write!(f, "label {key} is missing"),
            Test::Absent => write!(f, "label {key} is set"),
            Test::GreaterThan(bound) => write!(f, "label {key} is no number above {bound}"),
            Test::LessThan(bound) => write!(f, "label {key} is no number below {bound}"),
        }
    }
}

/// The first values: a user decides how many there are.
struct Values<'a>(&'a BTreeSet<String>);

impl fmt::Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<&str> = self.0.iter().take(MOST_VALUES).map(String::as_str).collect();
        f.write_str(&first.join(", "))?;
        match self.0.len().saturating_sub(MOST_VALUES) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// An expression as written in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expression<'a> {
    /// The label's key.
    pub key: &'a str,
    /// The operator, in any case.
    pub operator: &'a str,
    /// The values.
    pub values: &'a [String],
}

/// Why a selector is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectorError {
    /// The key is no label key.
    #[error("the label key {key:?} is invalid: {error}")]
    Key {
        /// The key.
        key: String,
        /// What is wrong with it.
        error: LabelError,
    },
    /// A value is no label value.
    #[error("the value {value:?} of label {key:?} is invalid: {error}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is wrong with it.
        error: LabelError,
    },
    /// The operator is unknown.
    #[error(
        "the operator {operator:?} of label {key:?} is unknown; use In, NotIn, Exists, DoesNotExist, =, ==, !=, !, Gt or Lt"
    )]
    Operator {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
    /// Too few or too many values for the operator.
    #[error("the operator {operator:?} of label {key:?} has {found} values; give it {wanted}")]
    Arity {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
        /// How many values there are.
        found: usize,
        /// How many there should be.
        wanted: &'static str,
    },
    /// A value to compare with that is no number.
    #[error("the operator {operator:?} of label {key:?} compares numbers; give it one integer")]
    Number {
        /// The key.
        key: String,
        /// The operator.
        operator: String,
    },
}

impl Selector {
    /// Reads a selector: every pair of `labels` must be equal and every expression hold.
    ///
    /// # Errors
    /// The first key, operator or value that is invalid, the pairs before the expressions.
    pub fn parse<'a>(
        labels: &BTreeMap<String, String>,
        expressions: impl IntoIterator<Item = Expression<'a>>,
    ) -> Result<Self, SelectorError> {
        let pairs = labels.iter().map(|(key, value)| Requirement::equal(key, value));
        let expressions = expressions
            .into_iter()
            .map(|expression| Requirement::parse(&expression));
        Ok(Self {
            requirements: pairs.chain(expressions).collect::<Result<_, _>>()?,
        })
    }

    /// Whether an object with these labels is selected.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// The first requirement that these labels do not satisfy.
    #[must_use]
    pub fn mismatch(&self, labels: &BTreeMap<String, String>) -> Option<&Requirement> {
        self.requirements
            .iter()
            .find(|requirement| !requirement.matches(labels))
    }

    /// The requirements, pairs before expressions.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl Requirement {
    /// The key of the label.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// For a message about labels that do not satisfy it.
    #[must_use]
    pub const fn mismatch(&self) -> Mismatch<'_> {
        Mismatch(self)
    }

    /// Reads one expression.
    ///
    /// # Errors
    /// When key, operator, number of values or a value is invalid.
    pub fn parse(expression: &Expression<'_>) -> Result<Self, SelectorError> {
        let test = Test::parse(expression)?;
        check_key(expression.key).map_err(|error| SelectorError::Key {
            key: expression.key.to_owned(),
            error,
        })?;
        for value in expression.values {
            check_value(value).map_err(|error| SelectorError::Value {
                key: expression.key.to_owned(),
                value: value.clone(),
                error,
            })?;
        }
        Ok(Self {
            key: expression.key.to_owned(),
            test,
        })
    }

    /// Whether these labels satisfy it. An absent label satisfies the negative conditions only.
    #[must_use]
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Test::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }

    fn equal(key: &str, value: &str) -> Result<Self, SelectorError> {
        Self::parse(&Expression {
            key,
            operator: "=",
            values: &[value.to_owned()],
        })
    }
}

impl Test {
    fn parse(expression: &Expression<'_>) -> Result<Self, SelectorError> {
        let values = expression.values;
        let arity = |holds: bool, wanted: &'static str| {
            let (key, operator) = (expression.key.to_owned(), expression.operator.to_owned());
            if holds {
                Ok(())
            } else {
                Err(SelectorError::Arity {
                    key,
                    operator,
                    found: values.len(),
                    wanted,
                })
            }
        };
        let set = || values.iter().cloned().collect();
        let operator = expression.operator.to_lowercase();
        match operator.as_str() {
            "in" => arity(!values.is_empty(), "at least one").map(|()| Self::In(set())),
            "notin" => arity(!values.is_empty(), "at least one").map(|()| Self::NotIn(set())),
            "=" | "==" => arity(values.len() == 1, "exactly one").map(|()| Self::In(set())),
            "!=" => arity(values.len() == 1, "exactly one").map(|()| Self::NotIn(set())),
            "exists" => arity(values.is_empty(), "none").map(|()| Self::Exists),
            // differs (`selector-does-not-exist`): the Go manager accepts only `!`.
            "!" | "doesnotexist" => arity(values.is_empty(), "none").map(|()| Self::Absent),
            "gt" => Self::bound(expression).map(Self::GreaterThan),
            "lt" => Self::bound(expression).map(Self::LessThan),
            _ => Err(SelectorError::Operator {
                key: expression.key.to_owned(),
                operator: expression.operator.to_owned(),
            }),
        }
    }

    fn bound(expression: &Expression<'_>) -> Result<i64, SelectorError> {
        let number = match expression.values {
            [value] => value.parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| SelectorError::Number {
            key: expression.key.to_owned(),
            operator: expression.operator.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
