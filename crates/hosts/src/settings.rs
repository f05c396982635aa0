//! How the program was started, as far as decisions turn on it.

/// Upstream's default for the number of deployments of one image that may fail in a row.
pub const DEFAULT_RETRIES: u32 = 5;

/// Flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How often the deployment of one image is tried; nought: for ever.
    pub retries: u32,
    /// Whether Ironic serves no provisioning network, so that only virtual media boots an agent.
    pub without_provisioning_network: bool,
    /// What each node is told in `driver_info` about the ramdisk and boot order.
    pub ramdisk: Ramdisk,
}

/// The agent's ramdisk, where the program and not Ironic's configuration says which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ramdisk {
    /// URL of the kernel.
    pub kernel: Option<String>,
    /// URL of the initial ramdisk.
    pub initrd: Option<String>,
    /// URL of the ISO, for drivers that boot one.
    pub iso: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retries: DEFAULT_RETRIES,
            without_provisioning_network: false,
            ramdisk: Ramdisk::default(),
        }
    }
}
