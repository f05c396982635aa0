//! A BMC address that is that of the machine of another host.

use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_runtime::cache::Key;
use serde_json::json;

use super::fixture::{Fixture, UID};
use super::rows::given::{port, written_for};

fn taken(namespace: &str) -> impl Fn(&mut Fixture) {
    let key = Key {
        namespace: namespace.to_owned(),
        name: "other".to_owned(),
    };
    move |fixture| fixture.machine_of = Some(key.clone())
}

fn registering() -> Fixture {
    Fixture::new("registering")
}

#[test]
fn node_is_neither_created_for_nor_led_to_the_machine_of_another_host() {
    let elsewhere = json!({ "driver_info": { "redfish_address": "https://192.0.2.99" } });
    for (request, fixture) in [
        ("requests create node", registering().no_node()),
        (
            "requests change node",
            registering()
                .node_with("enroll", elsewhere)
                .with(|fixture| fixture.ports = Some(vec![port()])),
        ),
    ] {
        assert!(fixture.summary().contains(request), "{}", fixture.summary());
        let summary = fixture.with(taken("metal")).summary();
        assert!(
            summary.contains("registration error: spec.bmc.address") && !summary.contains("requests"),
            "{request}: {summary}"
        );
    }
}

#[test]
fn host_of_another_namespace_is_not_named() {
    let message = |namespace: &str| registering().no_node().with(taken(namespace)).summary();
    assert!(message("metal").contains("BareMetalHost other"), "{}", message("metal"));
    assert!(!message("secret").contains("other;"), "{}", message("secret"));
    assert!(
        message("secret").contains("of another namespace"),
        "{}",
        message("secret")
    );
}

#[test]
fn host_whose_node_has_the_address_already_runs_on() {
    let running = Fixture::new("provisioned")
        .spec_image("a")
        .status_image("a")
        .node_with("active", written_for("a", UID));
    assert_eq!(running.clone().with(taken("metal")).summary(), running.summary());
}

/// The password would count as verified though no BMC has seen it.
#[test]
fn login_of_a_refused_address_is_not_recorded_as_sent() {
    let old = json!({ "credentialsVersion": "39" });
    let fixture = Fixture::new("available")
        .status(json!({ "triedCredentials": old, "goodCredentials": old }))
        .node_with(
            "available",
            json!({ "driver_info": { "redfish_address": "https://192.0.2.99" } }),
        )
        .with(|fixture| fixture.ports = Some(vec![port()]))
        .with(taken("metal"));
    let after = fixture.after(&fixture.plan()).status;
    assert_eq!(after.error_type, Some(ErrorType::Registration));
    assert_eq!(after.tried_credentials.credentials_version.as_deref(), Some("39"));
}

/// Hosts of two namespaces see each other once they are verified, and before either is inspected.
#[test]
fn registration_does_not_end_on_the_machine_of_another_host() {
    let registered = || {
        registering()
            .node("manageable")
            .with(|fixture| fixture.ports = Some(vec![port()]))
    };
    assert!(
        registered().summary().contains("to inspecting"),
        "{}",
        registered().summary()
    );
    let refused = registered().with(taken("secret")).summary();
    assert!(
        refused.contains("registration error") && !refused.contains("to inspecting"),
        "{refused}"
    );
}
