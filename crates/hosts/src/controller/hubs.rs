//! The hubs, and the watches that fill them.

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_runtime::hub::SharedHub;
use metal3_runtime::watch::{Fleet, Lookout};

use crate::needs::Hosts;

/// What is watched. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Hubs {
    /// Hosts.
    pub hosts: SharedHub<BareMetalHost>,
    /// What inspection found, kept beside the host.
    pub hardware: SharedHub<HardwareData>,
    /// Secrets, by their metadata.
    pub secrets: SharedHub<PartialObjectMeta<Secret>>,
}

impl Hubs {
    /// The watches of all kinds that hosts read: to be run beside the controller.
    #[must_use]
    pub fn watches(&self, lookout: &Lookout) -> Fleet<Hosts> {
        Fleet::new(lookout)
            .whole(&self.hosts)
            .whole(&self.hardware)
            .metadata(&self.secrets)
    }
}
