//! The agent's ramdisk: what it is booted from, and its network.
//!
//! Where the program names no ramdisk, Ironic's own configuration does, and nothing is said about it in a node's
//! record.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_domain::bmc::Profile;
use serde_json::{Map, Value};

use super::{Refusal, document, secret};

/// Key of the ISO.
const ISO: &str = "deploy_iso";
/// Key of the kernel.
const KERNEL: &str = "deploy_kernel";
/// Key of the initial ramdisk.
const INITRAMFS: &str = "deploy_ramdisk";
/// Key of what an image of its own adds to the kernel's command line.
const PARAMETERS: &str = "kernel_append_params";

/// What the agent is booted from, where the program says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ramdisk {
    /// URL of a kernel. Needs an initial ramdisk.
    pub kernel: Option<String>,
    /// URL of an initial ramdisk. Needs a kernel.
    pub initramfs: Option<String>,
    /// URL of an ISO, for machines that boot one.
    pub iso: Option<String>,
}

impl Ramdisk {
    /// What `driver_info` says of it, key by key. Nothing: it is left as it is.
    pub(super) fn driver_info(&self, profile: &Profile) -> Vec<(&'static str, Option<Value>)> {
        let text = |url: &String| Some(Value::from(url.as_str()));
        let iso = self.iso.as_ref().filter(|_| profile.iso_preprovisioning_image);
        match (iso, &self.kernel, &self.initramfs) {
            (Some(iso), ..) => vec![(ISO, text(iso)), (KERNEL, None), (INITRAMFS, None), (PARAMETERS, None)],
            (None, Some(kernel), Some(initramfs)) => vec![
                (ISO, None),
                (KERNEL, text(kernel)),
                (INITRAMFS, text(initramfs)),
                (PARAMETERS, None),
            ],
            (None, ..) => Vec::new(),
        }
    }
}

/// The network of the agent, as the host's `preprovisioningNetworkDataName` gives it.
#[derive(Clone, Default, PartialEq)]
pub enum AgentNetwork {
    /// Nobody has read it: the node keeps what it has.
    #[default]
    Unread,
    /// The host names none: the agent uses DHCP.
    None,
    /// This.
    Data(Map<String, Value>),
}

impl AgentNetwork {
    /// Reads it from the values of the Secret.
    ///
    /// # Errors
    /// When it is no map.
    pub fn of(values: &BTreeMap<String, ByteString>) -> Result<Self, Refusal> {
        const FIELD: &str = "spec.preprovisioningNetworkDataName";
        let text = secret::text(values, "networkData", FIELD)?.unwrap_or_default();
        let map = document::map(FIELD, text)?;
        Ok(if map.is_empty() { Self::None } else { Self::Data(map) })
    }

    /// The node's `network_data`. `None`: whatever it is.
    pub(super) fn wanted(&self) -> Option<Map<String, Value>> {
        match self {
            Self::Unread => None,
            Self::None => Some(Map::new()),
            Self::Data(map) => Some(map.clone()),
        }
    }
}

impl std::fmt::Debug for AgentNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unread => "Unread",
            Self::None => "None",
            Self::Data(_) => "Data(not shown)",
        })
    }
}
