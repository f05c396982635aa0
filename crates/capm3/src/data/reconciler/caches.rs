//! The caches of the controllers of data.

use k8s_openapi::api::core::v1::Secret;
use kube_core::metadata::PartialObjectMeta;
use metal3_api::cluster::{self, Cluster, IPAddressClaim, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{SharedCache, SharedIndexes};
use metal3_runtime::watch::{WatchConfig, WatchSet};

use crate::controller::caches::{Caches as Shared, HostIndexes, MachineIndexes};
use crate::needs::Data;

/// The caches of the controllers of data. Clones share their content. [`of`](Caches::of) shares the kinds that the
/// controllers of machines also watch.
#[derive(Clone, Default)]
pub struct Caches {
    /// Templates.
    pub templates: SharedCache<Metal3DataTemplate>,
    /// Claims on templates.
    pub claims: SharedCache<Metal3DataClaim>,
    /// The Metal3Data for these claims.
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
    /// Caches that share their kinds with those of machines.
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

    /// The watches of all kinds that the controllers of data read.
    #[must_use]
    pub fn watches(&self, config: &WatchConfig) -> WatchSet<Data> {
        self.own_watches(config)
            .whole(&self.claims)
            .whole(&self.data)
            .whole(&self.machines)
            .whole(&self.owners)
            .whole(&self.hosts)
            .whole(&self.clusters)
    }

    /// The watches of the kinds that only the controllers of data read, for a process that watches the rest for
    /// machines.
    #[must_use]
    pub fn own_watches(&self, config: &WatchConfig) -> WatchSet<Data> {
        WatchSet::new(config)
            .whole(&self.templates)
            .optional(&self.metal3_claims)
            .optional(&self.metal3_addresses)
            .whole(&self.general_claims)
            .whole(&self.general_addresses)
            .metadata(&self.secrets)
    }
}
