//! Machines that boot a live image, and the drive that it is in.

use super::*;

#[tokio::test(start_paused = true)]
async fn live_image_is_booted_without_writing_and_its_rebuild_fails() {
    let fixture = Fixture::new();
    let live = json!({"deploy_interface": "ramdisk", "instance_info": {"boot_iso": "http://images/live.iso"}});
    let node = fixture.register(live).await;
    fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
    fixture.go(&node, deploy(), ProvisionState::Active).await;
    let machine = fixture.machine();
    assert_eq!(machine.media.as_deref(), Some("http://images/live.iso"));
    assert_eq!((machine.power, machine.counts.written), (PowerState::On, 0));
    let rebuild = Transition::Rebuild { config_drive: drive() };
    let failed = fixture.ask(&node, rebuild).await.unwrap_err();
    assert_status(&failed, 500);
    assert_eq!(fixture.read(&node).await.provision_state, ProvisionState::Active);
    fixture.go(&node, Transition::Delete, ProvisionState::Available).await;
    assert_eq!(fixture.machine().media, None);
    // The new node has no image URL, so adoption fails.
    fixture.ironic.lose_database();
    let again = fixture.register(json!({"deploy_interface": "ramdisk"})).await;
    fixture.go(&again, Transition::Adopt, ProvisionState::AdoptFailed).await;
}

/// Ironic empties the drive before it inserts anything, and when it boots its agent from there. What it loads from the network leaves
/// the drive as it is.
#[tokio::test(start_paused = true)]
async fn drive_holds_one_disc_which_the_next_boot_from_it_replaces() {
    const LIVE: &str = "http://images/live.iso";
    const DISC: &str = "http://images/data.iso";
    for (boot, live_after_disc, disc_after_cleaning) in
        [("redfish-virtual-media", None, None), ("ipxe", Some(LIVE), Some(DISC))]
    {
        let fixture = Fixture::new();
        let live = json!({"deploy_interface": "ramdisk", "boot_interface": boot, "instance_info": {"boot_iso": LIVE}});
        let node = fixture.register(live).await;
        fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
        fixture.go(&node, deploy(), ProvisionState::Active).await;
        let boots = || fixture.machine().live.map(|live| live.source);
        assert_eq!(boots().as_deref(), Some(LIVE), "{boot}");
        let attach = calls::hardware::attach_virtual_cd(&NodeRef::from(&node), DISC).unwrap();
        fixture.send(attach).await.unwrap();
        sleep(LONG).await;
        assert_eq!(fixture.machine().disc.as_deref(), Some(DISC), "{boot}");
        assert_eq!(boots().as_deref(), live_after_disc, "{boot}");
        fixture.go(&node, Transition::Delete, ProvisionState::Available).await;
        assert_eq!(fixture.machine().disc.as_deref(), disc_after_cleaning, "{boot}");
        assert_eq!(boots(), None, "{boot}");
    }
}

/// A BMC may answer that it ejected, and keep the disc.
#[tokio::test(start_paused = true)]
async fn live_image_stays_in_a_drive_that_does_not_eject() {
    const LIVE: &str = "http://images/live.iso";
    for (ejects, left) in [(true, None), (false, Some(LIVE))] {
        let fixture = Fixture::new();
        let live = json!({"deploy_interface": "ramdisk", "instance_info": {"boot_iso": LIVE}});
        let node = fixture.register(live).await;
        fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
        fixture.go(&node, deploy(), ProvisionState::Active).await;
        fixture
            .ironic
            .machine_at(BMC, |machine| machine.ejects = ejects)
            .unwrap();
        fixture.go(&node, Transition::Delete, ProvisionState::Available).await;
        let machine = fixture.machine();
        assert_eq!(machine.live.map(|live| live.source).as_deref(), left, "{ejects}");
    }
}

/// The machine of a lost node boots its live image until Ironic boots something else.
#[tokio::test(start_paused = true)]
async fn image_for_the_disk_replaces_the_live_image_of_a_lost_node() {
    let fixture = Fixture::new();
    let live = json!({"deploy_interface": "ramdisk", "instance_info": {"boot_iso": "http://images/live.iso"}});
    let node = fixture.register(live).await;
    fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
    fixture.go(&node, deploy(), ProvisionState::Active).await;
    fixture.ironic.lose_database();
    assert!(fixture.machine().live.is_some());
    fixture.deployed().await;
    let machine = fixture.machine();
    assert_eq!((machine.live, machine.media), (None, None));
    assert_eq!(machine.disk.unwrap().source, "http://images/a.raw");
}

/// The agent that services a machine is booted in place of its live image.
#[tokio::test(start_paused = true)]
async fn service_ends_with_the_live_image() {
    for boot in ["redfish-virtual-media", "ipxe"] {
        let fixture = Fixture::new();
        let live = json!({"deploy_interface": "ramdisk", "boot_interface": boot,
            "instance_info": {"boot_iso": "http://images/live.iso"}});
        let node = fixture.register(live).await;
        fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
        fixture.go(&node, deploy(), ProvisionState::Active).await;
        let before = fixture.machine();
        let steps = vec![step("bios", "factory_reset", json!({}))];
        fixture
            .go(&node, Transition::Service(steps), ProvisionState::Active)
            .await;
        let after = fixture.machine();
        assert_eq!((after.live, after.media), (before.live, before.media), "{boot}");
        assert_eq!(after.counts.started, before.counts.started + 2, "{boot}");
    }
}
