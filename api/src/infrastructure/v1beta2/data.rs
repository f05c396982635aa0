//! The data rendered for one machine, and the machine's request for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::Metal3ObjectRef;
use crate::kind::kind;
use crate::meta::SecretReference;

kind! {
    /// Metadata and network data rendered for one machine.
    pub struct Metal3Data in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3datas" {
        spec: Metal3DataSpec,
        status: Metal3DataStatus,
    }
}

/// The rendered data: its machine, its template and its Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3DataSpec {
    /// Number of the machine among those of the template, from 0. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub index: Option<i32>,
    /// The template. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Metal3ObjectRef>,
    /// The claim this object answers. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Metal3ObjectRef>,
    /// Secret with the metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta_data: Option<SecretReference>,
    /// Secret with the network data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretReference>,
}

/// How far the rendering is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3DataStatus {
    /// True when both Secrets exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Why rendering failed, when trying again will not help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub error_message: Option<String>,
}

kind! {
    /// A request for metadata and network data of one machine.
    pub struct Metal3DataClaim in "infrastructure.cluster.x-k8s.io" / "v1beta2" as "metal3dataclaims" {
        spec: Metal3DataClaimSpec,
        status: Metal3DataClaimStatus,
    }
}

/// What to render.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Metal3DataClaimSpec {
    /// The template. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Metal3ObjectRef>,
}

/// What was rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metal3DataClaimStatus {
    /// The Metal3Data that answers the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_data: Option<Metal3ObjectRef>,
    /// Why the claim cannot be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub error_message: Option<String>,
}
