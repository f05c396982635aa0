//! The watches that fill the caches.

use metal3_runtime::watch::{WatchConfig, WatchSet};

use super::caches::Caches;
use crate::needs::Ipam;

impl Caches {
    /// The watches of all kinds that IP address management reads. They run next to the controller.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Ipam> {
        WatchSet::new(config)
            .whole(&self.pools)
            .whole(&self.claims)
            .whole(&self.addresses)
            .whole(&self.cluster_claims)
            .whole(&self.cluster_addresses)
            .whole(&self.clusters)
    }
}
