use serde_json::{Value, json};

use super::*;

const LABEL: &str = "baremetalhost.metal3.io/ironic";
const RECORD: &str = "baremetalhost.metal3.io/registered-in";

fn names() -> Names {
    Names::one("a").with(["b", "c"])
}

fn found(located: &str) -> Located {
    match located {
        "" => Observed::Unknown(UnknownReason::NotRead),
        "nowhere" => Observed::Absent,
        "away" => Observed::Unknown(UnknownReason::Unreadable("b does not answer".to_owned())),
        name => Observed::Present(Name::from(name)),
    }
}

fn summary(choice: &Choice<'_>) -> String {
    match choice {
        Choice::Use {
            ironic,
            is_new,
            refused,
        } => {
            let is_new = if *is_new { ", to be recorded" } else { "" };
            let refused = refused.map(|wanted| format!(", not {wanted}")).unwrap_or_default();
            format!("{ironic}{is_new}{refused}")
        }
        Choice::Search => "search".to_owned(),
        Choice::Wait(Bar::Unknown { wanted, recorded }) => {
            let recorded = recorded
                .as_ref()
                .map(|name| format!(", asks {name}"))
                .unwrap_or_default();
            format!("unknown {wanted}{recorded}")
        }
        Choice::Wait(Bar::NotConfigured(name)) => format!("no {name}"),
        Choice::Wait(Bar::NotLocated(why)) => format!("not located: {why}"),
    }
}

fn chosen(names: &Names, (wanted, recorded): (&str, &str), registration: Registration, located: &str) -> String {
    let set = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    let leaked = |text: &str| set(Box::leak(text.to_owned().into_boxed_str()));
    let wish = Wish {
        wanted: leaked(wanted),
        recorded: leaked(recorded),
        registration,
        is_deleted: false,
    };
    let kept = summary(&choose(names, &wish, &found(located)));
    let deleted = summary(&choose(
        names,
        &Wish {
            is_deleted: true,
            ..wish
        },
        &found(located),
    ));
    match kept == deleted {
        true => kept,
        false => format!("{kept}; deleted: {deleted}"),
    }
}

#[test]
fn one_ironic_serves_a_host_and_only_the_recorded_one_while_it_may_have_the_node() {
    use Registration::{Begun, Detached, Never};
    for (wanted, recorded, registration, located, expected) in [
        // Nothing is recorded and nothing may exist.
        ("", "", Never, "", "a, to be recorded; deleted: a"),
        ("b", "", Never, "", "b, to be recorded; deleted: a"),
        ("x", "", Never, "", "unknown x; deleted: a"),
        // The status may be lost: the lists have the node.
        ("b", "", Never, "c", "c, to be recorded"),
        ("", "", Never, "a", "a, to be recorded"),
        ("b", "", Never, "away", "not located: b does not answer"),
        ("b", "", Never, "nowhere", "b, to be recorded; deleted: a"),
        // Nothing is recorded, as before there were several.
        ("", "", Begun, "", "search"),
        ("b", "", Begun, "", "search"),
        ("b", "", Detached, "", "search"),
        ("x", "", Begun, "", "unknown x; deleted: search"),
        ("b", "", Begun, "a", "a, to be recorded"),
        ("", "", Begun, "c", "c, to be recorded"),
        (
            "b",
            "",
            Begun,
            "nowhere",
            "b, to be recorded; deleted: a, to be recorded",
        ),
        ("", "", Begun, "nowhere", "a, to be recorded"),
        ("b", "", Begun, "away", "not located: b does not answer"),
        // The recorded one stays.
        ("", "b", Begun, "", "b"),
        ("b", "b", Begun, "", "b"),
        ("", "b", Never, "", "b"),
        ("", "b", Detached, "", "b"),
        ("a", "b", Begun, "", "b, not a; deleted: b"),
        ("a", "b", Begun, "nowhere", "b, not a; deleted: b"),
        ("x", "b", Begun, "", "unknown x, asks b; deleted: b"),
        ("x", "b", Never, "", "unknown x, asks b; deleted: b"),
        // It changes when a search shows that no Ironic has the node.
        ("a", "b", Never, "", "search; deleted: b"),
        ("a", "b", Detached, "", "search; deleted: b"),
        ("a", "b", Detached, "nowhere", "a, to be recorded; deleted: b"),
        ("a", "b", Never, "nowhere", "a, to be recorded; deleted: b"),
        ("a", "b", Never, "b", "b, not a; deleted: b"),
        ("a", "b", Never, "c", "c, to be recorded; deleted: b"),
        ("a", "b", Detached, "away", "not located: b does not answer; deleted: b"),
        // The recorded one is not configured.
        ("", "gone", Begun, "", "no gone"),
        ("a", "gone", Begun, "nowhere", "no gone"),
        ("a", "gone", Never, "nowhere", "no gone"),
        ("a", "gone", Detached, "nowhere", "no gone"),
        ("x", "gone", Begun, "", "unknown x; deleted: no gone"),
    ] {
        let chosen = chosen(&names(), (wanted, recorded), registration, located);
        assert_eq!(chosen, expected, "{wanted:?} {recorded:?} {registration:?} {located:?}");
    }
}

