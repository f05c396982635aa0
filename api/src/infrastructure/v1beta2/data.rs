//! The data rendered for one machine.

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
