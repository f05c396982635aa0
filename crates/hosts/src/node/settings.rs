//! The flags that node records depend on.

use metal3_domain::allowed::Allowed;

use super::ramdisk::Ramdisks;

const BOOT_DEVICE: &str = "Default";

/// Settings of node records. The defaults are those of the Go manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSettings {
    /// The networks that the BMCs of hosts are in.
    pub bmc_networks: Allowed,
    /// Whether `fake://` addresses are allowed. For laboratories.
    pub fake_hardware: bool,
    /// Whether there is no provisioning network.
    pub provisioning_network_disabled: bool,
    /// The ramdisks of the agent.
    pub ramdisks: Ramdisks,
    /// The URL of Ironic's images for machines with an IPv6 BMC.
    pub external_url_v6: Option<String>,
    /// `force_persistent_boot_device` of machines that boot from their disk.
    pub direct_boot_device: String,
    /// `force_persistent_boot_device` of machines that boot a live ISO.
    pub live_iso_boot_device: String,
    /// The architecture of machines before inspection.
    pub own_architecture: String,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            bmc_networks: Allowed::default(),
            fake_hardware: false,
            provisioning_network_disabled: false,
            ramdisks: Ramdisks::default(),
            external_url_v6: None,
            direct_boot_device: BOOT_DEVICE.to_owned(),
            live_iso_boot_device: BOOT_DEVICE.to_owned(),
            own_architecture: std::env::consts::ARCH.to_owned(),
        }
    }
}
