//! What the controllers of data watch.

use k8s_openapi::api::core::v1::Secret;
use kube_core::metadata::PartialObjectMeta;
use metal3_api::cluster::{self, Cluster, IPAddressClaim, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};

use super::needs::Data;
use crate::controller::caches::{Caches as Shared, HostIndexes, MachineIndexes};

/// What the controllers of data watch. Clones share it. Those of [`of`](Caches::of) are the caches of machines where both
/// look at a kind.
#[derive(Debug, Clone, Default)]
pub struct Caches {
    /// Templates.
    pub templates: SharedCache<Metal3DataTemplate>,
    /// Claims of machines.
    pub claims: SharedCache<Metal3DataClaim>,
    /// What answers them.
    pub data: SharedCache<Metal3Data>,
    /// Metal3Machines.
    pub machines: SharedCache<Metal3Machine, SharedIndexes<MachineIndexes>>,
    /// The Machines that own them.
    pub owners: SharedCache<Machine>,
    /// Hosts.
    pub hosts: SharedCache<BareMetalHost, HostIndexes>,
    /// Clusters.
    pub clusters: SharedCache<Cluster>,
    /// Claims on IPPools.
    pub metal3_claims: SharedCache<IPClaim>,
    /// Their addresses.
    pub metal3_addresses: SharedCache<IPAddress>,
    /// Claims on other pools.
    pub general_claims: SharedCache<IPAddressClaim>,
    /// Their addresses.
    pub general_addresses: SharedCache<cluster::IPAddress>,
    /// Secrets, without their content.
    pub secrets: SharedCache<PartialObjectMeta<Secret>>,
}

impl Caches {
    /// Caches that are those of machines, for every kind that both look at.
    #[must_use]
    pub fn of(shared: &Shared) -> Self {
        Self {
            claims: shared.claims.clone(),
            data: shared.data.clone(),
            machines: shared.metal3_machines.clone(),
            owners: shared.machines.clone(),
            hosts: shared.hosts.clone(),
            clusters: shared.clusters.clone(),
            ..Self::default()
        }
    }

    /// The watches of all kinds that the controllers of data read: to be run beside them.
    #[must_use]
    pub fn watches(&self, lookout: &WatchConfig) -> WatchSet<Data> {
        self.own_watches(lookout)
            .whole(&self.claims)
            .whole(&self.data)
            .whole(&self.machines)
            .whole(&self.owners)
            .whole(&self.hosts)
            .whole(&self.clusters)
    }

    /// The watches of the kinds that only the controllers of data read: for who watches for machines anyway.
    #[must_use]
    pub fn own_watches(&self, lookout: &WatchConfig) -> WatchSet<Data> {
        WatchSet::new(lookout)
            .whole(&self.templates)
            .whole(&self.metal3_claims)
            .whole(&self.metal3_addresses)
            .whole(&self.general_claims)
            .whole(&self.general_addresses)
            .metadata(&self.secrets)
    }
}
