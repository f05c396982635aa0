//! Watches of endpoint sources, on demand.
//!
//! A kind is watched while at least one Metal3Cluster requests it. A reconcile calls [`Sources::read`], and is queued
//! when the result changes. A kind that is not served or may not be listed is retried periodically.
//!
//! A template is read the same way, with a watch of that one ConfigMap.
//!
//! The version of a kind follows from discovery: the field of the endpoint is the same in all versions of the contract.

mod discover;
mod foreign;
mod templates;
mod touch;
mod watched;

use metal3_runtime::cache::Key;
pub use metal3_runtime::watch::WakeFn;

use crate::endpoint::source::{SourceValues, WantedSources};

pub use foreign::{EndpointSources, ForeignObject};
pub(crate) use touch::touch;
pub use touch::{ControlPlaneTouch, KamajiControlPlane};
pub use watched::WatchedSources;

/// Access to endpoint sources.
pub trait Sources: Send + Sync + 'static {
    /// Sets the function that queues a requester.
    fn set_wake(&self, wake: WakeFn);

    /// The values of the wanted objects; `None` until the first list. Replaces the earlier request of `requester`.
    fn read(&self, requester: &Key, wanted: &WantedSources) -> Option<SourceValues>;
}
