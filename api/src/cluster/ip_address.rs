//! The general claims on addresses, and the addresses granted. The provider reads and writes both.

use serde::{Deserialize, Serialize};

use super::reference::{ContractReference, DeprecatedStatus};
use crate::kind::kind;
use crate::meta::Condition;

kind! {
    /// A request for one address of a pool of any kind.
    pub struct IPAddressClaim in "ipam.cluster.x-k8s.io" / "v1beta2" as "ipaddressclaims" {
        spec: IPAddressClaimSpec,
        status: IPAddressClaimStatus,
    }
}

kind! {
    /// One address granted to one claim.
    pub struct IPAddress in "ipam.cluster.x-k8s.io" / "v1beta2" as "ipaddresses" {
        spec: IPAddressSpec,
    }
}

/// Desired state of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressClaimSpec {
    /// Name of the Cluster the claim belongs to. The claim pauses with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// The pool.
    #[serde(default)]
    pub pool_ref: ContractReference,
}

/// What was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressClaimStatus {
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The address that was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_ref: Option<AddressName>,
    /// Status in the form of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<DeprecatedStatus>,
}

/// Name of a claim or an address in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AddressName {
    /// Name of the object.
    #[serde(default)]
    pub name: String,
}

/// The grant. It is never changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IPAddressSpec {
    /// The claim that holds the address.
    #[serde(default)]
    pub claim_ref: AddressName,
    /// The pool it comes from.
    #[serde(default)]
    pub pool_ref: ContractReference,
    /// The address.
    #[serde(default)]
    pub address: String,
    /// Prefix length of the network it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<i32>,
    /// Gateway of that network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}
