//! A wish that cannot be served has the error of the state that would serve it: a Go manager that takes the host over then repeats that
//! state, and offers no host as prepared that is not.

use serde_json::json;

use super::fixture::Fixture;
use super::rows::given::{inspecting, preparing, provisioning, registering};

#[test]
fn wish_that_cannot_be_served_has_the_error_type_of_the_state_that_would_serve_it() {
    let address = |address: &str| json!({ "bmc": { "address": address } });
    let volumes = || json!({ "softwareRAIDVolumes": [{ "level": "1" }] });
    let kept = json!({ "raid": volumes(), "automatedCleaningMode": "disabled" });
    let rows: [(&str, Fixture, &str); 4] = [
        (
            "volumes whose disks are to be kept",
            preparing()
                .spec(kept)
                .status(json!({ "provisioning": { "raid": volumes() } }))
                .node_with(
                    "manageable",
                    json!({ "automated_clean": false, "raid_interface": "agent" }),
                )
                .live(),
            "preparation error",
        ),
        (
            "an unknown BMC",
            registering().spec(address("unknown://192.0.2.1")).node("enroll").live(),
            "registration error",
        ),
        (
            "an unknown BMC of a registered host",
            inspecting()
                .spec(address("unknown://192.0.2.1"))
                .node("manageable")
                .live(),
            "registration error",
        ),
        (
            "user data of another namespace",
            provisioning()
                .spec(json!({ "userData": { "namespace": "other", "name": "u" } }))
                .node("available")
                .live(),
            "provisioning error",
        ),
    ];
    let wrong: Vec<String> = rows
        .into_iter()
        .map(|(wish, fixture, kind)| (wish, fixture.summary(), kind))
        .filter(|(_, summary, kind)| !summary.contains(&format!("{kind}: ")))
        .map(|(wish, summary, kind)| format!("{wish}: {kind} expected, {summary}"))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
