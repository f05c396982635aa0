//! A host with a saved status, while Ironic does not serve its reads.

use serde_json::json;

use super::fixture::{Fixture, image};
use crate::facts::RefusalClass;

fn moved() -> Fixture {
    let provisioned = Fixture::new("provisioned").spec_image("a").status_image("a");
    let status = provisioned.host["status"].to_string();
    Fixture::new("")
        .spec(json!({ "image": image("a") }))
        .annotated("baremetalhost.metal3.io/status", &status)
}

#[test]
fn refused_read_of_the_node_is_reported_before_the_status_is_restored() {
    let refused = moved().refused("read node", RefusalClass::Access, "401");
    assert_eq!(moved().summary(), "reads Node, replan");
    let fresh = refused
        .clone()
        .with(|fixture| fixture.refused.as_mut().unwrap().is_fresh = true);
    let summary = fresh.summary();
    assert!(
        summary.contains("registration error: Ironic rejected the request (read node): 401, waits for a time"),
        "{summary}"
    );
    // The saved status is still restored.
    let reported = refused.with(|fixture| fixture.host = fresh.performed().host);
    assert_eq!(reported.summary(), "waits for a time");
    let due = reported.hours_later(1);
    assert_eq!(due.summary(), "reads Node, replan");
    let restored = due
        .with(|fixture| fixture.refused = None)
        .node("active")
        .live()
        .performed();
    assert_eq!(restored.state().to_string(), "provisioned");
    assert_eq!(restored.host["status"]["errorMessage"], "");
}

#[test]
fn deletion_of_a_host_that_is_not_restored_reports_that_it_waits_for_ironic() {
    let summary = moved().deleted().ironic_unreachable().summary();
    assert!(summary.contains("withheld: IronicUnreachable"), "{summary}");
}