#[test]
fn the_only_ironic_is_neither_searched_nor_recorded() {
    use Registration::{Begun, Detached, Never};
    let one = Names::one("a");
    for registration in [Never, Detached, Begun] {
        for (wanted, recorded, expected) in [
            ("", "", "a"),
            ("a", "", "a"),
            ("", "a", "a"),
            ("a", "a", "a"),
            ("b", "", "unknown b; deleted: a"),
            ("b", "a", "unknown b, asks a; deleted: a"),
            ("", "b", "no b"),
            ("a", "b", "no b"),
        ] {
            let chosen = chosen(&one, (wanted, recorded), registration, "");
            assert_eq!(chosen, expected, "{wanted:?} {recorded:?} {registration:?}");
        }
    }
}

/// A status with the fields that each has.
fn whole(status: &Value) -> Value {
    let mut document = json!({ "operationalStatus": "", "errorMessage": "", "poweredOn": false, "errorCount": 0,
        "provisioningFailCount": 0, "provisioning": { "state": "", "ID": "", "image": { "url": "" } } });
    metal3_runtime::patch::apply(status, &mut document);
    document
}

fn host(annotations: &Value, status: &Value) -> BareMetalHost {
    let metadata = json!({ "annotations": annotations, "labels": { LABEL: "b" } });
    serde_json::from_value(json!({ "metadata": metadata, "status": whole(status) })).unwrap()
}

#[test]
fn registration_follows_the_status_or_the_saved_one() {
    use Registration::{Begun, Detached, Never};
    let at = "2026-01-01T00:00:00Z";
    let state = |state: &str| json!({ "provisioning": { "state": state }, "lastUpdated": at });
    let saved = |status: &Value| json!({ "baremetalhost.metal3.io/status": whole(status).to_string() });
    let begun = json!({ "operationHistory": { "register": { "start": at, "end": null } } });
    let detached = json!({ "operationalStatus": "detached", "provisioning": { "state": "provisioned", "ID": "x" } });
    for (annotations, status, expected) in [
        (json!({}), json!({}), Never),
        (json!({}), state("unmanaged"), Never),
        (json!({}), state("registering"), Begun),
        (json!({}), state("a state of tomorrow"), Begun),
        (json!({}), json!({ "provisioning": { "state": "", "ID": "x" } }), Begun),
        (json!({}), begun, Begun),
        (json!({}), detached.clone(), Detached),
        (saved(&state("provisioned")), json!({}), Begun),
        (saved(&state("")), json!({}), Never),
        (saved(&detached), json!({}), Detached),
        (json!({ "baremetalhost.metal3.io/status": "{" }), json!({}), Begun),
        (saved(&state("")), state("provisioned"), Begun),
    ] {
        let host = host(&annotations, &status);
        assert_eq!(Wish::of(&host).registration, expected, "{annotations} {status}");
    }
    let recorded = host(&json!({ RECORD: "a" }), &json!({}));
    let wish = Wish::of(&recorded);
    assert_eq!((wish.wanted, wish.recorded), (Some("b"), Some("a")));
    let empty = host(&json!({ RECORD: "" }), &json!({}));
    assert_eq!(Wish::of(&empty).recorded, None);
}
