//! Who waits for a workload cluster, and how it is enqueued.

use std::sync::Arc;

use metal3_runtime::cache::Key;
use metal3_runtime::watch::WakeFn;
use parking_lot::Mutex;

/// A waiting key of one of the controllers with access to workload clusters. Objects of several kinds may have equal keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Waiter {
    Machine(Key),
    Remediation(Key),
    Cluster(Key),
}

/// Enqueue waiting keys, each in the queue of its controller.
#[derive(Default)]
pub(super) struct Wakes {
    machines: Mutex<Option<Arc<WakeFn>>>,
    remediations: Mutex<Option<Arc<WakeFn>>>,
    clusters: Mutex<Option<Arc<WakeFn>>>,
}

impl Wakes {
    pub(super) fn set_of_machines(&self, wake: WakeFn) {
        *self.machines.lock() = Some(Arc::new(wake));
    }

    pub(super) fn set_of_remediations(&self, wake: WakeFn) {
        *self.remediations.lock() = Some(Arc::new(wake));
    }

    pub(super) fn set_of_clusters(&self, wake: WakeFn) {
        *self.clusters.lock() = Some(Arc::new(wake));
    }

    pub(super) fn wake(&self, waiter: &Waiter) {
        let (wake, key) = match waiter {
            Waiter::Machine(key) => (&self.machines, key),
            Waiter::Remediation(key) => (&self.remediations, key),
            Waiter::Cluster(key) => (&self.clusters, key),
        };
        let wake = wake.lock().clone();
        if let Some(wake) = wake {
            wake(key);
        }
    }
}
