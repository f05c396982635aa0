//! Access to workload clusters: their Nodes, while a machine waits for one.
//!
//! A waiting controller calls [`Workloads::nodes`] in each reconcile and is enqueued when the result changes.
//! [`Workloads::remove_waiter`] ends the wait, and the last one closes the connection. No deletion depends on a
//! workload cluster.

pub mod kubeconfig;
mod node;
mod places;
mod remote;
mod repair;

use std::pin::Pin;
use std::sync::Arc;

use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
pub use metal3_runtime::watch::WakeFn;
use metal3_runtime::work::Fault;

pub use node::WorkloadNode;
pub use remote::{ConnectFn, Remote, Workload};
pub use repair::{Access, Drained, LiveNode, NodeChange, NodeChanged, NodeRepair, NodeState};

/// The Nodes of a cluster, shared by all who wait for one.
pub type Nodes = Arc<[Arc<Node>]>;

/// The relevant fields of a Node. Missing ones are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `spec.providerID`.
    pub provider_id: String,
    /// The label with the UID of its host.
    pub host_uid: String,
    /// The label with its host name.
    pub hostname: String,
}

/// Access to workload clusters, by the key of their Cluster.
pub trait Workloads: Send + Sync + 'static {
    /// Sets the function that enqueues waiting keys.
    fn set_wake(&self, wake: WakeFn);

    /// All Nodes of a cluster, or why they are unknown. `waiter` waits for changes from now on.
    fn nodes(&self, cluster: &Key, waiter: &Key) -> Observed<Nodes>;

    /// Ends the waits of `waiter`.
    fn remove_waiter(&self, waiter: &Key);

    /// Sets the provider ID of a Node without one.
    fn set_provider_id<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        provider_id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;
}

#[cfg(test)]
mod tests;
