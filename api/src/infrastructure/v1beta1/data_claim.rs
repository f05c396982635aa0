//! A machine's request for rendered data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::ObjectReference;

kind! {
    /// A request for metadata and network data of one machine.
    pub struct Metal3DataClaim in "infrastructure.cluster.x-k8s.io" / "v1beta1" as "metal3dataclaims" {
        spec: Metal3DataClaimSpec,
        status: Metal3DataClaimStatus,
    }
}

/// What to render.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3DataClaimSpec {
    /// The template. It cannot be changed.
    pub template: ObjectReference,
}

/// What was rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3DataClaimStatus {
    /// The Metal3Data that answers the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_data: Option<ObjectReference>,
    /// Why the claim cannot be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}
