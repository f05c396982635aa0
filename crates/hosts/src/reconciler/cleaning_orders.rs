//! The cleanings and services for settings of the BIOS and updates of the firmware that this process ordered.

use std::collections::BTreeMap;

use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_domain::clock::Monotonic;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use parking_lot::Mutex;

use super::index::HostIndex;
use super::observations::Observations;
use crate::facts::{CleaningOrder, CleaningProgress, FoundNode, NodeFreshness};
use crate::node::bios;
use crate::node::firmware::{self, Files, Order};

/// The last one for each host, and when the host entered the state for which it was ordered.
#[derive(Debug, Default)]
pub(super) struct CleaningOrders(Mutex<BTreeMap<Key, (Option<Monotonic>, CleaningOrder)>>);

impl CleaningOrders {
    /// Ironic accepted a cleaning or a service, or it may have. `None`: it changes neither BIOS nor firmware, and is the
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

    /// What became of its updates is recorded, or others are ordered.
    pub(super) fn forget_updates(&self, host: &Key) {
        if let Some((_, order)) = self.0.lock().get_mut(host) {
            (order.files, order.left) = (Files::new(), None);
        }
    }

    /// The last one for the state that the host is in, with what the node shows of it.
    pub(super) fn observe(&self, host: &Key, index: &HostIndex, observed: &Observations) -> Option<CleaningOrder> {
        let mut orders = self.0.lock();
        if let Some(order) = taken_up(observed)
            && orders
                .get(host)
                .is_none_or(|(_, known)| !order.files.is_subset(&known.files))
        {
            orders.insert(host.clone(), (index.entered(host), order));
        }
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
            order.progress = progress(order, node);
            order.left = left(order, node);
        }
        Some(order.clone())
    }

    /// A running machine is switched off on request.
    pub(super) fn forget_service(&self, key: &Key, host: &BareMetalHost) {
        if matches!(
            host.status.provisioning.state,
            ProvisioningState::Provisioned | ProvisioningState::ExternallyProvisioned
        ) {
            self.remove(key);
        }
    }

    pub(super) fn remove(&self, host: &Key) {
        self.0.lock().remove(host);
    }
}

/// The cleaning of an order that another process recorded and the node shows.
fn taken_up(observed: &Observations) -> Option<CleaningOrder> {
    let (Observed::Present(FoundNode::Own(node, freshness)), Observed::Present(object)) =
        (&observed.node, &observed.firmware_components)
    else {
        return None;
    };
    let is_open = Order::of(object).is_open() && firmware::is_under_way(object, node);
    let steps = node.steps_under_way();
    (is_open && *freshness >= NodeFreshness::Current).then(|| CleaningOrder {
        node: node.uuid.clone(),
        settings: bios::settings_of(steps).unwrap_or_default(),
        files: firmware::in_steps(steps),
        left: None,
        is_only: !steps
            .iter()
            .any(|step| matches!(step.interface.as_str(), "raid" | "deploy")),
        progress: CleaningProgress::Begun,
    })
}

/// What is known after this observation, which is newer than the order.
fn progress(order: &CleaningOrder, node: &Node) -> CleaningProgress {
    match (order.progress, &node.provision_state) {
        (CleaningProgress::Unconfirmed, S::Cleaning | S::CleanWait | S::Servicing | S::ServiceWait)
            if order.is_of_steps(node.steps_under_way()) =>
        {
            CleaningProgress::Begun
        }
        (_, S::CleanFailed | S::ServiceFailed) => CleaningProgress::Failed,
        (known, _) => known,
    }
}

/// The updates that have not ended. Ironic goes on with the cleaning when the last one has.
fn left(order: &CleaningOrder, node: &Node) -> Option<Files> {
    let known = order.left.clone();
    match (known, firmware::step_left(node)) {
        (_, Some(left)) => Some(left),
        (Some(_), None)
            if matches!(node.provision_state, S::Cleaning | S::Servicing) && firmware::left(node).is_empty() =>
        {
            Some(Files::new())
        }
        (known, None) => known,
    }
}

#[cfg(test)]
mod tests {
    use metal3_domain::ids::NodeUuid;
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::fixture::{NODE, node};

    fn order(files: &Files, progress: CleaningProgress) -> CleaningOrder {
        CleaningOrder {
            node: NodeUuid::parse(NODE).unwrap(),
            settings: BTreeMap::new(),
            files: files.clone(),
            left: None,
            is_only: true,
            progress,
        }
    }

    fn step(url: &str) -> Value {
        json!({ "interface": "firmware", "step": "update", "args": { "settings": [{ "component": "bios", "url": url }] } })
    }

    fn shown(state: &str, steps: Value, left: Value) -> Node {
        let mut document = node(state);
        document["driver_internal_info"] = json!({ "clean_steps": steps, "redfish_fw_updates": left });
        document["clean_step"] = steps[0].clone();
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn order_without_a_response_has_begun_only_when_the_node_shows_it() {
        use CleaningProgress::{Begun, Failed, Unconfirmed};
        let own = json!([step("http://f/1")]);
        let files = firmware::in_steps(shown("clean wait", own.clone(), json!([])).steps_under_way());
        assert_eq!(files.len(), 1);
        for (known, state, steps, now) in [
            (Unconfirmed, "manageable", json!([]), Unconfirmed),
            (Unconfirmed, "cleaning", json!([]), Unconfirmed),
            (Unconfirmed, "clean wait", json!([step("http://f/2")]), Unconfirmed),
            (Unconfirmed, "clean wait", own.clone(), Begun),
            (Unconfirmed, "clean failed", own.clone(), Failed),
            (Begun, "manageable", json!([]), Begun),
            (Begun, "clean failed", json!([]), Failed),
            (Failed, "manageable", json!([]), Failed),
            (Failed, "cleaning", json!([]), Failed),
        ] {
            let node = shown(state, steps, json!([]));
            assert_eq!(progress(&order(&files, known), &node), now, "{known:?} {state}");
        }
    }

    #[test]
    fn updates_that_have_not_ended_are_those_of_the_step_that_ironic_waits_for() {
        let update = json!([{ "component": "bios", "url": "http://f/1" }]);
        let (own, other) = (
            json!([step("http://f/1")]),
            json!([{ "interface": "raid", "step": "x" }]),
        );
        let waits = shown("clean wait", own.clone(), update.clone());
        let files = firmware::in_steps(waits.steps_under_way());
        let mut order = order(&files, CleaningProgress::Begun);
        for (state, steps, shows, expected) in [
            ("clean wait", &other, &update, None),
            ("cleaning", &own, &update, None),
            ("clean wait", &own, &update, Some(1)),
            ("clean wait", &own, &json!([]), Some(1)),
            ("clean failed", &own, &json!([]), Some(1)),
            ("cleaning", &own, &json!([]), Some(0)),
        ] {
            order.left = left(&order, &shown(state, steps.clone(), shows.clone()));
            assert_eq!(order.left.as_ref().map(Files::len), expected, "{state} {steps}");
        }
    }
}
