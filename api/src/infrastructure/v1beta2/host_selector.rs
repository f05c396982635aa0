//! Which hosts a machine may take.

use std::collections::BTreeMap;

use metal3_domain::selector::{Expression, Selector, SelectorError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Conditions on the labels of a host. All must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSelector {
    /// Labels the host must carry with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions, at most one for each label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 1, max = 512),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"])
    )]
    pub match_expressions: Vec<HostSelectorRequirement>,
    /// Namespace of the hosts, when they are bound through claims. Absent: the namespace of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub in_namespace: Option<String>,
}

impl HostSelector {
    /// The selector of labels.
    ///
    /// # Errors
    /// When a key, an operator or a value is invalid.
    pub fn labels(&self) -> Result<Selector, SelectorError> {
        let expressions = self.match_expressions.iter().map(|requirement| Expression {
            key: &requirement.key,
            operator: &requirement.operator,
            values: &requirement.values,
        });
        Selector::parse(&self.match_labels, expressions)
    }

    /// Whether it has a condition.
    #[must_use]
    pub fn selects(&self) -> bool {
        !self.match_labels.is_empty() || !self.match_expressions.is_empty()
    }
}

/// A condition on one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSelectorRequirement {
    /// Key of the label.
    #[schemars(length(min = 1, max = 512))]
    pub key: String,
    /// `in`, `notin`, `exists`, `!` and the other operators of label selectors.
    pub operator: String,
    /// Values the operator works on. Empty for operators without.
    #[schemars(length(max = 512), inner(length(max = 512)), extend("x-kubernetes-list-type" = "set"))]
    pub values: Vec<String>,
}
