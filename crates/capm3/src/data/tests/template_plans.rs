//! Plans of a template.

use std::collections::BTreeMap;

use metal3_api::infrastructure::names::{DATA_CLAIM_FINALIZER, DATA_TEMPLATE_FINALIZER};
use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3DataTemplate};
use metal3_api::meta::Time;
use metal3_runtime::cache::Key;
use metal3_runtime::work::Next;
use serde_json::json;

use super::super::template::plan::{Action, Facts, Plan, plan};
use super::{fixture, metadata, owner, read};

fn claim() -> Metal3DataClaim {
    let mut meta = metadata("w-0");
    meta["ownerReferences"] = owner("Metal3Machine", "w-0", "uid-machine");
    meta["finalizers"] = json!([DATA_CLAIM_FINALIZER]);
    read(json!({ "metadata": meta, "spec": { "template": { "name": "tpl" } } }))
}

fn template() -> Metal3DataTemplate {
    let mut template = fixture(json!({})).template;
    template.metadata.finalizers = Some(vec![DATA_TEMPLATE_FINALIZER.to_owned()]);
    template
}

fn planned(
    template: &Metal3DataTemplate,
    claims: &[&Metal3DataClaim],
    unreadable: Option<(&'static str, &str)>,
) -> Plan {
    plan(&Facts {
        key: &Key::of(template),
        template: Some(template),
        unreadable: None,
        objects: &[],
        claims,
        unreadable_object: unreadable.map(|(kind, name)| (kind, name.to_owned())),
        paused: &[],
        read: &BTreeMap::new(),
        listed: true,
        now: Time::default(),
    })
}

#[test]
fn claim_that_waits_for_an_unreadable_object_reports_it() {
    let (template, mut waiting) = (template(), claim());
    let unreadable = Some(("Metal3Data", "tpl-7"));
    let plan = planned(&template, &[&waiting], unreadable);
    let chains: Vec<&[Action]> = plan.actions.iter().map(Vec::as_slice).collect();
    let [[Action::PatchClaimStatus(name, patch)]] = &chains[..] else {
        panic!("{plan:?}")
    };
    let status = patch.clone().into_document()["status"].take();
    let message = status["errorMessage"].as_str().unwrap().to_owned();
    assert_eq!(name, "w-0");
    assert!(
        message.contains("Metal3Data tpl-7") && message.contains("correct it"),
        "{message}"
    );
    waiting.status.error_message = Some(message.clone());
    let plan = planned(&template, &[&waiting], unreadable);
    assert!(plan.actions.is_empty());
    assert!(
        matches!(&plan.next, Next::Waiting(on) if on.message == message),
        "{:?}",
        plan.next
    );
    let plan = planned(&template, &[&waiting], None);
    assert!(
        matches!(plan.actions[0][..], [Action::Create(_), Action::PatchClaimStatus(..)]),
        "{plan:?}"
    );
}

#[test]
fn template_in_deletion_that_waits_for_an_unreadable_object_says_so() {
    let mut template = template();
    template.metadata.deletion_timestamp = read(json!("2026-01-01T00:00:00Z"));
    let plan = planned(&template, &[], Some(("Metal3DataClaim", "w-9")));
    assert!(plan.actions.is_empty());
    assert!(
        matches!(&plan.next, Next::Waiting(on) if on.message.contains("Metal3DataClaim w-9")),
        "{:?}",
        plan.next
    );
    let plan = planned(&template, &[], None);
    assert!(matches!(plan.actions[0][..], [Action::PatchTemplate(_)]), "{plan:?}");
}
