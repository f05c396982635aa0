//! Destinations that the administrator does not allow, of hosts that are older than the flags.

use metal3_domain::allowed::Allowed;
use serde_json::json;

use super::fixture::{Fixture, image};
use super::rows::given::{asked, deprovisioning, external, provisioned, provisioning, registering, written};

const OTHER_CHECKSUM: &str = "https://sums.example.org/a";

/// Only the image `a` is on an allowed host.
fn restricted(fixture: &mut Fixture) {
    fixture.settings.image_hosts = Allowed::parse(["192.0.2.9"]).unwrap();
}

fn elsewhere() -> serde_json::Value {
    json!({ "image": { "url": "http://198.51.100.9/b.qcow2", "checksum": "0", "format": "qcow2" } })
}

#[test]
fn image_of_a_host_that_is_not_allowed_is_neither_deployed_nor_replaces_another() {
    let on = || json!({ "power_state": "power on" });
    let attempted = || json!({ "lastAttemptedImage": elsewhere()["image"] });
    let rows = [
        ("available", asked().spec(elsewhere())),
        (
            "checksum",
            asked().spec(json!({ "image": { "checksum": OTHER_CHECKSUM } })),
        ),
        (
            "to be cleaned",
            provisioning()
                .spec(elsewhere())
                .status(attempted())
                .node("manageable")
                .live(),
        ),
        (
            "to be deployed",
            provisioning()
                .spec(elsewhere())
                .status(attempted())
                .node_with("available", written("b"))
                .live(),
        ),
        (
            "runs another",
            provisioned().spec(elsewhere()).node_with("active", on()).live(),
        ),
        (
            "to be removed",
            deprovisioning().spec(elsewhere()).node_with("active", on()).live(),
        ),
        ("to be adopted", external().spec(elsewhere()).node("manageable").live()),
    ];
    for (given, fixture) in rows {
        let allowed = fixture.clone().summary();
        let summary = fixture.with(restricted).summary();
        assert!(!allowed.contains("--allowed-image-hosts"), "{given}: {allowed}");
        assert!(summary.contains("--allowed-image-hosts"), "{given}: {summary}");
        assert!(
            !summary.contains("requests") && !summary.contains("to deprovisioning"),
            "{given}: {summary}"
        );
    }
}

#[test]
fn running_image_and_removal_do_not_depend_on_the_allowed_hosts() {
    let on = || json!({ "power_state": "power on" });
    let none = |fixture: &mut Fixture| fixture.settings.image_hosts = Allowed::parse(["images.example.org"]).unwrap();
    for fixture in [
        provisioned().node_with("active", on()),
        provisioned().spec(json!({ "image": null })).node_with("active", on()),
        provisioned().spec_image("b").deleted().node_with("active", on()).live(),
        deprovisioning()
            .spec(json!({ "image": null }))
            .node_with("active", on())
            .live(),
        deprovisioning().spec_image("b").node("deploy failed").live(),
        provisioning().node("deploying"),
    ] {
        assert_eq!(fixture.clone().with(none).summary(), fixture.summary());
    }
    assert!(image("a")["url"].as_str().unwrap().contains("192.0.2.9"));
}

#[test]
fn bmc_outside_of_the_allowed_networks_gets_no_request() {
    let outside = |fixture: &mut Fixture| {
        fixture.settings.node.bmc_networks = Allowed::parse_networks(["198.51.100.0/24"]).unwrap()
    };
    let inside =
        |fixture: &mut Fixture| fixture.settings.node.bmc_networks = Allowed::parse_networks(["192.0.2.0/24"]).unwrap();
    let rows = [
        ("new", registering().no_node()),
        ("to be verified", registering().node("enroll")),
        (
            "to be deployed",
            provisioning().node_with("available", written("a")).live(),
        ),
        (
            "to be removed",
            provisioned().spec(json!({ "image": null })).node("manageable").live(),
        ),
        ("to be deprovisioned", deprovisioning().node("active").live()),
        (
            "runs",
            provisioned()
                .spec(json!({ "online": false }))
                .node_with("active", json!({ "power_state": "power on" })),
        ),
    ];
    for (given, fixture) in rows {
        let summary = fixture.clone().with(outside).summary();
        assert!(!summary.contains("requests"), "{given}: {summary}");
        assert!(
            summary.contains("--allowed-bmc-networks") || given == "to be removed",
            "{given}: {summary}"
        );
        assert_eq!(fixture.clone().with(inside).summary(), fixture.summary(), "{given}");
        let named = json!({ "bmc": { "address": "redfish-virtualmedia://bmc.example.org/redfish/v1/Systems/1" } });
        let summary = fixture.spec(named).with(inside).summary();
        assert!(!summary.contains("requests"), "{given}: {summary}");
    }
    // Ironic has the address of a deleted host: it stays removable.
    assert!(
        deprovisioning()
            .deleted()
            .node("active")
            .live()
            .with(outside)
            .summary()
            .contains("requests")
    );
}
