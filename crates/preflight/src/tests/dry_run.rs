//! What a dry run has shown, as it is reported.

use super::*;

const HOSTS: (&str, &str) = ("metal3.io", "baremetalhosts");

fn changed((group, resource): (&str, &str), body: &Value) -> Vec<String> {
    let change = Change::write("patch", (group, resource), "lab/a", body);
    change.map(|change| change.members).unwrap_or_default()
}

#[test]
fn change_names_the_members_of_a_patch_and_no_value_of_it() {
    let annotation = json!({ "metadata": { "annotations": { "x.io/y": "v" }, "resourceVersion": "7" } });
    let steps = json!([
        { "op": "test", "path": "/metadata/labels/a", "value": "b" },
        { "op": "add", "path": "/metadata/labels/x.io~1y", "value": "v" },
    ]);
    let applied = json!({ "apiVersion": "v1", "kind": "K", "metadata": { "name": "a", "namespace": "b" }, "spec": { "host": "h" } });
    let deep =
        json!({ "status": { "provisioning": { "image": { "url": "u" } }, "errorType": null, "conditions": [1] } });
    let of_status = [
        "status.conditions",
        "status.errorType removed",
        "status.provisioning.image",
    ];
    for (body, expected) in [
        (json!({}), &[][..]),
        (annotation, &["metadata.annotations.x.io/y"]),
        (
            json!({ "metadata": { "ownerReferences": null } }),
            &["metadata.ownerReferences removed"],
        ),
        (steps, &["metadata.labels.x.io/y"]),
        (applied, &["spec.host"]),
        (deep, &of_status),
    ] {
        assert_eq!(changed(HOSTS, &body), expected, "{body}");
    }
}

#[test]
fn content_of_a_secret_and_events_are_not_reported() {
    let body =
        json!({ "metadata": { "labels": { "a": "b" } }, "data": { "password": "aHVudGVyMg==" }, "stringData": null });
    let members = ["data", "metadata.labels.a", "stringData removed"];
    assert_eq!(changed(("", "secrets"), &body), members);
    let create = Change::write("create", ("", "secrets"), "lab/a", &body).unwrap();
    assert_eq!(
        (create.object.as_str(), create.members.as_slice()),
        ("Secret lab/a", &[][..])
    );
    for group in ["", "events.k8s.io"] {
        assert_eq!(Change::write("create", (group, "events"), "lab/a", &json!({})), None);
    }
}

#[test]
fn equal_changes_are_one_line_whatever_the_order_in_which_they_were_seen() {
    let owners = json!({ "metadata": { "ownerReferences": null } });
    let of = |name: &str| Change::write("patch", HOSTS, name, &owners).unwrap();
    let status = Change::write(
        "patch",
        (HOSTS.0, "baremetalhosts/status"),
        "lab/e",
        &json!({ "status": { "poweredOn": true } }),
    );
    let mut all = [
        of("lab/d"),
        of("lab/b"),
        of("lab/a"),
        of("lab/c"),
        of("lab/a"),
        status.unwrap(),
        Change::order("BareMetalHost", "lab/f", "power off", true),
        Change::order("BMCEventSubscription", "lab/g", "create subscription", false),
    ];
    let why = |what: &str| NotRead {
        what: what.to_owned(),
        why: "you may not".to_owned(),
    };
    let mut texts = BTreeSet::new();
    for _ in 0..all.len() {
        all.rotate_left(1);
        let dry_run = DryRun {
            changes: all.iter().cloned().collect(),
            not_known: vec![why("hosts"), why("ipam")],
        };
        let facts = Facts {
            dry_run: Some(dry_run),
            ..facts(Direction::ToThisProgram)
        };
        let report = report(facts);
        assert_eq!(
            (report.decision, report.exit_code()),
            (Decision::Go, 0),
            "it decides nothing"
        );
        texts.insert(render(&report));
    }
    assert_eq!(texts.len(), 1, "{texts:?}");
    let lines = "First, this program would (7):\n\
        - order create subscription at Ironic for BMCEventSubscription (lab/g)\n\
        - order power off at Ironic for BareMetalHost, which may interrupt or erase the machine (lab/f)\n\
        - patch BareMetalHost: metadata.ownerReferences removed (lab/a, lab/b and 2 more)\n\
        - patch status BareMetalHost: status.poweredOn (lab/e)\n\
        - not known: hosts, ipam, because you may not\n";
    assert!(texts.iter().all(|text| text.contains(lines)), "{texts:?}");
}
