//! The watches that fill the hubs.

use metal3_runtime::watch::{Fleet, Lookout};

use super::hubs::Hubs;
use crate::needs::Machines;

impl Hubs {
    /// The watches of all kinds that clusters and machines are decided on: to be run beside the controllers.
    #[must_use]
    pub fn watches(&self, lookout: &Lookout) -> Fleet<Machines> {
        Fleet::new(lookout)
            .whole(&self.clusters)
            .whole(&self.machines)
            .whole(&self.metal3_clusters)
            .whole(&self.metal3_machines)
            .whole(&self.claims)
            .whole(&self.data)
            .whole(&self.hosts)
    }
}
