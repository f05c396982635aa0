//! Properties of every plan for a host with HostFirmwareComponents.

use metal3_ironic::calls::provision::Transition;
use proptest::prelude::*;
use serde_json::json;

use super::fixture::{Fixture, UID};
use super::properties::{fixture, must_be_left_alone};
use crate::action::{Action, Request};
use crate::facts::{HostFreshness, NodeFreshness};
use crate::node::firmware;

prop_compose! {
    fn host_with_updates()(
        fixture in fixture(), is_prepared in any::<bool>(), is_recorded in any::<bool>(), is_live in any::<bool>(),
        component in proptest::sample::select(vec!["bios", "psu"]), is_read in any::<bool>(), is_refused in proptest::bool::weighted(0.2),
        left in 0_usize..3,
    ) -> Fixture {
        let update = json!([{ "component": component, "url": "http://192.0.2.9/2" }]);
        let recorded = if is_recorded { update.clone() } else { json!([]) };
        let mut fixture = fixture.components(update, recorded, Vec::new());
        if is_prepared { fixture = fixture.status(json!({ "provisioning": { "state": "preparing" } })).live(); }
        if is_live { fixture = fixture.components_live(); }
        if is_read { fixture = fixture.machine_has("1"); }
        fixture.is_firmware_status_refused = is_refused;
        if let Some(Some((node, _))) = &mut fixture.node {
            let one = json!({ "component": "bmc", "url": "http://192.0.2.9/1" });
            node["driver_internal_info"] = json!({ "redfish_fw_updates": vec![one; left] });
        }
        fixture
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn updates_are_ordered_once_recorded_on_a_machine_without_use_whose_host_and_request_are_live(fixture in host_with_updates()) {
        let plan = fixture.plan();
        prop_assert!(plan == fixture.plan());
        let is_order = |action: &Action| matches!(action, Action::Ironic(order)
            if matches!(&order.request, Request::Provision(_, Transition::Clean(steps)) if !firmware::in_steps(steps).is_empty()));
        let Some(at) = plan.actions.iter().position(is_order) else {
            return Ok(());
        };
        let recorded = plan.actions.iter().position(|action| matches!(action, Action::RecordUpdates(_)));
        prop_assert!(recorded.is_some_and(|recorded| recorded < at));
        let (node, freshness) = fixture.node.clone().flatten().unwrap();
        prop_assert_eq!(fixture.state().to_string(), "preparing");
        prop_assert!(fixture.host_freshness == HostFreshness::Live && freshness >= NodeFreshness::Live);
        prop_assert!(fixture.components_freshness == HostFreshness::Live && !fixture.is_firmware_status_refused);
        prop_assert!(node["instance_uuid"].is_null() || node["instance_uuid"] == UID);
        prop_assert!(node["maintenance"] == json!(false) && node["fault"].is_null());
        prop_assert!(node["driver_internal_info"]["redfish_fw_updates"].as_array().unwrap().is_empty(), "it is not requested");
        prop_assert!(fixture.host["spec"]["externallyProvisioned"] != json!(true));
        prop_assert!(!must_be_left_alone(&fixture));
    }

    #[test]
    fn nothing_is_written_for_a_host_that_is_left_alone(fixture in host_with_updates()) {
        let plan = fixture.plan();
        let is_write = |action: &Action| action.is_report() || matches!(action, Action::RecordUpdates(_));
        let writes = plan.actions.iter().filter(|action| is_write(action)).count();
        prop_assert!(writes == 0 || (plan.reads.is_empty() && !must_be_left_alone(&fixture)), "{}", fixture.line(&plan));
    }
}
