//! The watches that fill the caches.

use metal3_runtime::watch::{WatchConfig, WatchSet};

use super::caches::Caches;
use crate::needs::Machines;

impl Caches {
    /// The watches of all kinds that clusters and machines are decided on: to be run beside the controllers.
    #[must_use]
    pub fn watches(&self, lookout: &WatchConfig) -> WatchSet<Machines> {
        WatchSet::new(lookout)
            .whole(&self.clusters)
            .whole(&self.machines)
            .whole(&self.metal3_clusters)
            .whole(&self.metal3_machines)
            .whole(&self.claims)
            .whole(&self.data)
            .whole(&self.hosts)
    }
}
