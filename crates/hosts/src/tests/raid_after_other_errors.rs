//! A preparation error that says nothing of the volumes, and a new leader. The volumes hold data that the user keeps:
//! `automatedCleaningMode: disabled`.

use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::fixture::Fixture;
use super::rows::given::{failing, port};

fn made(raid: &Value, node: Value) -> Fixture {
    Fixture::new("preparing")
        .with(|fixture| {
            fixture.ports = Some(vec![port()]);
            fixture.began_elsewhere = true;
        })
        .spec(json!({ "raid": raid, "automatedCleaningMode": "disabled" }))
        .status(json!({ "provisioning": { "raid": raid } }))
        .node_with("manageable", node)
        .live()
}

fn fixtures() -> [Fixture; 2] {
    let disks = json!({ "logical_disks": [
        { "controller": "software", "size_gb": "MAX", "raid_level": "1", "is_root_volume": false }] });
    let software = json!({ "raid_interface": "agent", "automated_clean": false, "raid_config": disks, "target_raid_config": disks });
    let hardware = json!({ "raid_interface": "redfish", "automated_clean": false });
    [
        made(&json!({ "softwareRAIDVolumes": [{ "level": "1" }] }), software),
        made(&json!({ "hardwareRAIDVolumes": [{ "level": "5" }] }), hardware),
    ]
}

#[test]
fn volumes_are_not_made_again_after_an_error_about_something_else_and_a_restart() {
    for message in [
        "Ironic rejected the request (create port): A port with MAC address 52:54:00:00:00:02 already exists.",
        "the node is in maintenance (disk swap), so Ironic does not operate it; end its maintenance in Ironic",
        "in Ironic the node serves instance 7; the node is not changed",
        "spec.raid.hardwareRAIDVolumes: the BMC of this host makes no volumes",
        "Ironic cannot reach the BMC (power failure); check its address, network and credentials. Ironic continues once the BMC responds",
    ] {
        for fixture in fixtures() {
            let fixture = fixture.status(failing("preparation error", message, 1)).hours_later(9);
            let before = fixture.host["status"]["provisioning"]["raid"].clone();
            let summary = fixture.summary();
            assert!(
                !summary.contains("requests") && summary.contains("to available"),
                "{message}: {summary}"
            );
            let after = fixture.performed();
            assert_eq!(after.host["status"]["provisioning"]["raid"], before, "{message}");
        }
    }
}

/// The volumes that are recorded afterwards, and the summary of the plan.
fn after(fixture: &Fixture, message: &str) -> (Value, String) {
    let fixture = fixture
        .clone()
        .status(failing("preparation error", message, 1))
        .hours_later(9);
    let summary = fixture.summary();
    (
        fixture.performed().host["status"]["provisioning"]["raid"].clone(),
        summary,
    )
}

/// What a Go manager left.
#[test]
fn volumes_are_made_again_after_a_failed_cleaning_of_another_process_that_was_for_them() {
    let [software, hardware] = fixtures();
    let unreported = software.clone().node_with(
        "manageable",
        json!({ "raid_interface": "agent", "automated_clean": false,
            "target_raid_config": { "logical_disks": [{ "controller": "software", "size_gb": 9, "raid_level": "1" }] } }),
    );
    let (raid, none) = (
        "Clean step raid.create_configuration failed on node N. x",
        "Timeout. Failed on step {}.",
    );
    for (fixture, message) in [(&software, raid), (&hardware, raid), (&unreported.live(), none)] {
        let (_, summary) = after(fixture, message);
        assert!(summary.contains("requests clean"), "{message}: {summary}");
    }
    let (recorded, summary) = after(&software, none);
    assert!(
        recorded["softwareRAIDVolumes"].is_array() && !summary.contains("requests"),
        "{summary}"
    );
}

