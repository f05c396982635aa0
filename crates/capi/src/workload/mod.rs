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
pub use metal3_runtime::watch::Wake;
use metal3_runtime::work::Fault;

pub use remote::{Open, Remote, Workload};

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
pub enum Nodes {
    /// All of them.
    Seen(Arc<[Node]>),
    /// Nobody can say, and why.
    Unknown(String),
}

/// Access to workload clusters. Clusters are named by the key of their Cluster.
pub trait Workloads: fmt::Debug + Send + Sync + 'static {
    /// From now on those who wait are woken this way.
    fn wake_with(&self, wake: Wake);

    /// What is known of the Nodes. From now on `waiter` waits for them.
    fn nodes(&self, cluster: &Key, waiter: &Key) -> Nodes;

    /// `waiter` waits no more.
    fn dismiss(&self, waiter: &Key);

    /// Gives a Node that has none its provider ID.
    fn adopt<'a>(
        &'a self,
        cluster: &'a Key,
        node: &'a str,
        provider_id: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>>;
}

#[cfg(test)]
mod tests;
