//! What machines take over from their template.

use std::sync::Arc;

use metal3_runtime::plan::{Observed, Plan, UnknownReason};
use serde_json::{Value, json};

use super::case::{Case, blank, host_patch, writes};
use super::simulation::read;
use crate::machine::action::Reads;
use crate::machine::facts::template_of;

const GROUP_KIND: &str = "Metal3MachineTemplate.infrastructure.cluster.x-k8s.io";

pub(super) fn cloned(case: Case) -> Case {
    case.machine(json!({ "metadata": { "annotations": {
        "cluster.x-k8s.io/cloned-from-name": "workers",
        "cluster.x-k8s.io/cloned-from-groupkind": GROUP_KIND,
    } } }))
}

fn template(mode: Value) -> Observed<Arc<metal3_api::infrastructure::v1beta2::Metal3MachineTemplate>> {
    let spec = json!({ "template": { "spec": { "automatedCleaningMode": mode } } });
    Observed::Present(Arc::new(read(
        &json!({ "metadata": { "name": "workers" }, "spec": spec }),
    )))
}

#[test]
fn template_of_a_machine_is_of_the_right_kind_and_group() {
    for (name, group_kind, expected) in [
        ("workers", GROUP_KIND, Some("workers")),
        ("", GROUP_KIND, None),
        (
            "workers",
            "Metal3MachineTemplate.infrastructure.cluster.x-k8s.io.example.org",
            None,
        ),
        ("workers", "ByoMachineTemplate.infrastructure.cluster.x-k8s.io", None),
        ("workers", "Metal3MachineTemplate", None),
    ] {
        let case = Case::new().machine(json!({ "metadata": { "annotations": {
            "cluster.x-k8s.io/cloned-from-name": name, "cluster.x-k8s.io/cloned-from-groupkind": group_kind,
        } } }));
        assert_eq!(template_of(&case.machine), expected, "{name} {group_kind}");
    }
}

#[test]
fn template_sets_the_cleaning_mode_of_its_machine_with_one_write_and_none_when_equal() {
    let unreadable = || Observed::Unknown(UnknownReason::Unreadable("it is odd".to_owned()));
    let (none, disabled, metadata) = (Value::Null, json!("disabled"), json!("metadata"));
    for (template, machine, is_written) in [
        (template(disabled.clone()), none.clone(), true),
        (template(disabled.clone()), metadata.clone(), true),
        (template(disabled.clone()), disabled.clone(), false),
        // A template without a mode clears nothing.
        (template(none.clone()), disabled.clone(), false),
        (template(none), metadata.clone(), false),
        (Observed::Absent, metadata.clone(), false),
        (unreadable(), metadata, false),
    ] {
        let mut case = cloned(Case::running()).machine(json!({ "spec": { "automatedCleaningMode": machine } }));
        case = case.host(json!({ "spec": { "automatedCleaningMode": machine } }));
        case.template = template;
        let found = writes(&case.decide());
        let expected = ["machine automatedCleaningMode".to_owned()];
        assert_eq!(
            found == expected,
            is_written,
            "{found:?} for {machine} and {:?}",
            case.template
        );
        assert!(
            is_written || !found.iter().any(|write| write.contains("automatedCleaningMode")),
            "{found:?}"
        );
    }
}

#[test]
fn paused_machine_takes_nothing_over() {
    let paused = json!({ "metadata": { "annotations": { "cluster.x-k8s.io/paused": "" } } });
    let case = cloned(Case::running())
        .machine(paused)
        .with(|case| case.template = template(json!("disabled")));
    assert!(writes(&case.decide()).is_empty());
}

#[test]
fn image_is_removed_with_the_cleaning_mode_of_the_template_after_a_live_read_of_it() {
    let deleting = |mode: Value| {
        cloned(Case::running()).deleting().with(|case| {
            case.template = template(mode);
            case.confirmed = true;
        })
    };
    for mode in [Value::Null, json!("metadata")] {
        let mut case = deleting(mode);
        assert_eq!(case.decide(), Plan::reading(Reads::Template("workers".to_owned())));
        // The cache was behind: the live template forbids the cleaning.
        case.template = template(json!("disabled"));
        case.template_is_live = true;
        let plan = case.decide();
        assert_eq!(writes(&plan), ["Deprovision h0"], "the machine itself is not written");
        let spec = &host_patch(&plan)["spec"];
        assert_eq!(
            (&spec["automatedCleaningMode"], &spec["image"]),
            (&json!("disabled"), &Value::Null)
        );
    }
    let plan = deleting(json!("disabled")).decide();
    assert_eq!(
        host_patch(&plan)["spec"]["automatedCleaningMode"],
        "disabled",
        "no read is needed"
    );
}

#[test]
fn machine_of_a_deleted_template_keeps_its_own_mode() {
    let case = cloned(Case::running())
        .machine(json!({ "spec": { "automatedCleaningMode": "disabled" } }))
        .deleting()
        .with(|case| case.confirmed = true);
    assert_eq!(host_patch(&case.decide())["spec"]["automatedCleaningMode"], "disabled");
    let own = Case::running().deleting().with(|case| case.confirmed = true).decide();
    assert_eq!(
        writes(&own),
        ["Deprovision h0"],
        "a machine without template reads none"
    );
}

#[test]
fn host_without_image_is_released_without_reading_the_template() {
    let case = cloned(Case::running())
        .host(blank())
        .deleting()
        .with(|case| case.confirmed = true);
    assert!(writes(&case.decide()).contains(&"Release h0".to_owned()));
}
