//! How the program was started, as far as decisions turn on it.

use crate::node::NodeSettings;

/// Upstream's default for the number of deployments of one image that may fail in a row.
pub const DEFAULT_RETRIES: u32 = 5;

/// Flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How often the deployment of one image is tried; nought: for ever.
    pub retries: u32,
    /// What ends in the records of nodes.
    pub node: NodeSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retries: DEFAULT_RETRIES,
            node: NodeSettings::default(),
        }
    }
}
