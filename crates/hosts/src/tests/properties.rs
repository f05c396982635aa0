//! What holds of every plan, whatever the facts.

use proptest::prelude::*;
use serde_json::json;

use super::scene::{OTHER_UID, Scene, UID, at, image};
use crate::action::{Harm, Order, Plan, Request, Step};
use crate::facts::{Cure, HostSeen, LastView, NodeSeen, Refused};
use crate::state::graph::{EDGES, STATES, name};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::slots::Turn;

const SEEN: [NodeSeen; 5] = [
    NodeSeen::Stale,
    NodeSeen::Current,
    NodeSeen::Abreast,
    NodeSeen::Live,
    NodeSeen::Created,
];

/// Annotations that change what is decided.
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

fn node() -> impl Strategy<Value = Option<Option<(serde_json::Value, NodeSeen)>>> {
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
        proptest::sample::select(SEEN.to_vec()),
        proptest::option::of(proptest::sample::select(vec!["a", "b"])),
    );
    let found = change.prop_map(|(state, instance, power, fault, error, maintenance, seen, written)| {
        let mut node = super::scene::node(state);
        node["instance_uuid"] = json!(instance);
        node["power_state"] = json!(power);
        node["fault"] = json!(fault);
        node["last_error"] = json!(error);
        node["maintenance"] = json!(maintenance);
        if let Some(name) = written {
            let image = image(name);
            node["instance_info"] = json!({ "image_source": image["url"], "image_os_hash_algo": "sha256",
                "image_os_hash_value": image["checksum"], "image_disk_format": "qcow2", "capabilities": {},
                "root_device": { "name": "s== /dev/sda" } });
            node["driver_info"]["force_persistent_boot_device"] = json!("Default");
        }
        Some(Some((node, seen)))
    });
    prop_oneof![6 => found, 1 => Just(None), 1 => Just(Some(None))]
}

