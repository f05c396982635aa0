//! The ramdisk of the agent and its network data.
//!
//! Without a configured ramdisk Ironic's own configuration applies, and the node record contains none.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_domain::bmc::Profile;
use metal3_ironic::model::node::Node;
use serde_json::{Map, Value};

use super::invalid_host::InvalidHost;
use super::secret;

pub(super) const ISO: &str = "deploy_iso";
pub(super) const KERNEL: &str = "deploy_kernel";
pub(super) const INITRAMFS: &str = "deploy_ramdisk";
/// Key of additional kernel parameters.
pub(super) const PARAMETERS: &str = "kernel_append_params";

/// The configured ramdisk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ramdisk {
    /// URL of the kernel. Requires an initial ramdisk.
    pub kernel: Option<String>,
    /// URL of the initial ramdisk. Requires a kernel.
    pub initramfs: Option<String>,
    /// URL of the ISO, for machines that boot one.
    pub iso: Option<String>,
}

impl Ramdisk {
    /// The keys of `driver_info`. Empty: they are kept as they are.
    fn driver_info(&self, profile: &Profile) -> Vec<(&'static str, Option<Value>)> {
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

/// The configured ramdisks of all architectures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ramdisks {
    /// The ramdisk of an architecture without one of its own.
    pub usual: Ramdisk,
    /// By architecture, in lower case.
    pub by_architecture: BTreeMap<String, Ramdisk>,
}

impl Ramdisks {
    /// The ramdisk of an architecture. What it has of its own is not completed by that of another.
    // differs: `agent-pair`. The Go manager completes it.
    pub(super) fn of(&self, architecture: &str) -> &Ramdisk {
        self.by_architecture
            .get(&architecture.to_ascii_lowercase())
            .unwrap_or(&self.usual)
    }

    /// The keys of `driver_info` of a node of this architecture. Without a ramdisk those that an operator set are kept, and
    /// those of the former architecture of the observed node are removed.
    pub(super) fn driver_info(
        &self,
        architecture: &str,
        profile: &Profile,
        found: Option<&Node>,
    ) -> Vec<(&'static str, Option<Value>)> {
        let keys = self.of(architecture).driver_info(profile);
        let Some(found) = found.filter(|_| keys.is_empty()) else {
            return keys;
        };
        let is_of_another = |key: &&str| found.driver_info.text(key).is_some_and(|url| self.has(url));
        let left = [ISO, KERNEL, INITRAMFS].into_iter().filter(is_of_another);
        left.map(|key| (key, None)).collect()
    }

    fn has(&self, url: &str) -> bool {
        let mut all = self.by_architecture.values().chain([&self.usual]);
        all.any(|one| [&one.kernel, &one.initramfs, &one.iso].contains(&&Some(url.to_owned())))
    }
}

/// The network data of the agent, from `preprovisioningNetworkDataName`.
#[derive(Clone, Default, PartialEq)]
pub enum AgentNetwork {
    /// Not read: the node keeps its value.
    #[default]
    Unread,
    /// Not set: the agent uses DHCP.
    None,
    /// The network data.
    Data(Map<String, Value>),
}

impl AgentNetwork {
    /// Reads it from the values of the Secret.
    ///
    /// # Errors
    /// When it is not a map.
    pub fn of(values: &BTreeMap<String, ByteString>) -> Result<Self, InvalidHost> {
        const FIELD: &str = "spec.preprovisioningNetworkDataName";
        let text = secret::text(values, "networkData", FIELD)?.unwrap_or_default();
        let map = secret::map(FIELD, text)?;
        Ok(if map.is_empty() { Self::None } else { Self::Data(map) })
    }

    /// The desired `network_data` of the node. `None`: not compared.
    pub(crate) fn wanted(&self) -> Option<Map<String, Value>> {
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
