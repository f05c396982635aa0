//! Properties of every plan for a host with HostFirmwareSettings.

use metal3_ironic::calls::provision::Transition;
use metal3_runtime::plan::{Observed, UnknownReason};
use proptest::prelude::*;
use serde_json::json;

use super::fixture::{Fixture, UID, orders};
use super::properties::{fixture, must_be_left_alone};
use crate::action::{Action, Impact, Request};
use crate::facts::{CleaningProgress, HostFreshness, NodeFreshness};

prop_compose! {
    fn host_with_settings()(
        fixture in fixture(), is_prepared in any::<bool>(), asked in proptest::sample::select(vec!["Uefi", "bios", "Other"]),
        reported in proptest::option::of(proptest::sample::select(vec!["Uefi", "Bios"])),
        is_live in any::<bool>(), is_unreadable in any::<bool>(),
        progress in proptest::option::of(proptest::sample::select(vec![
            CleaningProgress::Unconfirmed, CleaningProgress::Begun, CleaningProgress::Failed,
        ])),
    ) -> Fixture {
        let mut fixture = fixture.settings(json!({ "Mode": asked }), json!([]));
        if is_prepared { fixture = fixture.status(json!({ "provisioning": { "state": "preparing" } })).live(); }
        if is_live { fixture.firmware_settings_freshness = HostFreshness::Live; }
        if is_unreadable { fixture.bios = Observed::Unknown(UnknownReason::Unreadable("x".to_owned())); }
        if let Some(reported) = reported { fixture = fixture.machine_reports(reported); }
        if let Some(progress) = progress { fixture = fixture.cleaning_order("Bios", progress); }
        fixture
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn settings_are_changed_only_on_a_machine_without_use_whose_host_and_settings_are_live(fixture in host_with_settings()) {
        let plan = fixture.plan();
        prop_assert!(plan == fixture.plan());
        for order in orders(&plan) {
            if !matches!(&order.request, Request::Provision(_, Transition::Clean(_))) {
                continue;
            }
            let (node, freshness) = fixture.node.clone().flatten().unwrap();
            prop_assert_eq!(order.request.impact(), Impact::Interrupts);
            prop_assert!(order.audit.is_some());
            prop_assert_eq!(fixture.state().to_string(), "preparing");
            prop_assert!(fixture.host_freshness == HostFreshness::Live && freshness >= NodeFreshness::Live);
            prop_assert!(fixture.firmware_settings_freshness == HostFreshness::Live);
            prop_assert!(node["instance_uuid"].is_null() || node["instance_uuid"] == UID);
            prop_assert!(node["maintenance"] == json!(false) && node["fault"].is_null());
            prop_assert!(fixture.host["spec"]["externallyProvisioned"] != json!(true));
            prop_assert!(!must_be_left_alone(&fixture));
        }
    }

    #[test]
    fn report_needs_no_read_and_is_not_written_for_a_host_that_is_left_alone(fixture in host_with_settings()) {
        let plan = fixture.plan();
        let reports = plan.actions.iter().filter(|action| action.is_report()).count();
        prop_assert!(reports == 0 || plan.reads.is_empty());
        prop_assert!(reports == 0 || !must_be_left_alone(&fixture), "{}", fixture.line(&plan));
        let is_schema = |action: &Action| matches!(action, Action::CreateFirmwareSchema(_));
        prop_assert!(reports <= 1 + plan.actions.iter().filter(|action| is_schema(action)).count());
    }
}
