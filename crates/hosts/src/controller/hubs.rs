//! The hubs, and the watches that fill them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_domain::clock::Clock;
use metal3_runtime::hub::SharedHub;
use metal3_runtime::watch::{Fleet, Scope};
use tokio_util::sync::CancellationToken;

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
    /// The watches of all kinds that hosts read: to be run beside the controller, until `stop`.
    #[must_use]
    pub fn watches(
        &self,
        client: &kube::Client,
        scope: &Scope,
        clock: &Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Fleet<Hosts> {
        Fleet::new(client.clone(), scope.clone(), Arc::clone(clock), stop.clone())
            .whole(&self.hosts)
            .whole(&self.hardware)
            .metadata(&self.secrets)
    }
}
