//! The watches that fill the hubs.

use metal3_runtime::watch::{Fleet, Lookout};

use super::hubs::Hubs;
use crate::needs::Ipam;

impl Hubs {
    /// The watches of all kinds that IP address management reads: to be run beside the controller.
    #[must_use]
    pub fn watches(&self, lookout: &Lookout) -> Fleet<Ipam> {
        Fleet::new(lookout)
            .whole(&self.pools)
            .whole(&self.claims)
            .whole(&self.addresses)
            .whole(&self.cluster_claims)
            .whole(&self.cluster_addresses)
            .whole(&self.clusters)
    }
}
