//! The image that a host boots while it is inspected, cleaned and deployed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::Condition;

kind! {
    /// The agent's image for the host of the same name, built with that host's network data.
    pub struct PreprovisioningImage in "metal3.io" / "v1alpha1" as "preprovisioningimages" {
        spec: PreprovisioningImageSpec,
        status: PreprovisioningImageStatus,
    }
}

/// The requested image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreprovisioningImageSpec {
    /// Secret with network data that is built into the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data_name: Option<String>,
    /// Processor architecture of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Formats the host can boot, the preferred one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_formats: Vec<PreprovisioningImageFormat>,
}

/// Format of an agent's image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PreprovisioningImageFormat {
    /// One file to be booted as a disc.
    #[default]
    Iso,
    /// A RAM disk that a kernel loads.
    Initrd,
}

/// The image made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreprovisioningImageStatus {
    /// Where the image is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<String>,
    /// Where the kernel is, for a RAM disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_url: Option<String>,
    /// What is added to the kernel's command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_kernel_params: Option<String>,
    /// Format of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<PreprovisioningImageFormat>,
    /// The network data that is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_data: Option<SecretVersion>,
    /// Processor architecture the image is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// `Ready` and `Error`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A Secret as it was when it was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretVersion {
    /// Name of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its resource version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}
