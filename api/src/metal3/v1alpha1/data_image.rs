//! An image that a running host uses as a disc.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;
use crate::meta::Time;

kind! {
    /// A disc for the host of the same name, inserted or removed when the host reboots.
    pub struct DataImage in "metal3.io" / "v1alpha1" as "dataimages" {
        spec: DataImageSpec,
        status: DataImageStatus,
    }
}

/// The requested disc.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataImageSpec {
    /// Where the image is: an `http`, `https`, `ftp`, `gopher` or `oci` URL.
    pub url: String,
}

/// The disc inserted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataImageStatus {
    /// When the BMC was last queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_reconciled: Option<Time>,
    /// What is inserted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attached_image: Option<AttachedImage>,
    /// Why it is not in the desired state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<DataImageError>,
}

/// An inserted image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachedImage {
    /// Where the image is.
    pub url: String,
}

/// Why an image could not be inserted or removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataImageError {
    /// How often in a row it failed.
    pub count: i64,
    /// The error of the BMC.
    pub message: String,
}
