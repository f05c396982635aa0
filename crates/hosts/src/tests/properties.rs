//! Properties of every plan, for arbitrary facts.

use proptest::prelude::*;
use serde_json::json;

use super::fixture::{Fixture, OTHER_UID, UID, at, has_writes, image, orders, requests};
use super::rows::given::{configured, with};
use crate::action::{Action, Impact, Request};
use crate::facts::{HostFreshness, NodeFreshness, PreviousView, RefusalClass, Refused, RequestedReboot};
use crate::plan::state::graph::{EDGES, STATES, name};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::slots::SlotState;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;

const FRESHNESS: [NodeFreshness; 5] = [
    NodeFreshness::Stale,
    NodeFreshness::Current,
    NodeFreshness::InState,
    NodeFreshness::Live,
    NodeFreshness::Created,
];

/// Annotations that change the decision.
const ANNOTATIONS: [(&str, &str); 10] = [
    ("baremetalhost.metal3.io/paused", ""),
    ("clusterctl.cluster.x-k8s.io/delete-for-move", ""),
    ("baremetalhost.metal3.io/detached", ""),
    (
        "baremetalhost.metal3.io/detached",
        r#"{"force":true,"deleteAction":"delete"}"#,
    ),
    ("baremetalhost.metal3.io/status", "{"),
    ("reboot.metal3.io", r#"{"mode":"hard","force":true}"#),
    ("reboot.metal3.io/x", "nonsense"),
    ("inspect.metal3.io", ""),
    ("inspect.metal3.io/hardwaredetails", "{}"),
    ("baremetalhost.metal3.io/confirm-deprovision", ""),
];

fn state() -> impl Strategy<Value = String> {
    let texts: Vec<String> = STATES
        .iter()
        .map(ToString::to_string)
        .chain(["ready".into(), "polishing".into()])
        .collect();
    proptest::sample::select(texts)
}

fn node() -> impl Strategy<Value = Option<Option<(serde_json::Value, NodeFreshness)>>> {
    let states: Vec<&str> = ProvisionState::KNOWN
        .iter()
        .map(ProvisionState::as_str)
        .chain(["polishing"])
        .collect();
    let change = (
        proptest::sample::select(states),
        proptest::option::of(proptest::sample::select(vec![UID, OTHER_UID])),
        proptest::option::of(proptest::sample::select(vec!["power on", "power off", "error"])),
        proptest::option::of(proptest::sample::select(vec!["power failure", "clean failure"])),
        proptest::option::of(Just("power: broken")),
        any::<bool>(),
        proptest::sample::select(FRESHNESS.to_vec()),
        proptest::option::of(proptest::sample::select(vec!["a", "b"])),
    );
    let found = change.prop_map(
        |(state, instance, power, fault, error, maintenance, freshness, written)| {
            let mut node = super::fixture::node(state);
            node["instance_uuid"] = json!(instance);
            node["power_state"] = json!(power);
            node["fault"] = json!(fault);
            node["last_error"] = json!(error);
            node["maintenance"] = json!(maintenance);
            if let Some(name) = written {
                node = with(node, configured(name));
            }
            Some(Some((node, freshness)))
        },
    );
    prop_oneof![6 => found, 1 => Just(None), 1 => Just(Some(None))]
}

prop_compose! {
    fn host_change()(
        online in any::<bool>(),
        asked in proptest::option::of(proptest::sample::select(vec!["a", "b"])),
        runs in proptest::option::of(proptest::sample::select(vec!["a", "b"])),
        external in any::<bool>(),
        never_off in proptest::bool::weighted(0.2),
        uninspected in proptest::bool::weighted(0.2),
        address in proptest::sample::select(vec![
            "redfish-virtualmedia://192.0.2.10/redfish/v1/Systems/1", "redfish://192.0.2.10/redfish/v1/Systems/1", "", "pigeon://x",
        ]),
    ) -> serde_json::Value {
        let mut host = json!({
            "spec": { "online": online, "disablePowerOff": never_off, "bmc": { "address": address } },
            "status": {},
        });
        if external { host["spec"]["externallyProvisioned"] = json!(true); }
        if uninspected { host["spec"]["inspectionMode"] = json!("disabled"); }
        if let Some(asked) = asked { host["spec"]["image"] = image(asked); }
        if let Some(runs) = runs { host["status"] = json!({ "provisioning": { "image": image(runs) } }); }
        host
    }
}

prop_compose! {
    fn error_state()(
        error in proptest::option::of(proptest::sample::select(vec![
            "registration error", "provisioning error", "power management error", "inspection error",
        ])),
        count in 0_i64..6,
        fails in 0_i64..7,
        operational in proptest::sample::select(vec!["OK", "error", "delayed", "detached", ""]),
    ) -> serde_json::Value {
        json!({ "errorType": error, "errorCount": count, "provisioningFailCount": fails, "operationalStatus": operational,
            "errorMessage": if error.is_some() { "power: broken" } else { "" } })
    }
}

prop_compose! {
    pub(super) fn fixture()(
        state in state(), node in node(), host_change in host_change(), error_state in error_state(),
        annotations in proptest::collection::vec(proptest::sample::select(ANNOTATIONS.to_vec()), 0..3),
        deleted in any::<bool>(), is_live in any::<bool>(), was_paused in proptest::bool::weighted(0.2),
        secret in 0_u8..6, known in any::<[bool; 4]>(), slot in 0_u8..3, left in 0_u32..2, hours in 0_i64..3,
        refused in proptest::option::of(proptest::sample::select(vec!["manage", "soft power off"])),
        requested_power in proptest::option::of(any::<bool>()), requested_reboot in any::<bool>(), aborts_deployments in any::<bool>(),
        erasing in proptest::sample::select(vec![Observed::Present(()), Observed::Absent, Observed::Unknown(UnknownReason::NotRead)]),
    ) -> Fixture {
        let status = json!({ "operationalStatus": "OK", "errorMessage": "", "poweredOn": false, "lastUpdated": at(0),
            "lastAttemptedImage": image("a"),
            "provisioning": { "state": state, "ID": "" } });
        let mut fixture = Fixture::new(&state).status(status).host(host_change).status(error_state);
        for (name, value) in annotations { fixture = fixture.annotated(name, value); }
        if deleted { fixture = fixture.deleted(); }
        fixture.node = node;
        if is_live { fixture.host_freshness = HostFreshness::Live; }
        fixture.previous = PreviousView { paused: was_paused, moving: false };
        match secret { 0 => fixture.credentials = None, 1 => fixture.credentials = Some(None), _ => {} }
        if known[0] { fixture.ports = Some(Vec::new()); }
        if known[1] { fixture.inventory = Some(None); }
        if known[2] { fixture.hardware_data = None; }
        if known[3] { fixture.validation = serde_json::from_value(json!({})).ok(); }
        fixture.slot = [None, Some(SlotState::Granted), Some(SlotState::Waiting { ahead: 1 })][usize::from(slot)];
        fixture.left = left;
        fixture.refused = refused.map(|request| Refused { request, class: RefusalClass::Invalid, message: "no".into(), is_fresh: false, is_over: false, is_lock: false });
        fixture.history = Some(None);
        fixture.requested_power = requested_power;
        fixture.requested_reboot = requested_reboot.then_some(RequestedReboot::Accepted);
        fixture.aborts_deployments = aborts_deployments;
        fixture.erasing = erasing;
        fixture.hours_later(hours)
    }
}

/// Whether the host must not be touched, whatever else is true.
pub(super) fn must_be_left_alone(fixture: &Fixture) -> bool {
    let has = |name: &str| fixture.host["metadata"]["annotations"].get(name).is_some();
    has("baremetalhost.metal3.io/paused") || has("clusterctl.cluster.x-k8s.io/delete-for-move")
}

/// Whether a deployment that waits for its agent may be restarted: a reboot is forced, and Ironic operates the node.
fn is_restarted(fixture: &Fixture) -> bool {
    let (node, _) = fixture.node.clone().flatten().unwrap();
    let annotation = &fixture.host["metadata"]["annotations"]["reboot.metal3.io"];
    let is_forced = annotation.as_str().is_some_and(|text| text.contains(r#""force":true"#));
    let works = node["maintenance"] == json!(false) && node["fault"].is_null();
    fixture.state().to_string() == "provisioning" && node["provision_state"] == "wait call-back" && is_forced && works
}

/// Whether a deployment that waits for its agent may be ended by a tear-down: the node is to be deleted, and Ironic does not
/// abort deployments.
fn is_ended(fixture: &Fixture) -> bool {
    let (node, _) = fixture.node.clone().flatten().unwrap();
    let metadata = &fixture.host["metadata"];
    let is_deleted = metadata["deletionTimestamp"].is_string() && fixture.state().to_string() == "deleting";
    let annotation = &metadata["annotations"]["baremetalhost.metal3.io/detached"];
    let is_detached = annotation.as_str().is_some_and(|text| text.contains(r#""force":true"#));
    node["provision_state"] == "wait call-back" && !fixture.aborts_deployments && (is_deleted || is_detached)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn planning_is_deterministic_for_any_facts(fixture in fixture()) {
        let plan = fixture.plan();
        prop_assert!(plan == fixture.plan());
        prop_assert!(plan.reads.is_empty() || plan.actions.is_empty() && plan.status.is_none() && plan.events.is_empty());
        let hosts = plan.actions.iter().filter(|action| matches!(action, Action::PatchHost(_))).count();
        prop_assert!(usize::from(plan.status.is_some()) + hosts <= 1, "the version that the second relies on is not known");
    }

    #[test]
    fn state_changes_follow_the_graph(fixture in fixture()) {
        let plan = fixture.plan();
        let (from, to) = (fixture.state(), fixture.after(&plan).status.provisioning.state);
        let from_name = if from.to_string() == "ready" { "available".to_owned() } else { name(&from) };
        let has_edge = EDGES.iter().any(|edge| name(&edge.from) == from_name && edge.to == to);
        prop_assert!(from == to || has_edge, "{from} to {to}");
    }

    #[test]
    fn deleted_host_ends_or_waits_for_something(fixture in fixture()) {
        let plan = fixture.plan();
        let is_silent = plan.next == Next::Done && !has_writes(&plan);
        let is_deleted = fixture.host["metadata"]["deletionTimestamp"].is_string();
        prop_assert!(!(is_silent && is_deleted && plan.reads.is_empty()), "{}", fixture.line(&plan));
        if let Next::Waiting(waiting) = &plan.next {
            prop_assert!(!waiting.message.starts_with("no transition"), "{}", waiting.message);
        }
    }

    #[test]
    fn nothing_is_erased_without_recorded_state_and_live_reads(fixture in fixture()) {
        let plan = fixture.plan();
        for order in orders(&plan).filter(|order| order.request.impact() == Impact::Erases) {
            let state = fixture.state().to_string();
            let fits = match &order.request {
                Request::Provision(_, Transition::Provide) => state == "provisioning" || state == "deprovisioning",
                Request::Provision(_, Transition::Deploy { .. }) => state == "provisioning",
                Request::Provision(_, Transition::Delete) => {
                    state == "deprovisioning" || is_restarted(&fixture) || is_ended(&fixture)
                }
                _ => false,
            };
            prop_assert!(fits, "{} in {state}", order.request.verb());
            prop_assert!(fixture.host_freshness == HostFreshness::Live);
            let (node, freshness) = fixture.node.clone().flatten().unwrap();
            prop_assert!(freshness >= NodeFreshness::Live);
            prop_assert!(node["instance_uuid"].is_null() || node["instance_uuid"] == UID);
            prop_assert!(fixture.host["spec"]["externallyProvisioned"] != json!(true));
            prop_assert!(!must_be_left_alone(&fixture));
            prop_assert!(order.audit.is_some());
        }
    }

    #[test]
    fn deployment_is_restarted_only_for_a_forced_reboot_of_an_owned_operable_node(mut fixture in fixture(), is_forced in any::<bool>()) {
        fixture.host["status"]["provisioning"]["state"] = json!("provisioning");
        fixture.host["metadata"]["annotations"]["reboot.metal3.io"] = json!(if is_forced { r#"{"force":true}"# } else { "" });
        fixture.host_freshness = HostFreshness::Live;
        if let Some(Some((node, freshness))) = &mut fixture.node {
            node["provision_state"] = json!("wait call-back");
            *freshness = NodeFreshness::Live;
        }
        let plan = fixture.plan();
        let erasing = orders(&plan).filter(|order| order.request.impact() == Impact::Erases);
        for order in erasing {
            prop_assert!(matches!(order.request, Request::Provision(_, Transition::Delete)), "{}", order.request.verb());
            prop_assert!(is_restarted(&fixture) || is_ended(&fixture));
            let (node, _) = fixture.node.clone().flatten().unwrap();
            prop_assert!(node["instance_uuid"].is_null() || node["instance_uuid"] == UID);
            prop_assert!(fixture.host["spec"]["externallyProvisioned"] != json!(true) && !must_be_left_alone(&fixture));
        }
    }

    #[test]
    fn record_of_a_node_is_deleted_only_for_a_host_that_was_read_live(fixture in fixture()) {
        let plan = fixture.plan();
        let removes = orders(&plan).any(|order| order.request.impact() == Impact::RemovesRecord);
        prop_assert!(!removes || fixture.host_freshness == HostFreshness::Live, "{}", fixture.line(&plan));
        let ends_maintenance = requests(&plan).any(|request| matches!(request, Request::ClearMaintenance(_)));
        let is_live = matches!(&fixture.node, Some(Some((_, freshness))) if *freshness >= NodeFreshness::Live);
        prop_assert!(!ends_maintenance || is_live, "{}", fixture.line(&plan));
    }

    #[test]
    fn unknown_node_gets_no_disruptive_request(fixture in fixture()) {
        let plan = fixture.plan();
        let unknown = match &fixture.node {
            None | Some(None) => true,
            Some(Some((_, freshness))) => *freshness == NodeFreshness::Stale,
        };
        for order in orders(&plan) {
            let impact = order.request.impact();
            prop_assert!(impact == Impact::None || !unknown, "{}", order.request.verb());
            prop_assert!((impact == Impact::None) == order.audit.is_none());
            prop_assert!(!must_be_left_alone(&fixture), "{}", order.request.verb());
        }
    }

    #[test]
    fn running_host_gets_only_requested_power_changes(fixture in fixture()) {
        let state = fixture.state().to_string();
        let is_running = state == "provisioned" || state == "externally provisioned";
        let plan = fixture.plan();
        for request in requests(&plan).filter(|_| is_running) {
            prop_assert!(request.impact() != Impact::Erases);
            if request.impact() == Impact::Interrupts {
                let annotations = fixture.host["metadata"]["annotations"].as_object().unwrap();
                let asked = fixture.host["spec"]["online"] == json!(false) || annotations.keys().any(|name| name.starts_with("reboot."));
                prop_assert!(asked && fixture.host_freshness == HostFreshness::Live);
            }
        }
    }

    #[test]
    fn applied_status_plan_is_not_repeated(fixture in fixture()) {
        let plan = fixture.plan();
        let is_kept = |action: &Action| action.is_record() || *action == Action::ReserveBudget;
        let only_status = plan.status.is_some() && plan.actions.iter().all(is_kept);
        if only_status {
            let mut next = fixture.clone();
            next.host = serde_json::to_value(fixture.after(&plan)).unwrap();
            let mut lines = Vec::new();
            // Several states may be passed; then nothing is written any more.
            loop {
                let plan = next.plan();
                if plan.status.is_none() || requests(&plan).next().is_some() {
                    break;
                }
                lines.push(next.line(&plan));
                next.host = serde_json::to_value(next.after(&plan)).unwrap();
                prop_assert!(lines.len() < 8, "{lines:#?}");
            }
        }
    }
}
