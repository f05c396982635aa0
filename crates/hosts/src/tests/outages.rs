//! What a host reports while Ironic serves no request.

use serde_json::json;

use super::fixture::{Fixture, at};
use super::rows::given::{asked, available, failing, inspecting, provisioned, registering};
use crate::facts::{OutageKind, RefusalClass};

fn in_outage(fixture: Fixture, kind: OutageKind) -> Fixture {
    fixture.ironic_unreachable().with(|fixture| {
        fixture.outage = fixture
            .outage
            .take()
            .map(|outage| crate::facts::Outage { kind, ..outage });
    })
}

/// A request of this reconcile was rejected.
fn attempted(fixture: Fixture) -> Fixture {
    fixture
        .refused("read node", RefusalClass::Transient, "refused")
        .with(|fixture| {
            if let Some(refused) = &mut fixture.refused {
                refused.is_fresh = true;
            }
        })
}

fn held_of(reason: &str) -> serde_json::Value {
    json!({ "type": "Held", "status": "True", "reason": reason, "lastTransitionTime": at(-300),
        "message": "Ironic is unreachable since then (x), and the next step of this host needs it. Restore it; then the host \
            continues without help" })
}

#[test]
fn each_wait_for_ironic_reports_why_it_serves_no_request() {
    let withheld = |summary: String| {
        let (_, rest) = summary.split_once("withheld: ")?;
        Some(rest.split(',').next().unwrap_or_default().to_owned())
    };
    for (given, fixture, reason) in [
        (
            "inspecting",
            inspecting().node("inspect wait"),
            Some("IronicUnreachable"),
        ),
        (
            "the node cannot be read",
            attempted(inspecting()),
            Some("IronicUnreachable"),
        ),
        ("registering", attempted(registering()), Some("IronicUnreachable")),
        ("an image to deploy", attempted(asked()), Some("IronicUnreachable")),
        ("free", attempted(available()), None),
        ("in use", attempted(provisioned()), None),
    ] {
        let summary = in_outage(fixture, OutageKind::Unreachable).summary();
        assert_eq!(withheld(summary.clone()).as_deref(), reason, "{given}: {summary}");
    }
    let login = in_outage(inspecting().node("inspect wait"), OutageKind::Login).summary();
    assert_eq!(withheld(login).as_deref(), Some("IronicLoginRefused"));
    let certificate = in_outage(inspecting().node("inspect wait"), OutageKind::Certificate).summary();
    assert_eq!(withheld(certificate).as_deref(), Some("IronicNotTrusted"));
}

/// Each attempt may fail in other words.
#[test]
fn report_stays_while_the_outage_lasts_and_goes_with_it() {
    let reported = inspecting()
        .node("inspect wait")
        .status(json!({ "conditions": [held_of("IronicUnreachable")] }));
    let summary = reported.clone().ironic_unreachable().summary();
    assert!(summary.contains("withheld: IronicUnreachable"), "{summary}");
    let lasting = reported.clone().ironic_unreachable();
    let held = |fixture: &Fixture| {
        let after = fixture.after(&fixture.plan());
        let mut conditions = after.status.conditions.into_iter();
        conditions
            .find(|condition| condition.type_ == "Held")
            .map(|held| held.message)
    };
    assert!(held(&lasting).is_some_and(|message| message.contains("since then (x)")));
    assert_eq!(held(&reported), None);
    // What the Ironic resource says is shown as long as it says so, and no longer.
    let says = |reason: &str, fixture: Fixture| {
        in_outage(fixture, OutageKind::NotReady).with(|fixture| {
            if let Some(outage) = &mut fixture.outage {
                outage.reason = reason.to_owned();
            }
        })
    };
    let first = says("it has no replica", inspecting().node("inspect wait"));
    assert!(held(&first).is_some_and(|message| message.starts_with("it has no replica, and the next step")));
    let shown = first.performed();
    let second = held(&says("it is updated", shown.clone()));
    assert!(second.is_some_and(|message| message.starts_with("it is updated")));
    let ready = held(&in_outage(shown, OutageKind::Unreachable));
    assert!(ready.is_some_and(|message| message.starts_with("Ironic is unreachable")));
}

/// The times in the status, from which the delay counts, stay.
#[test]
fn report_during_a_backoff_does_not_prolong_it() {
    let waiting = |conditions: serde_json::Value| {
        inspecting()
            .node_with("inspect failed", json!({ "last_error": "no lease" }))
            .status(failing("inspection error", "no lease", 3))
            .status(json!({ "lastUpdated": at(-1), "conditions": conditions }))
    };
    for (fixture, held) in [
        (waiting(json!([])).ironic_unreachable(), true),
        (waiting(json!([held_of("IronicUnreachable")])), false),
    ] {
        let plan = fixture.plan();
        assert!(plan.status.is_some(), "{}", fixture.summary());
        let after = fixture.after(&plan);
        let mut conditions = after.status.conditions.iter();
        assert_eq!(conditions.any(|condition| condition.type_ == "Held"), held);
        assert_eq!(after.status.last_updated, Some(at(-1)));
    }
}