prop_compose! {
    fn wish()(
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
    fn mood()(
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
    fn scene()(
        state in state(), node in node(), wish in wish(), mood in mood(),
        annotations in proptest::collection::vec(proptest::sample::select(ANNOTATIONS.to_vec()), 0..3),
        deleted in any::<bool>(), is_live in any::<bool>(), was_paused in proptest::bool::weighted(0.2),
        secret in 0_u8..6, known in any::<[bool; 4]>(), turn in 0_u8..3, left in 0_u32..2, hours in 0_i64..3,
        refused in proptest::option::of(proptest::sample::select(vec!["manage", "soft power off"])),
    ) -> Scene {
        let status = json!({ "operationalStatus": "OK", "errorMessage": "", "poweredOn": false, "lastUpdated": at(0),
            "lastAttemptedImage": image("a"),
            "provisioning": { "state": state, "ID": "" } });
        let mut scene = Scene::new(&state).status(status).host(wish).status(mood);
        for (name, value) in annotations { scene = scene.annotated(name, value); }
        if deleted { scene = scene.deleted(); }
        scene.node = node;
        if is_live { scene.host_seen = HostSeen::Live; }
        scene.before = LastView { paused: was_paused, moving: false };
        match secret { 0 => scene.credentials = None, 1 => scene.credentials = Some(None), _ => {} }
        if known[0] { scene.ports = Some(Vec::new()); }
        if known[1] { scene.inventory = Some(None); }
        if known[2] { scene.hardware_data = None; }
        if known[3] { scene.validation = serde_json::from_value(json!({})).ok(); }
        scene.turn = [None, Some(Turn::Granted), Some(Turn::Waiting { ahead: 1 })][usize::from(turn)];
        scene.left = left;
        scene.refused = refused.map(|request| Refused { request, cure: Cure::Change, message: "no".into(), is_fresh: false });
        scene.history = Some(None);
        scene.later(hours)
    }
}

fn orders(plan: &Plan) -> impl Iterator<Item = &Order> {
    plan.steps.iter().filter_map(|step| match step {
        Step::Ironic(order) => Some(order),
        _ => None,
    })
}

/// Whether the host of the scene must not be touched, whatever else is true.
fn is_untouchable(scene: &Scene) -> bool {
    let has = |name: &str| scene.host["metadata"]["annotations"].get(name).is_some();
    has("baremetalhost.metal3.io/paused") || has("clusterctl.cluster.x-k8s.io/delete-for-move")
}

/// Whether a deployment whose agent does not come may be given up: a reboot is forced, and Ironic works with the node.
fn is_begun_anew(scene: &Scene) -> bool {
    let (node, _) = scene.node.clone().flatten().unwrap();
    let wish = &scene.host["metadata"]["annotations"]["reboot.metal3.io"];
    let is_forced = wish.as_str().is_some_and(|text| text.contains(r#""force":true"#));
    let works = node["maintenance"] == json!(false) && node["fault"].is_null();
    scene.state().to_string() == "provisioning" && node["provision_state"] == "wait call-back" && is_forced && works
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_plan_is_made_of_any_facts_and_is_the_same_each_time(scene in scene()) {
        let plan = scene.plan();
        prop_assert!(plan == scene.plan());
        prop_assert!(plan.reads.is_empty() || plan.steps.is_empty() && plan.events.is_empty() && !plan.spends_budget);
        let statuses = plan.steps.iter().filter(|step| matches!(step, Step::PatchStatus(_))).count();
        let hosts = plan.steps.iter().filter(|step| matches!(step, Step::PatchHost(_))).count();
        prop_assert!(statuses + hosts <= 1, "the version that the second relies on is not known");
    }

    #[test]
    fn a_host_goes_only_ways_of_the_graph(scene in scene()) {
        let plan = scene.plan();
        let (from, to) = (scene.state(), scene.after(&plan).status.provisioning.state);
        let from_name = if from.to_string() == "ready" { "available".to_owned() } else { name(&from) };
        let is_way = EDGES.iter().any(|edge| name(&edge.from) == from_name && edge.to == to);
        prop_assert!(from == to || is_way, "{from} to {to}");
    }

    #[test]
    fn nothing_is_erased_without_recorded_intent_and_a_live_look(scene in scene()) {
        let plan = scene.plan();
        for order in orders(&plan).filter(|order| order.request.harm() == Harm::Erases) {
            let state = scene.state().to_string();
            let fits = match &order.request {
                Request::Provision(_, Transition::Provide) => state == "provisioning" || state == "deprovisioning",
                Request::Provision(_, Transition::Deploy { .. }) => state == "provisioning",
                Request::Provision(_, Transition::Delete) => state == "deprovisioning" || is_begun_anew(&scene),
                _ => false,
            };
            prop_assert!(fits, "{} in {state}", order.request.verb());
            prop_assert!(scene.host_seen == HostSeen::Live);
            let (node, seen) = scene.node.clone().flatten().unwrap();
            prop_assert!(seen >= NodeSeen::Live);
            prop_assert!(node["instance_uuid"].is_null() || node["instance_uuid"] == UID);
            prop_assert!(scene.host["spec"]["externallyProvisioned"] != json!(true));
            prop_assert!(!is_untouchable(&scene));
            prop_assert!(order.audit.is_some());
        }
    }

    #[test]
    fn a_deployment_is_given_up_for_a_forced_reboot_of_a_node_of_ours_that_works(mut scene in scene(), is_forced in any::<bool>()) {
        scene.host["status"]["provisioning"]["state"] = json!("provisioning");
        scene.host["metadata"]["annotations"]["reboot.metal3.io"] = json!(if is_forced { r#"{"force":true}"# } else { "" });
        scene.host_seen = HostSeen::Live;
        if let Some(Some((node, seen))) = &mut scene.node {
            node["provision_state"] = json!("wait call-back");
            *seen = NodeSeen::Live;
        }
        let plan = scene.plan();
        let given_up = orders(&plan).filter(|order| order.request.harm() == Harm::Erases);
        for order in given_up {
            prop_assert!(matches!(order.request, Request::Provision(_, Transition::Delete)), "{}", order.request.verb());
            prop_assert!(is_begun_anew(&scene));
            let (node, _) = scene.node.clone().flatten().unwrap();
            prop_assert!(node["instance_uuid"].is_null() || node["instance_uuid"] == UID);
            prop_assert!(scene.host["spec"]["externallyProvisioned"] != json!(true) && !is_untouchable(&scene));
        }
    }

    #[test]
    fn nothing_runs_into_harm_from_the_unknown(scene in scene()) {
        let plan = scene.plan();
        let unknown = match &scene.node {
            None | Some(None) => true,
            Some(Some((_, seen))) => *seen == NodeSeen::Stale,
        };
        for order in orders(&plan) {
            let harm = order.request.harm();
            prop_assert!(harm == Harm::None || !unknown, "{}", order.request.verb());
            prop_assert!((harm == Harm::None) == order.audit.is_none());
            prop_assert!(!is_untouchable(&scene), "{}", order.request.verb());
        }
    }

    #[test]
    fn what_runs_and_stays_wanted_is_at_most_switched_as_asked(scene in scene()) {
        let state = scene.state().to_string();
        let is_running = state == "provisioned" || state == "externally provisioned";
        let plan = scene.plan();
        for request in plan.requests().filter(|_| is_running) {
            prop_assert!(request.harm() != Harm::Erases);
            if request.harm() == Harm::Interrupts {
                let annotations = scene.host["metadata"]["annotations"].as_object().unwrap();
                let asked = scene.host["spec"]["online"] == json!(false) || annotations.keys().any(|name| name.starts_with("reboot."));
                prop_assert!(asked && scene.host_seen == HostSeen::Live);
            }
        }
    }

    #[test]
    fn carried_out_once_a_plan_that_only_writes_the_host_is_not_made_again(scene in scene()) {
        let plan = scene.plan();
        let only_status = plan.steps.len() == 1 && matches!(plan.steps[0], Step::PatchStatus(_));
        if only_status {
            let mut next = scene.clone();
            next.host = serde_json::to_value(scene.after(&plan)).unwrap();
            let mut lines = Vec::new();
            // Several states may be passed through; then nothing is written any more.
            loop {
                let plan = next.plan();
                let writes = plan.steps.iter().any(|step| matches!(step, Step::PatchStatus(_)));
                if !writes || plan.requests().next().is_some() {
                    break;
                }
                lines.push(next.line(&plan));
                next.host = serde_json::to_value(next.after(&plan)).unwrap();
                prop_assert!(lines.len() < 8, "{lines:#?}");
            }
        }
    }
}
