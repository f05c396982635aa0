//! How the program was started, as far as nodes are told of it.

use super::Ramdisk;

/// The flag that lets hosts without a machine in.
pub(super) const FAKE_FLAG: &str = "--lab-fake-hardware";
/// What the Go manager tells nodes of the boot order where nothing else is configured.
const BOOT_DEVICE: &str = "Default";

/// Settings that end in a node's record. The defaults are those of the Go manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// Whether `fake://` addresses are taken. For laboratories.
    pub fake_hardware: bool,
    /// Whether there is no network from which machines could boot the agent.
    pub provisioning_network_disabled: bool,
    /// What the agent is booted from.
    pub ramdisk: Ramdisk,
    /// Where machines with an IPv6 BMC reach Ironic's images.
    pub external_url_v6: Option<String>,
    /// `force_persistent_boot_device` of machines that boot from their disk.
    pub direct_boot_device: String,
    /// `force_persistent_boot_device` of machines that boot a live ISO.
    pub live_iso_boot_device: String,
    /// The architecture of machines of which nothing is known yet.
    pub own_architecture: String,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            fake_hardware: false,
            provisioning_network_disabled: false,
            ramdisk: Ramdisk::default(),
            external_url_v6: None,
            direct_boot_device: BOOT_DEVICE.to_owned(),
            live_iso_boot_device: BOOT_DEVICE.to_owned(),
            own_architecture: std::env::consts::ARCH.to_owned(),
        }
    }
}
