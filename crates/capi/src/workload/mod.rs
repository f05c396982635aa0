//! Access to workload clusters: their Nodes, while a machine waits for one.
//!
//! A waiting controller calls [`Workloads::nodes`] in each reconcile and is enqueued when the result changes.
//! [`Workloads::remove_waiter`] ends the wait, and the last one closes the connection. No deletion depends on a
//! workload cluster. A request that [`is_busy`] was not sent: the controller is enqueued when it may be, and reconciles the key
//! after [`BUSY_POLL`] otherwise.

mod connect;
pub mod join;
pub mod kubeconfig;
mod labels;
mod live;
mod node;
mod places;
mod remote;
mod repair;
mod requests;
mod waiter;

use std::pin::Pin;
use std::sync::Arc;

use metal3_runtime::cache::Key;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;
pub use metal3_runtime::watch::WakeFn;
use metal3_runtime::work::Fault;

pub use connect::ConnectFn;
pub use labels::{LabelDigest, LabelledNode};
pub use live::LiveNode;
pub use node::{NODE_HOST_UID_LABEL, WorkloadNode};
pub use remote::{Remote, Workload};
pub use repair::{Drained, NodeChange, NodeChanged, NodeRepair, NodeState, Repairs};
pub use requests::{BUSY_MESSAGE, BUSY_POLL, Reconciled, is_busy};

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
    /// A digest of its labels.
    pub labels: LabelDigest,
}

/// The future of one request to a workload cluster.
pub type Request<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// Access to workload clusters, by the key of their Cluster.
pub trait Workloads: Send + Sync + 'static {
    /// Sets the function that enqueues waiting keys, and the number of workers that reconcile them.
    fn set_wake(&self, wake: WakeFn, workers: usize);

    /// Held during the reconcile of `waiter`, so that its requests have one place until it ends.
    fn reconciled(&self, waiter: &Key) -> Reconciled;

    /// All Nodes of a cluster, or why they are unknown. `waiter` waits for changes from now on.
    fn nodes(&self, cluster: &Key, waiter: &Key) -> Observed<Nodes>;

    /// The Node of this name, or why it is unknown. `waiter` waits for changes of this Node from now on.
    fn node(&self, cluster: &Key, name: &str, waiter: &Key) -> Observed<Arc<Node>>;

    /// Ends the waits of `waiter`.
    fn remove_waiter(&self, waiter: &Key);

    /// Sets the provider ID of a Node without one.
    fn set_provider_id<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        provider_id: &'a str,
        waiter: &'a Key,
    ) -> Request<'a, ()>;

    /// Reads the labels of a Node; `None` when it does not exist.
    fn read_labels<'a>(&'a self, cluster: &'a Key, node: &'a str, waiter: &'a Key)
    -> Request<'a, Option<LabelledNode>>;

    /// Changes labels of a Node. Returns whether it was written; [`node`](Self::node) then has its new labels.
    fn patch_labels<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        patch: MergePatch,
        waiter: &'a Key,
    ) -> Request<'a, bool>;
}

#[cfg(test)]
mod tests;
