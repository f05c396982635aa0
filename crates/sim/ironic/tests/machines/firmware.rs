//! Updates of the firmware, and the versions that Ironic reports.

use super::*;

/// The system runs on: Ironic boots no agent for a service with updates alone.
#[tokio::test(start_paused = true)]
async fn firmware_is_updated_by_a_service_without_the_agent() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    fixture.go(&node, Transition::Adopt, ProvisionState::Active).await;
    let settings = json!({"settings": [{"component": "bios", "url": UPDATE}]});
    let update = vec![step("firmware", "update", settings)];
    let before = fixture.ironic.machine_at(BMC, |machine| machine.counts.erased);
    fixture
        .go(&node, Transition::Service(update), ProvisionState::Active)
        .await;
    assert_eq!(version(&fixture, &node, "bios").await, "bios-2.bin");
    let shown = fixture.read(&node).await;
    assert!(shown.firmware_left().is_empty() && shown.steps_under_way().is_empty());
    assert_eq!(fixture.ironic.machine_at(BMC, |machine| machine.counts.erased), before);
}

async fn version(fixture: &Fixture, node: &NodeUuid, component: &str) -> String {
    let call = calls::hardware::firmware(&NodeRef::from(node));
    let found = fixture.send(call).await.unwrap().items;
    let found = found.into_iter().find(|one| one.component == component);
    found.unwrap().current_version.unwrap()
}

#[tokio::test(start_paused = true)]
async fn firmware_is_updated_by_a_cleaning_and_its_version_reported() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    assert_ne!(version(&fixture, &node, "bios").await, "bios-2.bin");
    let updates = json!({"settings": [{"component": "bios", "url": UPDATE}, {"component": "bmc", "url": "http://images/bmc-3.bin"}]});
    let steps = vec![
        step("firmware", "update", updates),
        step("deploy", "erase_devices_metadata", json!({})),
    ];
    fixture
        .go(&node, Transition::Clean(steps), ProvisionState::Manageable)
        .await;
    assert_eq!(version(&fixture, &node, "bios").await, "bios-2.bin");
    assert_eq!(version(&fixture, &node, "bmc").await, "bmc-3.bin");
    let erased = fixture.ironic.machine_at(BMC, |machine| machine.counts.erased);
    assert_eq!(erased, Some(1), "the next step runs");
}

#[tokio::test(start_paused = true)]
async fn firmware_update_is_refused_as_by_ironic() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    for (component, url, part) in [
        ("psu", UPDATE, "Invalid firmware update"),
        ("bios", "", "Invalid firmware update"),
        ("bios", "ftp://images/bios-2.bin", "ftp is not supported"),
    ] {
        fixture
            .go(&node, update_of(component, url), ProvisionState::CleanFailed)
            .await;
        let shown = fixture.read(&node).await;
        assert!(shown.last_error.as_deref().unwrap().contains(part), "{component} {url}");
        assert_eq!(shown.fault.as_deref(), Some("clean failure"));
        assert!(shown.firmware_left().is_empty());
        fixture.end_maintenance(&node).await;
        fixture.go(&node, Transition::Manage, ProvisionState::Manageable).await;
    }
}

#[tokio::test(start_paused = true)]
async fn driver_without_a_firmware_interface_has_no_versions_and_no_update() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({"firmware_interface": "no-firmware"})).await;
    let call = calls::hardware::firmware(&NodeRef::from(&node));
    assert!(fixture.send(call).await.unwrap().items.is_empty());
    fixture.ask(&node, update_of("bios", UPDATE)).await.unwrap();
    sleep(Duration::from_secs(20)).await;
    let error = fixture.read(&node).await.last_error.unwrap();
    assert!(
        error.contains("does not support this clean step: firmware.update"),
        "{error}"
    );
}

impl Fixture {
    fn set_updates(&self, updates: FirmwareUpdates) {
        self.ironic
            .machine_at(BMC, |machine| machine.firmware_updates = updates);
    }

    /// Updates the firmware of a BMC that does not end it, until the cleaning times out.
    async fn time_out(&self, node: &NodeUuid) -> Node {
        self.set_updates(FirmwareUpdates::NeverEnd);
        self.ask(node, update_of("bios", UPDATE)).await.unwrap();
        loop {
            sleep(Duration::from_secs(5)).await;
            let shown = self.read(node).await;
            if shown.provision_state == ProvisionState::CleanFailed {
                return shown;
            }
        }
    }

    async fn end_maintenance(&self, node: &NodeUuid) {
        self.send(calls::node::clear_maintenance(&NodeRef::from(node)))
            .await
            .unwrap();
    }
}

/// A failed update leaves nothing. A timeout leaves the list, which Ironic discards while the node is in maintenance only.
#[tokio::test(start_paused = true)]
async fn updates_that_a_timeout_left_are_discarded_in_maintenance_only() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    fixture.set_updates(FirmwareUpdates::Fail);
    let failed = fixture
        .go(&node, update_of("bios", UPDATE), ProvisionState::CleanFailed)
        .await;
    assert!(failed.last_error.as_deref().unwrap().contains("Firmware update failed"));
    assert!(failed.firmware_left().is_empty());
    fixture.end_maintenance(&node).await;
    fixture.go(&node, Transition::Manage, ProvisionState::Manageable).await;
    let shown = fixture.time_out(&node).await;
    assert!(shown.last_error.as_deref().unwrap().contains("Timeout reached"));
    assert_eq!(shown.firmware_left().len(), 1);
    fixture.end_maintenance(&node).await;
    sleep(Duration::from_mins(10)).await;
    let shown = fixture.read(&node).await;
    assert_eq!(shown.firmware_left().len(), 1, "without maintenance it stays");
    let maintain = calls::node::set_maintenance(&NodeRef::from(&node), "to discard updates");
    fixture.send(maintain).await.unwrap();
    sleep(Duration::from_mins(2)).await;
    assert!(fixture.read(&node).await.firmware_left().is_empty());
}

/// What is left when the node is made manageable is polled by the next cleaning.
#[tokio::test(start_paused = true)]
async fn updates_that_are_left_are_made_or_fail_in_the_next_cleaning() {
    for (then, made, state) in [
        (FirmwareUpdates::Succeed, 1, ProvisionState::Manageable),
        (FirmwareUpdates::Fail, 0, ProvisionState::CleanWait),
    ] {
        let fixture = Fixture::new();
        let node = fixture.register(json!({})).await;
        fixture.time_out(&node).await;
        fixture.end_maintenance(&node).await;
        fixture.go(&node, Transition::Manage, ProvisionState::Manageable).await;
        fixture.set_updates(then);
        let other = Transition::Clean(vec![step("deploy", "erase_devices_metadata", json!({}))]);
        fixture.ask(&node, other).await.unwrap();
        sleep(Duration::from_mins(20)).await;
        let shown = fixture.read(&node).await;
        assert_eq!(shown.provision_state, state, "{then:?}");
        assert!(shown.firmware_left().is_empty(), "{then:?}");
        let flashed = fixture.ironic.machine_at(BMC, |machine| machine.flashed.len());
        assert_eq!(flashed, Some(made), "{then:?}");
        // No step had begun, so Ironic sets neither a fault nor the failed state.
        let is_failed = state == ProvisionState::CleanWait;
        assert_eq!((shown.maintenance, shown.fault), (is_failed, None), "{then:?}");
    }
}
