//! The machine as an owner of its host, which Go managers up to 1.13 write.

use metal3_runtime::queue::Outcome;
use serde_json::{Value, json};

use super::case::{Case, blank, condition_of, host_patch, writes};
use crate::machine::action::{Plan, Reads};
use crate::machine::conditions::OWNER_RETRY;
use crate::machine::facts::Facts;
use crate::machine::plan::plan;

const META: &str = "AssociateMetal3MachineMetaData";

/// The owners of a host as CAPM3 1.13 writes them, derived from its code, and one of a user.
fn owners_of_1_13() -> Value {
    json!([
        { "apiVersion": "example.org/v1", "kind": "Rack", "name": "r1", "uid": "uid-r1" },
        { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "uid": "uid-m0", "controller": true },
    ])
}

fn owned() -> Value {
    json!({ "metadata": { "ownerReferences": owners_of_1_13() } })
}

/// The owner of another kind.
fn kept() -> Value {
    json!([owners_of_1_13()[0]])
}

fn owners(plan: &Plan) -> Value {
    host_patch(plan)["metadata"]["ownerReferences"].clone()
}

/// The case with the status that its plan writes.
fn reported(case: Case) -> Case {
    let status = case.decide().status.unwrap().status;
    case.machine(json!({ "status": status }))
}

#[test]
fn no_write_that_the_machine_waits_for_contains_the_owners_of_its_host() {
    let deleted = |case: Case| case.deleting().with(|case| case.confirmed = true);
    let bare = |case: Case| case.machine(json!({ "spec": { "dataTemplate": null }, "status": null }));
    let table = [
        (
            "Provision h0",
            bare(Case::running())
                .host(blank())
                .host(owned())
                .with(|case| case.confirmed = true),
        ),
        ("Deprovision h0", deleted(Case::running().host(owned()))),
    ];
    for (write, case) in table {
        let plan = case.decide();
        assert!(
            writes(&plan).contains(&write.to_owned()),
            "{write}: {:?}",
            writes(&plan)
        );
        assert!(!writes(&plan).contains(&"Disown h0".to_owned()), "{write}");
        assert_eq!(owners(&plan), Value::Null, "{write}");
    }
}

/// A host of CAPM3 1.12 has the owner, and no block on moves: that release knows none.
#[test]
fn update_of_a_host_removes_the_owner_with_the_same_write() {
    let without_block = json!({ "metadata": { "annotations": null } });
    let mut case = Case::running().host(owned()).host(without_block);
    let update = |plan: &Plan| host_patch(plan)["metadata"]["annotations"].clone();
    let plan = case.decide();
    assert!(writes(&plan).contains(&"Disown h0".to_owned()), "{:?}", writes(&plan));
    assert_eq!(owners(&plan), kept());
    let block = update(&plan);
    assert!(block.is_object(), "the block on moves is in it: {block}");
    case.owner_refused = Some("forbidden".to_owned());
    let plan = case.decide();
    assert!(writes(&plan).contains(&"Update h0".to_owned()), "{:?}", writes(&plan));
    assert_eq!((owners(&plan), update(&plan)), (Value::Null, block));
}

#[test]
fn machine_is_removed_from_the_owners_of_its_host_when_nothing_else_is_to_be_written() {
    let case = Case::running()
        .machine(json!({ "spec": { "dataTemplate": null } }))
        .host(owned());
    assert_eq!(writes(&case.decide()), [""; 0], "the status is written first");
    let mut case = reported(case);
    let plan = case.decide();
    assert_eq!(writes(&plan), ["Disown h0"]);
    assert_eq!(owners(&plan), kept(), "the owner of another kind stays");
    assert_eq!(host_patch(&plan)["metadata"]["resourceVersion"], "5");
    case.owner_refused = Some("forbidden".to_owned());
    assert_eq!(writes(&case.decide()), [""; 0], "it is not tried again at once");
    assert_eq!(case.decide().status, None, "and nothing of the machine waits for it");
    assert_eq!(
        case.decide().next.outcome(),
        Outcome::RequeueAfter(OWNER_RETRY),
        "nothing else may ever change"
    );
    let disowned = case.host(json!({ "metadata": { "ownerReferences": kept() } }));
    assert_eq!(disowned.decide().next.outcome(), Outcome::Done);
}

