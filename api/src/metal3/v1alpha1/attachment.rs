//! Configuration of a switch port that a host is connected to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::kind;

kind! {
    /// Settings of a switch port. Hosts refer to it; while one does, it can be neither changed nor deleted.
    pub struct HostNetworkAttachment in "metal3.io" / "v1alpha1" as "hostnetworkattachments" {
        spec: HostNetworkAttachmentSpec,
    }
}

/// The settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostNetworkAttachmentSpec {
    /// How the port treats tags.
    #[schemars(extend("default" = "access"))]
    pub mode: AttachmentMode,
    /// VLAN of untagged frames.
    #[serde(rename = "nativeVLAN")]
    #[schemars(range(min = 1, max = 4094))]
    pub native_vlan: i64,
    /// VLANs that pass with their tag, each a number or a range such as `100-110`. Not in access mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "allowedVLANs")]
    #[schemars(inner(regex(pattern = r"^\d+(-\d+)?$")))]
    pub allowed_vlans: Vec<String>,
    /// Largest frame, in bytes. Absent: as the switch has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 68, max = 9216))]
    pub mtu: Option<i64>,
}

/// How a port treats tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentMode {
    /// One VLAN, untagged.
    #[default]
    Access,
    /// Many VLANs, tagged.
    Trunk,
    /// Both.
    Hybrid,
}
