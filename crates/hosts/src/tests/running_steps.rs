//! The running step of Ironic in the conditions.

use serde_json::{Value, json};

use super::fixture::{Fixture, at, has_writes};
use super::rows::given::{preparing, provisioned, provisioning};

const ANNOTATION: &str = "baremetalhost.metal3.io/show-steps";

fn message(host: &Value, type_: &str) -> String {
    let conditions = host["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|one| one["type"] == type_).unwrap();
    found["message"].as_str().unwrap_or_default().to_owned()
}

fn after(fixture: &Fixture) -> Value {
    serde_json::to_value(fixture.after(&fixture.plan())).unwrap()
}

fn cleaning(step: &str, index: usize) -> Value {
    json!({ "clean_step": { "interface": "deploy", "step": step, "args": { "token": "hunter2" } },
        "driver_internal_info": { "clean_steps": [{}, {}, {}], "clean_step_index": index } })
}

#[test]
fn running_step_is_shown_once_the_annotation_asks_for_it() {
    let silent = preparing().node_with("clean wait", cleaning("erase_devices", 1));
    assert_eq!(message(&after(&silent), "Progressing"), "");
    let asked = silent.annotated(ANNOTATION, "");
    let first = after(&asked);
    let shown = message(&first, "Progressing");
    assert!(
        shown.starts_with("clean step 2 of 3: deploy.erase_devices, since "),
        "{shown}"
    );
    assert!(!first.to_string().contains("hunter2"));
    // Later, with the same step: nothing is written.
    let later = asked.with(|fixture| (fixture.host, fixture.now) = (first, at(600)));
    assert!(!has_writes(&later.plan()), "{}", later.summary());
    let next = later.node_with("clean wait", cleaning("erase_devices_metadata", 2));
    let next = message(&after(&next), "Progressing");
    assert!(
        next.starts_with("clean step 3 of 3: deploy.erase_devices_metadata, since "),
        "{next}"
    );
    let time = |text: &str| text.split_once(", since ").map(|(_, time)| time.to_owned());
    assert_ne!(time(&next), time(&shown));
}

#[test]
fn running_step_of_a_deployment_or_a_service_is_shown_until_its_end() {
    let writing = json!({ "deploy_step": { "interface": "deploy", "step": "write_image" },
        "driver_internal_info": { "deploy_steps": [{}, {}], "deploy_step_index": 0 } });
    let deploying = provisioning()
        .annotated(ANNOTATION, "")
        .node_with("wait call-back", writing);
    let shown = after(&deploying);
    assert!(message(&shown, "Progressing").starts_with("deploy step 1 of 2: deploy.write_image, since "));
    let idle = deploying.with(|fixture| fixture.host = shown).node("deploying");
    assert_eq!(message(&after(&idle), "Progressing"), "");
    let step = json!({ "power_state": "power on", "service_step": { "interface": "bios", "step": "apply_configuration" },
        "driver_internal_info": { "service_steps": [{}], "service_step_index": 0 } });
    let servicing = provisioned().annotated(ANNOTATION, "").node_with("servicing", step);
    let servicing = after(&servicing);
    let ready = message(&servicing, "Ready");
    assert!(
        ready.starts_with("Ironic services the machine")
            && ready.contains(". service step 1 of 1: bios.apply_configuration, since "),
        "{ready}"
    );
    assert_eq!(message(&servicing, "Progressing"), "");
}
