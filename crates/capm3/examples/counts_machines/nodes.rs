//! A stand-in for the workload cluster: its Nodes, which the user adds.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use metal3_capi::workload::{Node, NodeList, WakeFn, Workloads};
use metal3_runtime::cache::Key;
use metal3_runtime::work::Fault;

#[derive(Default)]
struct State {
    nodes: Vec<Node>,
    waiters: Vec<Key>,
    wake: Option<WakeFn>,
}

/// The Nodes of the workload cluster.
#[derive(Clone, Default)]
pub(crate) struct WorkloadNodes(Arc<Mutex<State>>);

impl fmt::Debug for WorkloadNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkloadNodes").finish_non_exhaustive()
    }
}

impl WorkloadNodes {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a Node with its provider ID.
    pub(crate) fn join(&self, name: String, provider_id: String) {
        let mut state = self.state();
        state.nodes.push(Node {
            name,
            provider_id,
            ..Node::default()
        });
        if let Some(wake) = &state.wake {
            state.waiters.iter().for_each(wake);
        }
    }
}

impl Workloads for WorkloadNodes {
    fn set_wake(&self, wake: WakeFn) {
        self.state().wake = Some(wake);
    }

    fn nodes(&self, _: &Key, waiter: &Key) -> NodeList {
        let mut state = self.state();
        if !state.waiters.contains(waiter) {
            state.waiters.push(waiter.clone());
        }
        NodeList::Listed(state.nodes.clone().into())
    }

    fn remove_waiter(&self, waiter: &Key) {
        self.state().waiters.retain(|one| one != waiter);
    }

    fn set_provider_id<'a>(
        &'a self,
        _: &'a Key,
        _: &'a str,
        _: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'a>> {
        // Nodes get their ID from their data.
        Box::pin(async { Ok(()) })
    }
}
