//! A stand-in for the workload cluster: its Nodes, which the user adds.

use std::sync::Arc;

use metal3_capi::workload::{LabelledNode, Node, Nodes, Reconciled, Request, WakeFn, Workloads};
use metal3_runtime::cache::Key;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;
use parking_lot::Mutex;

#[derive(Default)]
struct State {
    nodes: Vec<Arc<Node>>,
    waiters: Vec<Key>,
    wake: Option<WakeFn>,
}

/// The Nodes of the workload cluster.
#[derive(Clone, Default)]
pub(crate) struct WorkloadNodes(Arc<Mutex<State>>);

impl WorkloadNodes {
    /// Adds a Node with its provider ID.
    pub(crate) fn join(&self, name: String, provider_id: String) {
        let mut state = self.0.lock();
        state.nodes.push(Arc::new(Node {
            name,
            provider_id,
            ..Node::default()
        }));
        if let Some(wake) = &state.wake {
            state.waiters.iter().for_each(wake);
        }
    }
}

impl Workloads for WorkloadNodes {
    fn set_wake(&self, wake: WakeFn, _: usize) {
        self.0.lock().wake = Some(wake);
    }

    fn reconciled(&self, _: &Key) -> Reconciled {
        Reconciled::default()
    }

    fn nodes(&self, _: &Key, waiter: &Key) -> Observed<Nodes> {
        let mut state = self.0.lock();
        if !state.waiters.contains(waiter) {
            state.waiters.push(waiter.clone());
        }
        Observed::Present(state.nodes.clone().into())
    }

    fn node(&self, _: &Key, _: &str, _: &Key) -> Observed<Arc<Node>> {
        Observed::Absent
    }

    fn remove_waiter(&self, waiter: &Key) {
        self.0.lock().waiters.retain(|one| one != waiter);
    }

    fn set_provider_id<'a>(&'a self, _: &'a Key, _: &'a str, _: &'a str, _: &'a Key) -> Request<'a, ()> {
        // Nodes get their ID from their data.
        Box::pin(async { Ok(()) })
    }

    fn read_labels<'a>(&'a self, _: &'a Key, _: &'a str, _: &'a Key) -> Request<'a, Option<LabelledNode>> {
        Box::pin(async { Ok(None) })
    }

    fn patch_labels<'a>(&'a self, _: &'a Key, _: &'a str, _: MergePatch, _: &'a Key) -> Request<'a, bool> {
        Box::pin(async { Ok(false) })
    }
}
