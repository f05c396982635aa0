//! Node reuse: the set that a released host is kept for, and which disks are not cleaned before.

use std::sync::Arc;

use metal3_api::infrastructure::names::{KEPT_BEFORE_ANNOTATION, NODE_REUSE_LABEL, REUSE_AFTER_CLEANING_ANNOTATION};
use metal3_runtime::plan::{Observed, Plan, UnknownReason};
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::api_server::{CLUSTER, NAMESPACE};
use super::case::{Case, blank, condition_of, host_patch, writes};
use super::simulation::read;
use super::template::cloned;
use crate::machine::action::Reads;
use crate::machine::reuse::{ObservedSet, Set};

/// A set whose template has these fields.
fn set(change: &Value) -> Set {
    let mut template = json!({
        "metadata": { "name": "workers", "namespace": NAMESPACE },
        "spec": { "nodeReuse": true, "template": { "spec": {} } },
    });
    metal3_runtime::patch::apply(change, &mut template);
    Set {
        owner: "md-workers".to_owned(),
        template: Arc::new(read(&template)),
        replaces: true,
    }
}

fn present(change: &Value) -> ObservedSet {
    Observed::Present(set(change))
}

/// A machine in deletion, in a namespace with node reuse, with this set.
fn deleting(case: Case, set: ObservedSet) -> Case {
    case.deleting().with(|case| {
        case.confirmed = true;
        case.asks_for_reuse = true;
        case.set = set;
    })
}

/// Its host has no image any more.
fn released(set: ObservedSet) -> Case {
    deleting(Case::running().host(blank()), set)
}

/// The consumer and the labels of the host after the plan.
fn kept(case: &Case) -> (Value, Value) {
    let plan = case.decide();
    let mut host = serde_json::to_value(&case.hosts[0]).unwrap();
    metal3_runtime::patch::apply(&host_patch(&plan), &mut host);
    (host["spec"]["consumerRef"].take(), host["metadata"]["labels"].take())
}

#[test]
fn released_host_is_kept_for_the_set_in_the_write_that_removes_the_machine() {
    let case = released(present(&json!({})));
    let plan = case.decide();
    assert!(writes(&plan).contains(&"Release h0".to_owned()), "{:?}", writes(&plan));
    let consumer = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": CLUSTER, "namespace": NAMESPACE,
    });
    // The label of the Cluster goes, as with the Go manager.
    let labels = json!({ NODE_REUSE_LABEL: "md-workers" });
    assert_eq!(kept(&case), (consumer, labels));
    let (_, message) = condition_of(&plan, "AssociateMetal3MachineMetaData");
    assert_eq!(message, "BareMetalHost h0 is kept for md-workers");
}

#[test]
fn host_is_not_kept_without_a_set_that_reuses_its_hosts() {
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let of_cluster = |change: Option<&Value>| {
        let change = change.cloned();
        released(present(&json!({}))).with(|case| {
            case.cluster = change.map(|change| {
                let mut document = serde_json::to_value(super::simulation::cluster(false)).unwrap();
                metal3_runtime::patch::apply(&change, &mut document);
                read(&document)
            });
        })
    };
    for (why, case) in [
        (
            "nodeReuse is false",
            released(present(&json!({ "spec": { "nodeReuse": false } }))),
        ),
        (
            "nodeReuse is not set",
            released(present(&json!({ "spec": { "nodeReuse": null } }))),
        ),
        ("there is no set, or no template of it", released(Observed::Absent)),
        ("the Cluster is being deleted", of_cluster(Some(&gone))),
        ("there is no Cluster", of_cluster(None)),
    ] {
        let (consumer, labels) = kept(&case);
        assert_eq!(
            (consumer, &labels[NODE_REUSE_LABEL]),
            (Value::Null, &Value::Null),
            "{why}"
        );
    }
}

#[test]
fn set_is_read_only_for_a_deleted_machine_and_only_where_a_template_asks_for_node_reuse() {
    let unread = || Observed::Unknown(UnknownReason::NotRead);
    assert_eq!(released(unread()).decide(), Plan::reading(Reads::Set));
    let running = deleting(Case::running(), unread()).decide();
    assert_eq!(running, Plan::reading(Reads::Set), "before the image is removed, too");
    let waiting = deleting(Case::running(), unread())
        .host(json!({ "spec": blank()["spec"], "status": { "provisioning": { "state": "deprovisioning" } } }));
    assert_eq!(
        waiting.decide().reads,
        Reads::Nothing,
        "not while the host is deprovisioned"
    );
    for case in [released(unread()), deleting(Case::running(), unread())] {
        let plan = case.with(|case| case.asks_for_reuse = false).decide();
        assert_eq!(plan.reads, Reads::Nothing, "no template asks for node reuse");
    }
    let alive = Case::running().with(|case| case.asks_for_reuse = true).decide();
    assert_ne!(alive.reads, Reads::Set, "the machine is not deleted");
}

