//! A claim on a host for a workload, independent of who owns the hosts.

use std::collections::BTreeMap;

use metal3_domain::selector::{Expression, Selector, SelectorError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CustomDeploy, Image};
use crate::kind::kind;
use crate::meta::{Condition, ObjectReference, SecretReference, Time};

kind! {
    /// A request for a host and its workload, without access to the host's BMC and its credentials.
    pub struct HostClaim in "metal3.io" / "v1alpha1" as "hostclaims" {
        spec: HostClaimSpec,
        status: HostClaimStatus,
    }
}

/// The requested host and its workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostClaimSpec {
    /// Whether the host should be powered on.
    pub powered_on: bool,
    /// Image to deploy. Removed: the host is cleaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Deployment that is not the writing of an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_deploy: Option<CustomDeploy>,
    /// Secret with the first-boot configuration, such as cloud-init or Ignition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<SecretReference>,
    /// Secret with the network configuration of the operating system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
    /// Secret with the metadata of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// Who uses the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer_ref: Option<ObjectReference>,
    /// Failure domain that is preferred. If none of its hosts is free, any host will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Which hosts will do. Absent: any that a policy opens to this namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_selector: Option<HostSelector>,
}

/// Which hosts will do. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSelector {
    /// Labels the host must carry with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<HostSelectorRequirement>,
    /// The only namespace of eligible hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_namespace: Option<String>,
}

impl HostSelector {
    /// Parses the conditions for matching the labels of a host.
    ///
    /// # Errors
    /// The first condition that cannot be read.
    pub fn parse(&self) -> Result<Selector, SelectorError> {
        let expressions = self.match_expressions.iter().map(|expression| Expression {
            key: &expression.key,
            operator: &expression.operator,
            values: &expression.values,
        });
        Selector::parse(&self.match_labels, expressions)
    }
}

/// A condition on one label.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostSelectorRequirement {
    /// Label the condition is about.
    pub key: String,
    /// `=`, `==` or `!=` with one value, `in` or `notin` with some, `exists` or `!` with none.
    pub operator: String,
    /// Values it is compared with. The list must be written even if it is empty.
    pub values: Vec<String>,
}

/// The host found. Every member may be absent: the implementation that serves the hosts may not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostClaimStatus {
    /// The host that is bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_metal_host: Option<ClaimedObject>,
    /// What is known about its hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware_data: Option<ClaimedObject>,
    /// Whether the host is powered on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub powered_on: Option<bool>,
    /// When this was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<Time>,
    /// `Ready`, `Associated`, `Synchronized`, `Provisioned` and `AvailableForProvisioning`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// An object in the namespace of the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedObject {
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn host_is_selected_when_labels_and_expressions_hold() {
        let selector: HostSelector = serde_json::from_value(json!({
            "matchLabels": { "size": "large" },
            "matchExpressions": [{ "key": "gpu", "operator": "exists", "values": [] }],
        }))
        .unwrap();
        let labels = |pairs: &[(&str, &str)]| {
            let owned = pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            owned.collect::<BTreeMap<_, _>>()
        };
        let selector = selector.parse().unwrap();
        assert!(selector.matches(&labels(&[("size", "large"), ("gpu", "")])));
        assert!(!selector.matches(&labels(&[("size", "large")])));
        assert!(!selector.matches(&labels(&[("size", "small"), ("gpu", "")])));
    }

    #[test]
    fn selector_that_cannot_be_read_selects_nothing() {
        let selector: HostSelector = serde_json::from_value(json!({
            "matchExpressions": [{ "key": "gpu", "operator": "near", "values": [] }],
        }))
        .unwrap();
        assert!(selector.parse().is_err());
    }
}