/// Ironic reports software volumes only. Nothing is made without the user, and nothing waits without an advice that works.
#[test]
fn hardware_volumes_of_an_unnamed_step_are_an_error_until_the_user_decides() {
    let [_, hardware] = fixtures();
    for (state, node) in [
        ("manageable", json!({ "automated_clean": false })),
        (
            "clean failed",
            json!({ "automated_clean": false, "last_error": "Failed on step {}." }),
        ),
    ] {
        let unknown = |fixture: &mut Fixture| fixture.erasing = Observed::Unknown(UnknownReason::NotRead);
        let error = failing("preparation error", "Failed on step {}.", 1);
        let waits = hardware
            .clone()
            .node_with(state, node)
            .live()
            .with(unknown)
            .status(error);
        let summary = waits.summary();
        assert!(!summary.contains("requests"), "{state}: {summary}");
        assert!(
            summary.contains("it is not known whether the cleaning"),
            "{state}: {summary}"
        );
        let waits = waits.performed();
        assert!(
            waits.summary().ends_with("waits for the user"),
            "{state}: {}",
            waits.summary()
        );
        let manageable = || {
            waits
                .clone()
                .node_with("manageable", json!({ "automated_clean": false }))
                .live()
        };
        let kept = manageable().spec(json!({ "raid": null }));
        assert!(kept.summary().contains("to available"), "{state}: {}", kept.summary());
        let again = kept
            .performed()
            .node_with("available", json!({ "automated_clean": false }));
        let again = again
            .spec(json!({ "raid": { "hardwareRAIDVolumes": [{ "level": "5" }] } }))
            .live()
            .summary();
        assert!(!again.contains("to preparing"), "{state}: {again}");
        let changed = manageable()
            .spec(json!({ "raid": { "hardwareRAIDVolumes": [{ "level": "6" }] } }))
            .summary();
        assert!(changed.contains("requests clean"), "{state}: {changed}");
    }
}

/// Ironic loses the node between the removal of the volumes and the making of others.
#[test]
fn hardware_volumes_of_a_cleaning_that_was_lost_with_its_node_are_not_taken_for_made() {
    let [_, hardware] = fixtures();
    let lost = |erasing: Observed<()>| {
        let former = json!({ "provisioning": { "ID": "99999999-2222-4333-8444-555555555555" } });
        let fixture = hardware.clone().status(former).with(|fixture| {
            fixture.began_elsewhere = matches!(erasing, Observed::Unknown(_));
            fixture.erasing = erasing;
        });
        let first = fixture.summary();
        let next = fixture.performed().live();
        (
            first,
            next.host["status"]["provisioning"]["raid"].clone(),
            next.summary(),
        )
    };
    let (first, _, _) = lost(Observed::Present(()));
    assert!(first.contains("requests clean"), "{first}");
    let (first, recorded, next) = lost(Observed::Unknown(UnknownReason::NotRead));
    assert!(first.contains("it is not known whether the cleaning"), "{first}");
    assert!(
        recorded["hardwareRAIDVolumes"].is_array() && next.ends_with("waits for the user"),
        "{next}"
    );
    let (first, recorded, _) = lost(Observed::Absent);
    assert!(
        recorded["hardwareRAIDVolumes"].is_array() && first.contains("to available"),
        "{first}"
    );
}

/// The status has one error, and another one replaced it.
#[test]
fn unknown_volumes_stay_unknown_after_an_error_of_the_registration() {
    let [_, hardware] = fixtures();
    let former = json!({ "provisioning": { "ID": "99999999-2222-4333-8444-555555555555" } });
    let unknown = hardware.status(former).with(|fixture| {
        fixture.began_elsewhere = true;
        fixture.erasing = Observed::Unknown(UnknownReason::NotRead);
    });
    let kept = json!({ "automated_clean": false });
    let unknown = unknown.node_with("enroll", kept.clone()).live().performed();
    let message = |fixture: &Fixture| fixture.host["status"]["errorMessage"].as_str().unwrap().to_owned();
    assert!(message(&unknown).contains("it is not known"), "{}", message(&unknown));
    let error = json!({ "errorType": "registration error", "errorMessage": "the Secret does not exist" });
    let back = unknown
        .status(error)
        .node_with("manageable", kept)
        .live()
        .hours_later(9);
    let summary = back.summary();
    assert!(!summary.contains("to available"), "{summary}");
    assert!(message(&back.performed()).contains("it is not known"), "{summary}");
}