#[test]
fn template_that_was_read_live_asks_for_node_reuse_before_the_cache_does() {
    let unread = || Observed::Unknown(UnknownReason::NotRead);
    for (asks, reads) in [
        (json!(true), Reads::Set),
        (json!(false), Reads::Nothing),
        (Value::Null, Reads::Nothing),
    ] {
        for case in [released(unread()), deleting(Case::running(), unread())] {
            let case = cloned(case).with(|case| {
                case.asks_for_reuse = false;
                case.template_is_live = true;
                case.template = Observed::Present(set(&json!({ "spec": { "nodeReuse": asks } })).template);
            });
            assert_eq!(case.decide().reads, reads, "nodeReuse is {asks}");
        }
    }
}

#[test]
fn set_that_cannot_be_read_neither_releases_nor_deprovisions_the_host() {
    let unreadable = || Observed::Unknown(UnknownReason::Unreadable("it is odd; correct it".to_owned()));
    for case in [released(unreadable()), deleting(Case::running(), unreadable())] {
        let plan = case.decide();
        assert_eq!(writes(&plan), [""; 0]);
        let (reason, message) = condition_of(&plan, "AssociateMetal3MachineMetaData");
        assert_eq!(reason, "NodeReuseUndecided");
        assert!(message.contains("it is odd; correct it"), "{message}");
    }
}

/// A machine in deletion with these cleaning modes of it and of its host, and with this set.
fn with_modes(machine: &str, host: &str, set: ObservedSet) -> Case {
    let mode = |text: &str| json!({ "spec": { "automatedCleaningMode": Some(text).filter(|text| !text.is_empty()) } });
    deleting(Case::running().machine(mode(machine)).host(mode(host)), set)
}

#[test]
fn image_is_removed_when_the_disks_are_kept_or_may_be_cleaned() {
    let accepted = json!({ "metadata": { "annotations": { REUSE_AFTER_CLEANING_ANNOTATION: "" } } });
    let (keeps, off) = (json!({}), json!({ "spec": { "nodeReuse": false } }));
    let smaller = Set {
        replaces: false,
        ..set(&keeps)
    };
    for (why, machine, host, set) in [
        ("the machine keeps its disks", "disabled", "metadata", present(&keeps)),
        ("the host keeps its disks", "", "disabled", present(&keeps)),
        ("the user accepts it", "", "metadata", present(&accepted)),
        ("nodeReuse is off", "", "metadata", present(&off)),
        ("the set becomes smaller", "", "metadata", Observed::Present(smaller)),
        ("the set is gone", "", "metadata", Observed::Absent),
    ] {
        let plan = with_modes(machine, host, set).decide();
        assert_eq!(writes(&plan), ["Deprovision h0"], "{why}");
    }
}

#[test]
fn image_is_removed_when_the_host_says_which_disks_are_kept() {
    for (cleaning, is_removed) in [
        (json!({ "keepDisks": [{ "serialNumber": "D2" }] }), true),
        (json!({ "when": "first" }), true),
        (json!({ "when": "always" }), false),
        (json!({ "keepDisks": [] }), false),
    ] {
        let case = with_modes("", "metadata", present(&json!({})));
        let plan = case.host(json!({ "spec": { "cleaning": cleaning } })).decide();
        let expected: &[&str] = if is_removed { &["Deprovision h0"] } else { &[] };
        assert_eq!(writes(&plan), expected, "{cleaning}");
    }
}

#[test]
fn image_is_not_removed_while_the_disks_would_be_cleaned_against_node_reuse() {
    for (machine, host) in [("", ""), ("", "metadata"), ("metadata", "disabled")] {
        let plan = with_modes(machine, host, present(&json!({}))).decide();
        assert_eq!(writes(&plan), [""; 0], "{machine} {host}");
        let (reason, message) = condition_of(&plan, "AssociateMetal3MachineMetaData");
        assert_eq!(reason, "NodeReuseUndecided");
        let field = "spec.automatedCleaningMode of this Metal3Machine";
        for named in ["h0", "workers", field, REUSE_AFTER_CLEANING_ANNOTATION] {
            assert!(message.contains(named), "{message}");
        }
    }
}

#[test]
fn host_of_a_set_whose_name_is_too_long_for_the_label_is_not_touched() {
    let named = |length: usize, change: &Value| {
        Observed::Present(Set {
            owner: format!("md-{}", "w".repeat(length)),
            ..set(change)
        })
    };
    let (keeps, off) = (json!({}), json!({ "spec": { "nodeReuse": false } }));
    for case in [
        released(named(61, &keeps)),
        with_modes("disabled", "", named(61, &keeps)),
    ] {
        let plan = case.decide();
        assert_eq!(writes(&plan), [""; 0]);
        let (reason, message) = condition_of(&plan, "AssociateMetal3MachineMetaData");
        assert_eq!(reason, "NodeReuseUndecided");
        for part in ["60 characters", "spec.nodeReuse of Metal3MachineTemplate workers"] {
            assert!(message.contains(part), "{message}");
        }
    }
    for set in [named(60, &keeps), named(61, &off)] {
        assert_eq!(writes(&with_modes("disabled", "", set).decide()), ["Deprovision h0"]);
    }
}