#[test]
fn deleted_machine_is_removed_from_the_owners_before_its_host_is_released() {
    let mut case = Case::running().host(owned()).host(blank()).deleting();
    case.confirmed = true;
    assert_eq!(writes(&case.decide()), ["Disown h0"]);
    assert_eq!(owners(&case.decide()), kept());
    case.owner_refused = Some("forbidden: you can't delete".to_owned());
    let plan = case.decide();
    assert_eq!(writes(&plan), [""; 0]);
    let (reason, message) = condition_of(&plan, META);
    assert_eq!(reason, "DeletionFailed");
    for part in [
        "forbidden: you can't delete",
        "kubectl patch baremetalhost h0 --namespace metal --type=json",
        r#"{"op":"test","path":"/metadata/ownerReferences/1/uid","value":"uid-m0"},{"op":"remove","path":"/metadata/ownerReferences/1"}"#,
    ] {
        assert!(message.contains(part), "{message}");
    }
    let disowned = case.host(json!({ "metadata": { "ownerReferences": kept() } }));
    assert_eq!(
        writes(&disowned.decide()),
        ["secret None", "Release h0"],
        "a person removed it"
    );
}

#[test]
fn machine_keeps_its_finalizer_until_its_host_names_it_as_owner_no_more() {
    let freed = json!({ "spec": { "consumerRef": null } });
    let mut case = Case::running().host(blank()).host(owned()).host(freed).deleting();
    case.confirmed = true;
    assert_eq!(case.decide(), Plan::reading(Reads::Host("h0".to_owned())));
    case.is_live = true;
    assert_eq!(writes(&case.decide()), ["Disown h0"]);
    case.owner_refused = Some("forbidden".to_owned());
    assert_eq!(writes(&case.decide()), [""; 0]);
    assert_eq!(condition_of(&case.decide(), META).0, "DeletionFailed");
    case.owner_refused = None;
    case = case.host(json!({ "metadata": { "ownerReferences": [{
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "name": "m1", "uid": "uid-m1",
    }] } }));
    assert_eq!(writes(&case.decide()), ["machine finalizers"], "another machine's host");
}

#[test]
fn host_of_a_machine_that_does_not_exist_is_released_after_it_lost_its_owner() {
    let facts = |owner_refused| Facts {
        machine: None,
        confirmed: true,
        owner_refused,
        ..Case::running().host(blank()).host(owned()).facts()
    };
    let disowned = plan(&facts(None));
    assert_eq!(writes(&disowned), ["Disown h0"]);
    assert_eq!(owners(&disowned), kept());
    // Another machine would use it, and it would be deleted with the owner.
    let kept = plan(&facts(Some("forbidden".to_owned())));
    assert_eq!(writes(&kept), [""; 0]);
    let text = format!("{:?}", kept.next);
    assert!(
        text.contains("HostOwnerKept") && text.contains("kubectl patch baremetalhost h0"),
        "{text}"
    );
    assert_eq!(kept.next.outcome(), Outcome::RequeueAfter(OWNER_RETRY));
}

/// A person freed the host, or its machine lost its finalizer: the host would be deleted with that one.
#[test]
fn other_machines_are_no_owners_of_a_host_that_is_claimed_or_in_use() {
    let foreign = json!([owners_of_1_13()[0], { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine",
        "name": "m9", "uid": "uid-m9" }]);
    let of_another = json!({ "metadata": { "ownerReferences": foreign } });
    let claimed = Case::new().host(of_another.clone()).decide();
    assert!(writes(&claimed).contains(&"Claim h0".to_owned()));
    assert_eq!(owners(&claimed), kept());
    let case = Case::running()
        .machine(json!({ "spec": { "dataTemplate": null } }))
        .host(of_another);
    let plan = reported(case).decide();
    assert_eq!(writes(&plan), ["Disown h0"]);
    assert_eq!(owners(&plan), kept());
}
