//! Disks that the node asks the agent to skip.

use super::*;

const ROOT: &str = "/dev/sda";
const DATA: &str = "/dev/sdb";

/// A machine with a disk for the system and one for data, both with data.
fn filled() -> (Fixture, Value) {
    let fixture = Fixture::new();
    let mut profiles = profile::parse(profile::BUILT_IN).unwrap();
    let disk = fixture.ironic.machine_at(BMC, |machine| {
        machine.profile = profiles.remove("storage").unwrap();
        machine.data = [ROOT, DATA].map(|disk| (disk.to_owned(), "data".to_owned())).into();
        machine.inventory().pointer("/inventory/disks/1").cloned().unwrap()
    });
    (fixture, disk.unwrap())
}

fn left(fixture: &Fixture) -> Vec<String> {
    fixture.machine().data.into_keys().collect()
}

#[tokio::test(start_paused = true)]
async fn cleaning_spares_skipped_disks_whose_partitions_are_skipped_too() {
    for (key, step_name, kept) in [
        ("serial", "erase_devices_metadata", true),
        ("wwn", "erase_devices_metadata", true),
        ("wwn_with_extension", "erase_devices_metadata", true),
        ("hctl", "erase_devices_metadata", false),
        ("name", "erase_devices_metadata", false),
        ("hctl", "erase_devices", true),
    ] {
        let (fixture, disk) = filled();
        let hint = json!({ key: format!("s== {}", disk[key].as_str().unwrap()) });
        let node = fixture.register(json!({})).await;
        fixture
            .set(&node, "properties", json!({ "skip_block_devices": [hint] }))
            .await;
        let erase = Transition::Clean(vec![step("deploy", step_name, json!({}))]);
        fixture.go(&node, erase, ProvisionState::Manageable).await;
        let expected: &[&str] = if kept { &[DATA] } else { &[] };
        assert_eq!(left(&fixture), expected, "{key} {step_name}");
    }
}

#[tokio::test(start_paused = true)]
async fn automated_cleaning_spares_them_and_fails_on_an_invalid_hint_without_erasing() {
    let (fixture, disk) = filled();
    let node = fixture.register(json!({})).await;
    fixture
        .set(&node, "properties", json!({ "skip_block_devices": [{}] }))
        .await;
    fixture
        .go(&node, Transition::Provide, ProvisionState::CleanFailed)
        .await;
    assert_eq!(left(&fixture), [ROOT, DATA]);
    let (fixture, _) = filled();
    let node = fixture.register(json!({})).await;
    let hints = json!({ "skip_block_devices": [{ "wwn": disk["wwn"] }] });
    fixture.set(&node, "properties", hints).await;
    fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
    assert_eq!(left(&fixture), [DATA]);
}

#[tokio::test(start_paused = true)]
async fn image_is_written_to_the_root_device_also_to_one_that_is_skipped_by_its_number() {
    for (root, kept) in [(ROOT, vec![DATA]), (DATA, vec![ROOT])] {
        let (fixture, disk) = filled();
        let mut info = image("a");
        info["root_device"] = json!({ "name": format!("s== {root}") });
        let hint = json!({ "serial": disk["serial"] });
        let fields = json!({ "instance_info": info, "automated_clean": false });
        let node = fixture.register(fields).await;
        fixture
            .set(&node, "properties", json!({ "skip_block_devices": [hint] }))
            .await;
        fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
        fixture.go(&node, deploy(), ProvisionState::Active).await;
        assert_eq!(left(&fixture), kept, "{root}");
    }
}
