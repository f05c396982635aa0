//! The flags that decisions depend on.

use std::time::Duration;

use metal3_domain::allowed::Allowed;

use crate::node::NodeSettings;

/// Upstream's default for failed deployments of one image in a row.
pub const DEFAULT_RETRIES: u32 = 5;

/// Requeue delay after a request whose effect the feed has not shown, in case the node does not change: a little longer
/// than the poll interval of an idle feed.
pub const FEED_RECHECK: Duration = Duration::from_secs(12);

/// Which Secrets of its namespace a host may name as the login of its BMC and the network data of its agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BmcSecrets {
    /// Those with the label `environment.metal3.io: baremetal`, and those that hosts used before.
    #[default]
    Labelled,
    /// Any.
    Any,
}

/// The flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How often the deployment of one image is tried; 0 is unlimited.
    pub retries: u32,
    /// Whether a node is the host's also by the host's name without the namespace.
    pub plain_node_names: bool,
    /// The Secrets that a host may name.
    pub bmc_secrets: BmcSecrets,
    /// Whether an image of the agent is built for each host.
    pub builds_agent_images: bool,
    /// The hosts that images may be on.
    pub image_hosts: Allowed,
    /// The settings of node records.
    pub node: NodeSettings,
    /// [`FEED_RECHECK`], or less for simulated machines that are faster than real ones.
    pub feed_recheck: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retries: DEFAULT_RETRIES,
            plain_node_names: false,
            bmc_secrets: BmcSecrets::default(),
            builds_agent_images: false,
            image_hosts: Allowed::default(),
            node: NodeSettings::default(),
            feed_recheck: FEED_RECHECK,
        }
    }
}
