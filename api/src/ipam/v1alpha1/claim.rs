//! A claim: one address of one pool, please.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::{Condition, ObjectReference};

kind! {
    /// A request for one address of a pool.
    pub struct IPClaim in "ipam.metal3.io" / "v1alpha1" as "ipclaims" {
        spec: IPClaimSpec,
        status: IPClaimStatus,
    }
}

/// Desired state of a claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IPClaimSpec {
    /// The pool, in the namespace of the claim. Only its name is used.
    pub pool: ObjectReference,
}

/// What was granted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IPClaimStatus {
    /// The IPAddress object that holds the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<ObjectReference>,
    /// Why no address was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// `Ready`, with the reason when there is no address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
