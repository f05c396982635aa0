//! The step that Ironic executes, in the messages of the conditions, for hosts whose annotation asks for it.
//!
//! Each step is one write of the status. Only kind, number, interface and name are shown: arguments may contain secrets. Ironic does not
//! record when a step began, so the time is that of the first observation.

use chrono::{DateTime, SecondsFormat};
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::names::host_condition as of;
use metal3_ironic::model::node::{Node, RunningStep};

use crate::names::{SHOW_STEPS_ANNOTATION, reason};
use crate::plan::planner::Planner;

/// The longest interface or name that is shown.
const LONGEST: usize = 64;
const SINCE: &str = ", since ";

/// What is shown of the step that Ironic executes for the host.
// differs: `host-running-step`. The Go manager shows no step.
pub(crate) fn shown(planner: &Planner<'_>) -> Option<String> {
    planner.host().annotation(SHOW_STEPS_ANNOTATION)?;
    let (node, _) = planner.facts.own_node()?;
    node_step(node)
}

fn node_step(node: &Node) -> Option<String> {
    let RunningStep {
        kind,
        interface,
        name,
        number,
    } = node.running_step()?;
    let number = number
        .map(|(number, all)| format!(" {number} of {all}"))
        .unwrap_or_default();
    Some(format!("{kind} step{number}: {}.{}", short(interface), short(name)))
}

/// A name that a user chose.
fn short(name: &str) -> String {
    let plain = |letter: &char| letter.is_ascii_alphanumeric() || ['_', '-'].contains(letter);
    name.chars().filter(plain).take(LONGEST).collect()
}

/// Whether the condition says what is in progress.
pub(crate) fn is_about_progress(condition: &Condition) -> bool {
    let is_of_progress = condition.type_ == of::PROGRESSING && condition.status == ConditionStatus::True;
    is_of_progress || (condition.type_ == of::READY && condition.reason == reason::SERVICING.as_str())
}

/// The step with the time at which it was first observed: that of the former message, if it is about the same step.
pub(crate) fn since(step: &str, before: &[Condition], type_: &str, now: Time) -> String {
    let before = before.iter().find(|condition| condition.type_ == type_);
    let time = before.and_then(|before| {
        let (_, time) = before.message.split_once(&format!("{step}{SINCE}"))?;
        DateTime::parse_from_rfc3339(time).ok().map(|_| time.to_owned())
    });
    let time = time.unwrap_or_else(|| now.get().to_rfc3339_opts(SecondsFormat::Secs, true));
    format!("{step}{SINCE}{time}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::fixture::{at, node};

    fn of_node(state: &str, change: &Value) -> Option<String> {
        let mut node = node(state);
        metal3_runtime::patch::apply(change, &mut node);
        node_step(&serde_json::from_value(node).unwrap())
    }

    #[test]
    fn step_has_its_kind_number_interface_and_name_and_nothing_else() {
        let step = |interface: &str, name: &str| json!({ "interface": interface, "step": name, "args": { "password": "hunter2" }, "priority": 9 });
        let cleaning = json!({ "clean_step": step("raid", "create_configuration"),
            "driver_internal_info": { "clean_steps": [step("a", "b"), step("raid", "create_configuration")], "clean_step_index": 1 } });
        let shown = of_node("clean wait", &cleaning);
        assert_eq!(shown.as_deref(), Some("clean step 2 of 2: raid.create_configuration"));
        assert_eq!(of_node("cleaning", &cleaning), shown);
        for state in ["available", "clean failed", "deploying", "active", "servicing"] {
            assert_eq!(of_node(state, &cleaning), None, "{state}");
        }
        let deploying = json!({ "deploy_step": step("deploy", "write_image"),
            "driver_internal_info": { "deploy_steps": [1, 2, 3], "deploy_step_index": 0 } });
        assert_eq!(
            of_node("wait call-back", &deploying).as_deref(),
            Some("deploy step 1 of 3: deploy.write_image")
        );
        let service =
            json!({ "service_step": step("firmware", "update"), "driver_internal_info": { "service_step_index": 4 } });
        let unnumbered = of_node("service wait", &service);
        assert_eq!(
            unnumbered.as_deref(),
            Some("service step: firmware.update"),
            "its list is not known"
        );
        for (empty, state) in [
            (json!({}), "cleaning"),
            (json!({ "clean_step": {} }), "cleaning"),
            (json!({ "deploy_step": null }), "deploying"),
        ] {
            assert_eq!(of_node(state, &empty), None);
        }
        let long = json!({ "deploy_step": step("de\nploy", &format!("{}\u{7}é", "x".repeat(500))) });
        assert_eq!(
            of_node("deploying", &long),
            Some(format!("deploy step: deploy.{}", "x".repeat(64)))
        );
    }

    #[test]
    fn time_is_that_of_the_first_observation_of_the_step() {
        let condition = |message: &str| {
            let condition = json!({ "type": "Progressing", "status": "True", "reason": "Preparing", "message": message,
                "lastTransitionTime": at(0) });
            vec![serde_json::from_value::<Condition>(condition).unwrap()]
        };
        let step = "clean step 1 of 2: a.b";
        let first = since(step, &[], of::PROGRESSING, at(5));
        assert!(first.starts_with("clean step 1 of 2: a.b, since 2027-"), "{first}");
        assert_eq!(since(step, &condition(&first), of::PROGRESSING, at(90)), first);
        assert_eq!(
            since(
                step,
                &condition(&format!("Ironic services; {first}")),
                of::PROGRESSING,
                at(90)
            ),
            first
        );
        let next = since("clean step 2 of 2: a.b", &condition(&first), of::PROGRESSING, at(90));
        assert!(
            next.ends_with(&at(90).get().to_rfc3339_opts(SecondsFormat::Secs, true)),
            "{next}"
        );
        let forged = since(
            step,
            &condition(&format!("{step}, since ever")),
            of::PROGRESSING,
            at(90),
        );
        assert!(!forged.contains("ever"), "{forged}");
    }
}
