//! The cleanings for settings of the BIOS and updates of the firmware that this process ordered.

use std::collections::BTreeMap;

use metal3_domain::clock::Monotonic;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use parking_lot::Mutex;

use super::index::HostIndex;
use super::observations::Observations;
use crate::facts::{CleaningOrder, CleaningProgress, FoundNode, NodeFreshness};

/// The last one for each host, and when the host entered the state for which it was ordered.
#[derive(Debug, Default)]
pub(super) struct CleaningOrders(Mutex<BTreeMap<Key, (Option<Monotonic>, CleaningOrder)>>);

impl CleaningOrders {
    /// Ironic accepted a cleaning, or it may have. `None`: it changes neither BIOS nor firmware, and is the
    /// last one.
    pub(super) fn begin(
        &self,
        host: &Key,
        index: &HostIndex,
        order: Option<CleaningOrder>,
        progress: CleaningProgress,
    ) {
        let mut orders = self.0.lock();
        match order {
            Some(order) => {
                orders.insert(host.clone(), (index.entered(host), CleaningOrder { progress, ..order }));
            }
            None => drop(orders.remove(host)),
        }
    }

    /// The updates that it made are recorded, or others are ordered.
    pub(super) fn forget_updates(&self, host: &Key) {
        if let Some((_, order)) = self.0.lock().get_mut(host) {
            order.updates = false;
        }
    }

    /// The last one for the state that the host is in, with what the node shows of it.
    pub(super) fn observe(&self, host: &Key, index: &HostIndex, observed: &Observations) -> Option<CleaningOrder> {
        let mut orders = self.0.lock();
        let (entered, order) = orders.get_mut(host)?;
        if *entered != index.entered(host) {
            orders.remove(host);
            return None;
        }
        if let Observed::Present(FoundNode::Own(node, freshness)) = &observed.node
            && *freshness >= NodeFreshness::Current
        {
            if node.uuid != order.node {
                // Ironic lost the node, and the end of the cleaning with it.
                orders.remove(host);
                return None;
            }
            order.progress = progress(order.progress, node);
        }
        Some(order.clone())
    }

    pub(super) fn remove(&self, host: &Key) {
        self.0.lock().remove(host);
    }
}

/// What is known after this observation, which is newer than the order.
const fn progress(known: CleaningProgress, node: &Node) -> CleaningProgress {
    match (known, &node.provision_state) {
        (CleaningProgress::Unconfirmed, S::Cleaning | S::CleanWait) => CleaningProgress::Begun,
        (_, S::CleanFailed) => CleaningProgress::Failed,
        (known, _) => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture::node;

    #[test]
    fn order_without_a_response_has_begun_only_when_the_node_shows_it() {
        use CleaningProgress::{Begun, Failed, Unconfirmed};
        for (known, state, now) in [
            (Unconfirmed, "manageable", Unconfirmed),
            (Unconfirmed, "cleaning", Begun),
            (Unconfirmed, "clean wait", Begun),
            (Unconfirmed, "clean failed", Failed),
            (Begun, "manageable", Begun),
            (Begun, "clean failed", Failed),
            (Failed, "manageable", Failed),
            (Failed, "cleaning", Failed),
        ] {
            let node: Node = serde_json::from_value(node(state)).unwrap();
            assert_eq!(progress(known, &node), now, "{known:?} {state}");
        }
    }
}
