//! The removal of a live image whose node Ironic lost, as a table.

use metal3_domain::allowed::Allowed;
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::fixture::Fixture;
use super::rows::given::{deprovisioning, failing};

const LIVE: &str = "http://192.0.2.9/live.iso";
const ADOPTED: &str = "requests change node, requests adopt, waits for the node";
const PROVIDED: &str = "requests provide, waits for the node";

fn live() -> Value {
    json!({ "url": LIVE, "checksum": null, "checksumType": null, "format": "live-iso" })
}

/// A host without cleaning, whose node is new.
fn lost(status: Value) -> Fixture {
    deprovisioning()
        .spec(json!({ "automatedCleaningMode": "disabled" }))
        .status(status)
        .node_with("manageable", json!({ "automated_clean": false }))
        .live()
}

fn recorded() -> Fixture {
    lost(json!({ "provisioning": { "image": live() } }))
}

#[test]
fn live_image_that_stays_in_the_drive_is_removed_by_an_adoption() {
    let none = json!({ "url": "", "checksum": null, "checksumType": null, "format": null });
    let attempted = |image: Value| lost(json!({ "provisioning": { "image": none }, "lastAttemptedImage": image }));
    let disk = json!({ "url": "http://192.0.2.9/a", "checksum": "c", "checksumType": "sha256", "format": "raw" });
    for (what, fixture, expected) in [
        ("recorded", recorded(), ADOPTED),
        ("attempted", attempted(live()), ADOPTED),
        ("an image for the disk, attempted", attempted(disk.clone()), PROVIDED),
        (
            "an image for the disk",
            lost(json!({ "provisioning": { "image": disk } })),
            PROVIDED,
        ),
        ("deleted", recorded().deleted(), ADOPTED),
        ("another one is asked for", recorded().spec_image("b"), ADOPTED),
        (
            "by a deploy step",
            lost(json!({ "provisioning": { "image": live(), "customDeploy": { "method": "m" } } })),
            PROVIDED,
        ),
        (
            "cleaned",
            recorded()
                .spec(json!({ "automatedCleaningMode": "metadata" }))
                .node("manageable")
                .live(),
            PROVIDED,
        ),
        (
            "its removal began",
            recorded().with(|fixture| fixture.erasing = Observed::Present(())),
            ADOPTED,
        ),
        (
            "another process may have begun it",
            recorded().with(|fixture| fixture.erasing = Observed::Unknown(UnknownReason::NotRead)),
            ADOPTED,
        ),
        (
            "its URL may not be sent",
            recorded().with(|fixture| fixture.settings.image_hosts = Allowed::parse(["images.example.org"]).unwrap()),
            PROVIDED,
        ),
        (
            "adopted",
            recorded()
                .node_with("active", json!({ "automated_clean": false }))
                .live(),
            "requests deleted, waits for the node",
        ),
    ] {
        assert_eq!(fixture.summary(), expected, "{what}");
    }
}

#[test]
fn adoption_that_failed_is_tried_again_and_names_the_way_without_it() {
    let failed = || {
        let node = json!({ "automated_clean": false, "last_error": "no iso" });
        recorded().node_with("adopt failed", node).live()
    };
    let summary = failed().summary();
    assert!(
        summary.starts_with("writes the status, provisioning error: Host adoption failed: no iso; "),
        "{summary}"
    );
    assert!(
        summary.contains("set spec.automatedCleaningMode to metadata"),
        "{summary}"
    );
    let later = failed()
        .status(failing("provisioning error", "Host adoption failed: no iso", 1))
        .hours_later(1);
    assert_eq!(
        later.summary(),
        "requests change node, requests adopt, writes the status, error cleared, waits for the node"
    );
}
