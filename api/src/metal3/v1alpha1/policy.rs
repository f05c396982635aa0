//! Who may claim the hosts of a namespace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;

kind! {
    /// Opens the hosts of its namespace to the HostClaims of namespaces. Without one, no claim gets a host.
    pub struct HostDeployPolicy in "metal3.io" / "v1alpha1" as "hostdeploypolicies" {
        spec: HostDeployPolicySpec,
        status: HostDeployPolicyStatus,
    }
}

/// Who may claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostDeployPolicySpec {
    /// Namespaces whose claims are accepted. Absent: none. Present and empty: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_claim_namespaces: Option<HostClaimNamespaces>,
    /// Labels and annotations of a host that the HardwareData of a claimed host gets. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata_copy: Option<MetadataCopy>,
}

/// Which labels and annotations of a host are copied to its HardwareData, which tenants may read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataCopy {
    /// Regular expression that the key of a label must match as a whole. Absent: no label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels_match: Option<String>,
    /// Regular expression that the key of an annotation must match as a whole. Absent: no annotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations_match: Option<String>,
}

/// Conditions on the namespace of a claim. All that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostClaimNamespaces {
    /// Namespaces by name. Present and empty: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Vec<String>>,
    /// Regular expression that the name must match as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_matches: Option<String>,
    /// Labels the namespace must carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub has_labels: Vec<NamespaceLabel>,
}

/// A label of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceLabel {
    /// Name of the label.
    pub name: String,
    /// Value it must have. Absent or empty: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Nothing is reported here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostDeployPolicyStatus {}
