//! The copy of labels from a host to its Node: when the Node is read, what is written, and what is reported.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_capi::workload::{BUSY_POLL, LabelDigest, LabelledNode, Node};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;
use serde_json::{Value, json};

use super::case::{Case, condition_of, writes};
use super::simulation::read;
use crate::machine::action::{Action, Plan, Reads, Urgency};

const ID: &str = "metal3://metal/h0/m0";

/// A machine with its Node, in a cluster that selects labels, and a host with one of them.
fn case(prefixes: &str) -> Case {
    let annotations = BTreeMap::from([("metal3.io/metal3-label-sync-prefixes".to_owned(), prefixes.to_owned())]);
    let case = Case::running()
        .machine(json!({
            "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "edge" } },
            "spec": { "providerID": ID, "dataTemplate": { "namespace": "metal" } },
            "status": { "initialization": { "provisioned": true } },
        }))
        .host(json!({ "metadata": { "labels": { "a.io/rack": "1", "other": "x" } } }));
    case.with(|case| {
        case.metal3_clusters[0].metadata.annotations = Some(annotations);
        case.owner.as_mut().unwrap().status.node_ref = Some(read(&json!({ "name": "node-0" })));
    })
}

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    labels.iter().map(owned).collect()
}

/// The Node as it is watched.
fn watched(provider_id: &str, found: &[(&str, &str)]) -> Observed<Arc<Node>> {
    Observed::Present(Arc::new(Node {
        name: "node-0".to_owned(),
        provider_id: provider_id.to_owned(),
        labels: LabelDigest::of(found.iter().copied()),
        ..Node::default()
    }))
}

fn live(found: &[(&str, &str)]) -> Observed<LabelledNode> {
    let metadata = json!({ "name": "node-0", "uid": "u", "resourceVersion": "7", "labels": labels(found) });
    Observed::Present(read(&json!({ "metadata": metadata })))
}

/// The writes to Nodes.
fn copies(plan: &Plan) -> Vec<String> {
    writes(plan)
        .into_iter()
        .filter(|write| write.starts_with("labels"))
        .collect()
}

fn reported(plan: &Plan) -> (String, String) {
    condition_of(plan, "NodeLabelsSynced")
}

#[test]
fn node_is_watched_then_read_then_patched_and_not_read_again() {
    let case = case("a.io");
    assert_eq!(case.decide(), Plan::reading(Reads::Node("node-0".to_owned())));
    let case = case.with(|case| case.labels.node = watched(ID, &[("a.io/old", "")]));
    assert_eq!(case.decide(), Plan::reading(Reads::NodeLabels("node-0".to_owned())));
    let mut case = case.with(|case| case.labels.live = live(&[("a.io/old", "")]));
    let plan = case.decide();
    let patch: Value = json!({ "a.io/old": null, "a.io/rack": "1" });
    assert_eq!(copies(&plan), [format!("labels of node-0: {patch}")]);
    assert_eq!(reported(&plan).0, "NodeLabelsSynced");
    // The watch shows the labels that were written.
    let copied = plan.actions.iter().find_map(|action| match action {
        Action::CopyLabels { copied, .. } => Some(copied.clone()),
        _ => None,
    });
    case.labels.copied = copied;
    case.labels.node = watched(ID, &[("a.io/rack", "1")]);
    case.labels.live = Observed::Unknown(UnknownReason::NotRead);
    let done = case.decide();
    assert_eq!((copies(&done), done.reads), (vec![], Reads::Nothing));
    // A user changes a label of the Node, the host or the selection.
    let next = Plan::reading(Reads::NodeLabels("node-0".to_owned()));
    case.labels.node = watched(ID, &[("a.io/rack", "2")]);
    case.labels.since_copy = Duration::from_secs(20);
    let later = case.decide();
    assert_eq!((copies(&later), &later.reads), (vec![], &Reads::Nothing));
    case.labels.since_copy = Duration::from_secs(30);
    assert_eq!(case.decide(), next);
    case.labels.since_copy = Duration::ZERO;
    case.labels.node = watched(ID, &[("a.io/rack", "1")]);
    assert_ne!(case.decide(), next);
    let case = case.host(json!({ "metadata": { "labels": { "a.io/row": "3" } } }));
    assert_eq!(case.decide(), next);
}

#[test]
fn node_that_has_the_labels_is_not_patched() {
    let case = case("a.io").with(|case| {
        case.labels.node = watched(ID, &[]);
        case.labels.live = live(&[("a.io/rack", "1"), ("b.io/x", "y")]);
    });
    let plan = case.decide();
    assert_eq!(copies(&plan), ["labels of node-0: null"]);
    assert!(matches!(
        plan.actions.last(),
        Some(Action::CopyLabels { patch: None, .. })
    ));
}

#[test]
fn nothing_is_read_of_a_node_whose_cluster_selects_no_labels() {
    for none in ["", ","] {
        let plan = case(none).decide();
        assert_eq!(plan.reads, Reads::Nothing);
        let conditions = &plan.status.unwrap().status.conditions;
        assert!(conditions.iter().all(|condition| condition.type_ != "NodeLabelsSynced"));
    }
}

