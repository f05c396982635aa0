//! The way into workload clusters: their Nodes, while somebody waits for one.
//!
//! Who waits asks [`Workloads::nodes`] in each pass and is woken when the answer changes; who waits no more says so, and
//! the last one to do so ends the connection. Nobody's deletion ever depends on a workload cluster.

pub mod kubeconfig;
mod remote;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use metal3_runtime::cache::Key;
pub use metal3_runtime::watch::WakeFn;
use metal3_runtime::work::Fault;

pub use remote::{ConnectFn, Remote, Workload};

/// What counts of a Node. What it does not say is empty.
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

/// What is known of the Nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeList {
    /// All of them.
    Listed(Arc<[Node]>),
    /// Nobody can say, and why.
    Unknown(String),
}

/// Access to workload clusters. Clusters are named by the key of their Cluster.
pub trait Workloads: fmt::Debug + Send + Sync + 'static {
    /// From now on those who wait are woken this way.
    fn set_wake(&self, wake: WakeFn);

    /// What is known of the Nodes. From now on `waiter` waits for them.
    fn nodes(&self, cluster: &Key, waiter: &Key) -> NodeList;

    /// `waiter` waits no more.
    fn remove_waiter(&self, waiter: &Key);

    /// Gives a Node that has none its provider ID.
    fn set_provider_id<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        provider_id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;
}

#[cfg(test)]
mod tests;
