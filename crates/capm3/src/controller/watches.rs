//! The watches that fill the caches.

use metal3_runtime::watch::{WatchConfig, WatchSet};

use super::caches::Caches;
use crate::needs::Machines;

impl Caches {
    /// The watches of all kinds that the controllers of clusters and machines read.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Machines> {
        WatchSet::new(config)
            .whole(&self.clusters)
            .whole(&self.machines)
            .whole(&self.metal3_clusters)
            .whole(&self.metal3_machines)
            .whole(&self.claims)
            .whole(&self.data)
            .whole(&self.hosts)
    }
}