#[test]
fn every_wait_for_labels_says_what_to_do() {
    let away = || {
        Observed::Unknown(UnknownReason::Unreadable(
            "the workload cluster cannot be reached".to_owned(),
        ))
    };
    let is_waiting = |case: Case, part: &str| {
        let plan = case.decide();
        assert_eq!((copies(&plan), &plan.reads), (vec![], &Reads::Nothing), "{part}");
        let (reason, message) = reported(&plan);
        assert!(message.contains(part), "{message}");
        reason
    };
    let bad = is_waiting(case("a.io,A_io"), "\"A_io\"");
    assert_eq!(bad, "NodeLabelsFailed");
    for (case, part) in [
        (
            case("a.io").with(|case| case.owner.as_mut().unwrap().status.node_ref = None),
            "waiting for the Machine to name its Node",
        ),
        (
            case("a.io").host(json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": "me" } } })),
            "the BareMetalHost is paused",
        ),
        (
            case("a.io").with(|case| case.labels.node = Observed::Absent),
            "node-0 does not exist",
        ),
        (case("a.io").with(|case| case.labels.node = away()), "cannot be reached"),
        // The Node of another machine with the same name.
        (
            case("a.io").with(|case| case.labels.node = watched("metal3://metal/h1/m1", &[])),
            "another provider ID",
        ),
        (
            case("a.io").with(|case| case.labels.node = watched("", &[])),
            "another provider ID",
        ),
        (
            case("a.io").with(|case| {
                case.labels.node = watched(ID, &[]);
                case.labels.live = Observed::Absent;
            }),
            "node-0 does not exist",
        ),
        (busy(case("a.io")), "other requests to workload clusters are under way"),
    ] {
        assert_eq!(is_waiting(case, part), "WaitingForNode", "{part}");
    }
}

/// The read of the Node waits for other requests.
fn busy(case: Case) -> Case {
    case.with(|case| {
        case.labels.node = watched(ID, &[]);
        case.labels.live = Observed::Unknown(UnknownReason::Unreadable("busy".to_owned()));
        case.labels.is_busy = true;
    })
}

#[test]
fn labels_are_not_copied_while_the_metal3_cluster_is_paused() {
    let paused = case("a.io").with(|case| {
        let annotations = case.metal3_clusters[0].metadata.annotations.get_or_insert_default();
        annotations.insert("cluster.x-k8s.io/paused".to_owned(), String::new());
        case.labels.node = watched(ID, &[("a.io/old", "")]);
        case.labels.live = live(&[("a.io/old", "")]);
    });
    let plan = paused.decide();
    let (reason, message) = reported(&plan);
    assert_eq!((copies(&plan), reason.as_str()), (vec![], "WaitingForNode"));
    assert!(message.starts_with("the Metal3Cluster is paused"), "{message}");
}

#[test]
fn machine_whose_request_waits_for_others_is_reconciled_after_a_fixed_time() {
    assert_eq!(busy(case("a.io")).decide().next, Next::RequeueAfter(BUSY_POLL));
    // The labels that were copied are still the same.
    let mut copied = case("a.io").with(|case| {
        case.labels.node = watched(ID, &[]);
        case.labels.live = live(&[]);
    });
    let plan = copied.decide();
    copied.labels.copied = plan.actions.iter().find_map(|action| match action {
        Action::CopyLabels { copied, .. } => Some(copied.clone()),
        _ => None,
    });
    copied.labels.since_copy = Duration::from_mins(1);
    copied.machine.status = *plan.status.unwrap().status;
    let waits = busy(copied).decide();
    assert_eq!(
        (reported(&waits).0.as_str(), &waits.next),
        ("WaitingForNode", &Next::RequeueAfter(BUSY_POLL))
    );
    assert_eq!(waits.status.unwrap().urgency, Urgency::Recount, "after a minute");
}

#[test]
fn cluster_that_is_away_changes_no_report_of_labels_that_were_copied() {
    let away = Observed::Unknown(UnknownReason::Unreadable("waiting for a turn".to_owned()));
    let copied = case("a.io").with(|case| {
        case.labels.node = watched(ID, &[]);
        case.labels.live = live(&[]);
    });
    let plan = copied.decide();
    let Some(Action::CopyLabels { copied, .. }) = plan.actions.last().cloned() else {
        panic!("{plan:?}");
    };
    let status = plan.status.unwrap().status;
    let mut later = case("a.io").with(|case| {
        case.machine.status = *status;
        case.labels.node = away;
        case.labels.copied = Some(copied);
    });
    assert!(later.decide().status.is_none(), "nothing changes");
    later = later.host(json!({ "metadata": { "labels": { "a.io/rack": "2" } } }));
    assert_eq!(reported(&later.decide()).1, "waiting for a turn");
}

#[test]
fn machine_in_deletion_copies_nothing() {
    let case = case("a.io").deleting().with(|case| {
        case.labels.node = watched(ID, &[]);
        case.labels.live = live(&[]);
        (case.confirmed, case.is_live) = (true, true);
    });
    assert_eq!(copies(&case.decide()), [""; 0]);
}