#[test]
fn host_is_not_touched_while_the_template_of_its_machine_cannot_be_read() {
    for asks in [false, true] {
        let unread = Observed::Unknown(UnknownReason::NotRead);
        let case = cloned(deleting(Case::running(), unread)).with(|case| {
            case.asks_for_reuse = asks;
            case.template_is_live = true;
            case.template = Observed::Unknown(UnknownReason::Unreadable("it is odd".to_owned()));
        });
        let plan = case.decide();
        assert_eq!((writes(&plan), &plan.reads), (vec![], &Reads::Nothing));
        let (reason, message) = condition_of(&plan, "AssociateMetal3MachineMetaData");
        assert_eq!(reason, "NodeReuseUndecided");
        for part in ["Metal3MachineTemplate workers cannot be read", "it is odd"] {
            assert!(message.contains(part), "{message}");
        }
        // What the template says about the disks is known to be no worse.
        let kept = case.machine(json!({ "spec": { "automatedCleaningMode": "disabled" } }));
        let kept = kept.with(|case| case.asks_for_reuse = false).decide();
        assert_eq!(writes(&kept), ["Deprovision h0"]);
    }
}

#[test]
fn reported_wait_for_the_users_decision_is_rechecked_because_sets_are_not_watched() {
    let case = deleting(Case::running(), present(&json!({})));
    let status = case.decide().status.unwrap().status;
    let again = case.with(|case| case.machine.status = *status).decide();
    assert_eq!(again.status, None);
    let Next::Waiting(on) = again.next else {
        panic!("{:?}", again.next)
    };
    assert!(on.recheck.is_some());
}

#[test]
fn deletion_of_the_cluster_is_no_roll() {
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let mut document = serde_json::to_value(super::simulation::cluster(false)).unwrap();
    metal3_runtime::patch::apply(&gone, &mut document);
    let case = deleting(Case::running(), Observed::Unknown(UnknownReason::NotRead));
    let plan = case.with(|case| case.cluster = Some(read(&document))).decide();
    assert_eq!(writes(&plan), ["Deprovision h0"]);
}

#[test]
fn claimed_host_records_the_set_that_it_was_kept_for_until_it_gets_an_image() {
    let labels = json!({ NODE_REUSE_LABEL: "md-workers" });
    let owner = json!({ "metadata": { "labels": { "cluster.x-k8s.io/deployment-name": "workers" } } });
    let case = Case::new()
        .host(json!({ "metadata": { "labels": labels } }))
        .with(|case| {
            let mut document = serde_json::to_value(case.owner.take()).unwrap();
            metal3_runtime::patch::apply(&owner, &mut document);
            case.owner = Some(read(&document));
        });
    let case = case.machine(json!({ "metadata": {
        "finalizers": [super::case::FINALIZER],
        "annotations": { "infrastructure.cluster.x-k8s.io/chosen-host": "h0" },
    } }));
    let claim = case.with(|case| case.confirmed = true).decide();
    assert!(writes(&claim).contains(&"Claim h0".to_owned()), "{:?}", writes(&claim));
    let patch = host_patch(&claim);
    assert_eq!(patch["metadata"]["labels"][NODE_REUSE_LABEL], Value::Null);
    assert_eq!(patch["metadata"]["annotations"][KEPT_BEFORE_ANNOTATION], "md-workers");
    // Another replica claimed another host for the machine: this one goes back to where it was.
    let mark = json!({ "metadata": { "annotations": { KEPT_BEFORE_ANNOTATION: "md-workers" } } });
    let mut surplus = Case::running().host(blank()).host(mark.clone());
    surplus = surplus.machine(json!({ "metadata": { "annotations": { "metal3.io/BareMetalHost": "metal/h1" } } }));
    let (consumer, labels) = kept(&surplus.with(|case| case.confirmed = true));
    let label = &labels[NODE_REUSE_LABEL];
    assert_eq!((&consumer["kind"], label), (&json!("Cluster"), &json!("md-workers")));
    // Its data are awaited. Then it gets the image, or has it already.
    let claimed = || Case::running().host(blank()).host(mark.clone());
    let plan = claimed().decide();
    let of_host: Vec<String> = writes(&plan)
        .into_iter()
        .filter(|write| write.ends_with(" h0"))
        .collect();
    assert_eq!(of_host, [""; 0], "the record stays while the host has no image");
    let with_data = claimed().machine(json!({ "spec": { "dataTemplate": null } }));
    for (case, write) in [
        (with_data.with(|case| case.confirmed = true), "Provision h0"),
        (Case::running().host(mark), "Update h0"),
    ] {
        let plan = case.decide();
        assert!(writes(&plan).contains(&write.to_owned()), "{:?}", writes(&plan));
        let annotations = &host_patch(&plan)["metadata"]["annotations"];
        assert_eq!(
            annotations.get(KEPT_BEFORE_ANNOTATION),
            Some(&Value::Null),
            "{annotations}"
        );
    }
}
