//! The flags that decisions depend on.

use crate::node::NodeSettings;

/// Upstream's default for failed deployments of one image in a row.
pub const DEFAULT_RETRIES: u32 = 5;

/// The flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How often the deployment of one image is tried; 0 is unlimited.
    pub retries: u32,
    /// Whether a node is the host's also by the host's name without the namespace.
    pub plain_node_names: bool,
    /// The settings of node records.
    pub node: NodeSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retries: DEFAULT_RETRIES,
            plain_node_names: false,
            node: NodeSettings::default(),
        }
    }
}
