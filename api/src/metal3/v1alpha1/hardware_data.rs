//! The lasting record of what inspection found. It has no status: the record is the spec.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HardwareDetails;
use crate::kind::kind;

kind! {
    /// The hardware of the host of the same name. It may be created beforehand, to spare an inspection.
    pub struct HardwareData in "metal3.io" / "v1alpha1" as "hardwaredata" {
        spec: HardwareDataSpec,
    }
}

/// What is known about the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HardwareDataSpec {
    /// Its hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<HardwareDetails>,
}
