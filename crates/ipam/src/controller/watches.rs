//! The watches that fill the caches.

use metal3_runtime::watch::{WatchConfig, WatchSet};

use super::caches::Caches;
use crate::needs::Ipam;

impl Caches {
    /// The watches of all kinds that IP address management reads: to be run beside the controller.
    #[must_use]
    pub fn watches(&self, lookout: &WatchConfig) -> WatchSet<Ipam> {
        WatchSet::new(lookout)
            .whole(&self.pools)
            .whole(&self.claims)
            .whole(&self.addresses)
            .whole(&self.cluster_claims)
            .whole(&self.cluster_addresses)
            .whole(&self.clusters)
    }
}
