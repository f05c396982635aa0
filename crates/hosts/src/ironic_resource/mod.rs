//! Follows an `Ironic` resource that `IRONIC_NAME` names: where requests go, with which login and trust, and whether
//! any is sent.
//!
//! Invariants:
//! - Nothing is sent while the resource is not ready, or names a Secret that cannot be used.
//! - What is not known (a watch that is not permitted, a Secret that cannot be read) does not change the destination.
//! - A change of the resource or of its Secrets is in use at once. Nothing is polled.
//!   differs (`ironic-resource-followed`): the Go manager reads them again when its client is a minute old.
//!
//! It does not configure Ironic, and decides nothing about hosts: to them an Ironic that is not ready is one that
//! cannot be reached.

mod destination;
mod follow;
mod resource;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_ironic::endpoint::Trust;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::watch::{Scope, WatchConfig, WatchSet};

pub use follow::{Parts, follow};
pub use resource::Ironic;

use crate::needs::IronicResource;

/// The resource that is followed, and what it does not say.
#[derive(Debug, Clone)]
pub struct Followed {
    /// The resource.
    pub resource: Key,
    /// The client certificate, and the CA where the resource names none.
    pub trust: Trust,
    /// The timeout of one request.
    pub time_limit: Duration,
    /// Whether the login may cross a network without encryption.
    pub login_in_clear: bool,
}

/// The caches of the resources of a namespace and of the Secrets next to them.
#[derive(Clone, Default)]
pub struct Caches {
    ironics: SharedCache<Ironic>,
    secrets: SharedCache<PartialObjectMeta<Secret>>,
}

/// The caches of all namespaces with a resource.
#[derive(Default)]
pub struct AllCaches(BTreeMap<String, Caches>);

impl AllCaches {
    /// The watches of the namespaces of these resources. The caller runs them together with [`follow`].
    #[must_use]
    pub fn watches(&mut self, config: &WatchConfig, all: &[Followed]) -> WatchSet<IronicResource> {
        for followed in all {
            self.0.entry(followed.resource.namespace.clone()).or_default();
        }
        let mut watches = WatchSet::new(config);
        for (namespace, caches) in &self.0 {
            let config = WatchConfig {
                scope: Scope::namespace(namespace),
                ..config.clone()
            };
            let of_namespace = WatchSet::<IronicResource>::new(&config);
            watches = watches.chain(
                of_namespace
                    .optional(&caches.ironics)
                    .optional_metadata(&caches.secrets),
            );
        }
        watches
    }

    /// The caches of the namespace of a resource, which is watched.
    #[must_use]
    pub fn of(&self, followed: &Followed) -> Option<Caches> {
        self.0.get(&followed.resource.namespace).cloned()
    }
}
