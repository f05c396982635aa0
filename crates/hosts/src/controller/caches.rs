//! The caches, and the watches that fill them.

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_runtime::cache::SharedCache;
use metal3_runtime::watch::{WatchConfig, WatchSet};

use crate::needs::Hosts;

/// What is watched. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Caches {
    /// Hosts.
    pub hosts: SharedCache<BareMetalHost>,
    /// What inspection found, kept beside the host.
    pub hardware: SharedCache<HardwareData>,
    /// Secrets, by their metadata.
    pub secrets: SharedCache<PartialObjectMeta<Secret>>,
}

impl Caches {
    /// The watches of all kinds that hosts read: to be run beside the controller.
    #[must_use]
    pub fn watches(&self, lookout: &WatchConfig) -> WatchSet<Hosts> {
        WatchSet::new(lookout)
            .whole(&self.hosts)
            .whole(&self.hardware)
            .metadata(&self.secrets)
    }
}
