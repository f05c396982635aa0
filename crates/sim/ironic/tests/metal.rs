//! The machines behind the nodes: what is done to them, and that they outlive what Ironic knows of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_domain::clock::Clock;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{ConfigDrive, Step, Transition};
use metal3_ironic::calls::state::Power;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::{PowerState, ProvisionState};
use metal3_ironic::{Client, Error};
use metal3_sim_ironic::{Ironic, Machine, Options};
use metal3_sim_bmc::fault::Fault;
use metal3_sim_bmc::profile;
use metal3_runtime::clock::TimerClock;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

/// As a host writes it; nodes write it in two pieces.
const BMC: &str = "redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1";
/// Longer than any work of a node.
const LONG: Duration = Duration::from_secs(300);

struct World {
    ironic: Ironic,
    client: Client,
}

impl World {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
        let ironic = Ironic::start(Options::new(1, clock));
        let client = ironic.client().unwrap();
        Self { ironic, client }
    }

    fn machine(&self) -> Machine {
        self.ironic.machine_at(BMC, |machine| machine.clone()).unwrap()
    }

    async fn register(&self, more: Value) -> NodeUuid {
        let mut fields = Map::from_iter([("inspect_interface".to_owned(), json!("agent"))]);
        fields.extend(more.as_object().cloned().unwrap());
        let new = calls::node::NewNode {
            name: "ns~host".into(),
            driver: "redfish".into(),
            driver_info: Map::from_iter([
                ("redfish_address".to_owned(), json!("https://192.0.2.1")),
                ("redfish_system_id".to_owned(), json!("/redfish/v1/Systems/1")),
            ]),
            properties: Map::new(),
            more: fields,
            disable_power_off: None,
        };
        let created = self.client.send(&calls::node::create(new).unwrap()).await.unwrap();
        let node = created.value.uuid;
        self.go(&node, Transition::Manage, ProvisionState::Manageable).await;
        node
    }

    async fn ask(&self, node: &NodeUuid, transition: Transition) -> Result<(), Error> {
        let call = calls::provision::request(&NodeRef::from(node), transition).unwrap();
        self.client.send(&call).await.map(|_| ())
    }

    async fn go(&self, node: &NodeUuid, transition: Transition, to: ProvisionState) -> Node {
        self.ask(node, transition).await.unwrap();
        sleep(LONG).await;
        let found = self.read(node).await;
        assert_eq!(found.provision_state, to, "{:?}", found.last_error);
        found
    }

    async fn read(&self, node: &NodeUuid) -> Node {
        let call = calls::node::get(&NodeRef::from(node));
        self.client.send(&call).await.unwrap().value
    }

    async fn set(&self, node: &NodeUuid, field: &str, value: Value) {
        let call = calls::node::patch(&NodeRef::from(node), Patch::new().set(&[field], value)).unwrap();
        self.client.send(&call).await.unwrap();
    }

    async fn deployed(&self) -> NodeUuid {
        let node = self.register(json!({"instance_info": image("a")})).await;
        self.go(&node, Transition::Provide, ProvisionState::Available).await;
        self.go(&node, deploy(), ProvisionState::Active).await;
        node
    }
}

fn image(name: &str) -> Value {
    json!({
        "image_source": format!("http://images/{name}.raw"),
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": format!("hash of {name}"),
    })
}

fn drive() -> ConfigDrive {
    ConfigDrive(Map::from_iter([("user_data".to_owned(), json!("#cloud-config"))]))
}

fn deploy() -> Transition {
    Transition::Deploy {
        config_drive: drive(),
        steps: Vec::new(),
    }
}

fn step(interface: &str, name: &str, args: Value) -> Step {
    Step {
        interface: interface.into(),
        step: name.into(),
        args: args.as_object().cloned().unwrap(),
        priority: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_database_leaves_the_machine_running_with_its_disk_and_adoption_touches_neither() {
    let world = World::new();
    world.deployed().await;
    let before = world.machine();
    assert_eq!(before.power, PowerState::On);
    world.ironic.lose_database();
    // Longer than Ironic takes to look at the power of every node.
    sleep(LONG).await;
    let again = world.register(json!({})).await;
    let adopted = world.go(&again, Transition::Adopt, ProvisionState::Active).await;
    assert_eq!(adopted.power_state, Some(PowerState::On));
    let after = world.machine();
    assert_eq!(after.counts, before.counts);
    assert_eq!(after.disk, before.disk);
    assert_eq!(after.power, PowerState::On);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_deleted_leaves_its_machine_and_another_node_finds_it() {
    let world = World::new();
    let node = world.deployed().await;
    let reference = NodeRef::from(&node);
    world
        .client
        .send(&calls::node::set_maintenance(&reference, "detached"))
        .await
        .unwrap();
    world.client.send(&calls::node::delete(&reference)).await.unwrap();
    let again = world.register(json!({})).await;
    assert_ne!(again, node);
    assert_eq!(world.read(&again).await.power_state, Some(PowerState::On));
    assert_eq!(world.machine().counts.written, 1);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_writes_the_image_with_its_checksum_and_config_drive_once() {
    let world = World::new();
    let node = world.deployed().await;
    let disk = world.machine().disk.unwrap();
    assert_eq!(disk.source, "http://images/a.raw");
    assert_eq!(disk.checksum.as_deref(), Some("hash of a"));
    assert_eq!(disk.config_drive, Some(json!({"user_data": "#cloud-config"})));
    assert!(!format!("{disk:?}").contains("cloud-config"), "{disk:?}");
    let shown = world.read(&node).await.instance_info;
    assert_eq!(shown.text("configdrive"), Some("******"));
    world.set(&node, "instance_info", image("b")).await;
    let rebuild = Transition::Rebuild { config_drive: drive() };
    world.go(&node, rebuild, ProvisionState::Active).await;
    let machine = world.machine();
    assert_eq!(machine.disk.unwrap().source, "http://images/b.raw");
    assert_eq!(machine.counts.written, 2);
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_lacks_is_refused_before_anything_is_switched() {
    let world = World::new();
    for (info, field) in [
        (json!({}), "image_source"),
        (json!({"image_source": "http://images/a.raw"}), "image_checksum"),
        (
            json!({"image_source": "http://images/a.raw", "image_checksum": "b", "image_os_hash_algo": "sha256"}),
            "image_os_hash_value",
        ),
    ] {
        let node = world
            .register(json!({"instance_info": info, "automated_clean": false}))
            .await;
        world.go(&node, Transition::Provide, ProvisionState::Available).await;
        let refused = world.ask(&node, deploy()).await.unwrap_err();
        assert_eq!(refused.category(), "invalid");
        assert!(refused.to_string().contains(field), "{refused}");
        assert_eq!(world.read(&node).await.provision_state, ProvisionState::Available);
        world
            .client
            .send(&calls::node::delete(&NodeRef::from(&node)))
            .await
            .unwrap();
    }
    assert_eq!(world.machine().counts, metal3_sim_ironic::MachineCounts::default());
}

#[tokio::test(start_paused = true)]
async fn cleaning_erases_the_disk_unless_it_is_switched_off() {
    for (automated, erased) in [(true, true), (false, false)] {
        let world = World::new();
        let node = world.deployed().await;
        world.set(&node, "automated_clean", json!(automated)).await;
        world.go(&node, Transition::Delete, ProvisionState::Available).await;
        let machine = world.machine();
        assert_eq!(machine.disk.is_none(), erased, "automated cleaning: {automated}");
        assert_eq!(machine.power, PowerState::Off);
    }
    let world = World::new();
    let node = world.register(json!({})).await;
    let erase = Transition::Clean(vec![step("deploy", "erase_devices_metadata", json!({}))]);
    world.go(&node, erase, ProvisionState::Manageable).await;
    assert_eq!(world.machine().counts.erased, 1);
}

#[tokio::test(start_paused = true)]
async fn a_live_image_is_booted_and_never_written_and_its_rebuild_fails_in_ironic() {
    let world = World::new();
    let live = json!({"deploy_interface": "ramdisk", "instance_info": {"boot_iso": "http://images/live.iso"}});
    let node = world.register(live).await;
    world.go(&node, Transition::Provide, ProvisionState::Available).await;
    world.go(&node, deploy(), ProvisionState::Active).await;
    let machine = world.machine();
    assert_eq!(machine.media.as_deref(), Some("http://images/live.iso"));
    assert_eq!((machine.power, machine.counts.written), (PowerState::On, 0));
    let rebuild = Transition::Rebuild { config_drive: drive() };
    let failed = world.ask(&node, rebuild).await.unwrap_err();
    assert!(
        matches!(failed, Error::Unexpected { status: Some(500), .. }),
        "{failed}"
    );
    assert_eq!(world.read(&node).await.provision_state, ProvisionState::Active);
    world.go(&node, Transition::Delete, ProvisionState::Available).await;
    assert_eq!(world.machine().media, None);
    // What is not told again cannot be taken over again.
    world.ironic.lose_database();
    let again = world.register(json!({"deploy_interface": "ramdisk"})).await;
    world.go(&again, Transition::Adopt, ProvisionState::AdoptFailed).await;
}

#[tokio::test(start_paused = true)]
async fn only_a_change_of_power_counts_as_one() {
    let world = World::new();
    let node = world.register(json!({})).await;
    for (power, started, stopped) in [
        (Power::On, 1, 0),
        (Power::On, 1, 0),
        (Power::Reboot, 2, 1),
        (Power::Off, 2, 2),
        (Power::Off, 2, 2),
    ] {
        world
            .client
            .send(&calls::state::set_power(&NodeRef::from(&node), power))
            .await
            .unwrap();
        sleep(LONG).await;
        let counts = world.machine().counts;
        assert_eq!((counts.started, counts.stopped), (started, stopped), "{power:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_made_and_broken_before_any_node_names_it() {
    let world = World::new();
    let mut large = profile::parse(profile::BUILT_IN).unwrap();
    let macs = world.ironic.machine_at(BMC, |machine| {
        machine.profile = large.remove("large").unwrap();
        machine.power = PowerState::On;
        machine.faults = [Fault::InspectionError].into_iter().collect();
        machine.macs()
    });
    let node = world.register(json!({})).await;
    assert_eq!(world.read(&node).await.power_state, Some(PowerState::On));
    world
        .go(&node, Transition::Inspect, ProvisionState::InspectFailed)
        .await;
    world
        .ironic
        .machine_at(BMC, |machine| machine.faults = Default::default());
    world.go(&node, Transition::Inspect, ProvisionState::Manageable).await;
    let call = calls::node::inventory(&NodeRef::from(&node));
    let found = world.client.send(&call).await.unwrap().value.inventory;
    assert_eq!(found.disks.len(), 40);
    let seen: Vec<String> = found.interfaces.into_iter().filter_map(|nic| nic.mac_address).collect();
    assert_eq!(seen, macs.unwrap());
}

#[tokio::test(start_paused = true)]
async fn settings_of_the_firmware_outlive_the_database() {
    let world = World::new();
    let node = world.register(json!({})).await;
    let settings = json!({"settings": [{"name": "ProcVirtualization", "value": "Disabled"}]});
    let apply = Transition::Clean(vec![step("bios", "apply_configuration", settings)]);
    world.go(&node, apply, ProvisionState::Manageable).await;
    world.ironic.lose_database();
    let again = world.register(json!({})).await;
    let bios = world
        .client
        .send(&calls::hardware::bios(&NodeRef::from(&again)))
        .await
        .unwrap();
    let shown = bios
        .value
        .items
        .iter()
        .find(|setting| setting.name == "ProcVirtualization");
    assert_eq!(shown.unwrap().value, "Disabled");
}

#[tokio::test(start_paused = true)]
async fn a_bmc_that_hangs_for_half_a_minute_keeps_whoever_asks_it_waiting() {
    let world = World::new();
    let node = world.register(json!({})).await;
    world.ironic.machine_at(BMC, |machine| {
        machine.faults = [Fault::SlowBmc(30)].into_iter().collect()
    });
    // A client that waits for an answer does not wait so long.
    let media = world
        .client
        .send(&calls::hardware::virtual_media(&NodeRef::from(&node)))
        .await;
    assert!(matches!(media, Err(Error::Timeout { .. })), "{media:?}");
    let begun = Instant::now();
    let on = calls::state::set_power(&NodeRef::from(&node), Power::On);
    world.client.send(&on).await.unwrap();
    while world.read(&node).await.target_power_state.is_some() {
        sleep(Duration::from_secs(1)).await;
    }
    assert!(begun.elapsed() > Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(world.read(&node).await.power_state, Some(PowerState::On));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_does_not_say_where_its_machine_is_is_not_verified() {
    let world = World::new();
    let new = calls::node::NewNode {
        name: "ns~lost".into(),
        driver: "redfish".into(),
        driver_info: Map::new(),
        properties: Map::new(),
        more: Map::new(),
        disable_power_off: None,
    };
    let node = world
        .client
        .send(&calls::node::create(new).unwrap())
        .await
        .unwrap()
        .value
        .uuid;
    world.go(&node, Transition::Manage, ProvisionState::Enroll).await;
    assert!(world.read(&node).await.last_error.unwrap().contains("driver_info"));
    world
        .set(&node, "driver_info", json!({"redfish_address": "https://192.0.2.9"}))
        .await;
    world.go(&node, Transition::Manage, ProvisionState::Manageable).await;
    // An address that is taken away again is what is not simulated.
    let call = calls::node::patch(&NodeRef::from(&node), Patch::new().set(&["driver_info"], json!({}))).unwrap();
    let refused = world.client.send(&call).await.unwrap_err();
    assert!(
        matches!(refused, Error::Unexpected { status: Some(501), .. }),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_firmware_update_is_not_simulated_and_says_so() {
    let world = World::new();
    let node = world.register(json!({})).await;
    let settings = json!({"settings": [{"component": "bios", "url": "http://images/bios.bin"}]});
    let update = || vec![step("firmware", "update", settings.clone())];
    let refused = world.ask(&node, Transition::Clean(update())).await.unwrap_err();
    assert!(
        matches!(refused, Error::Unexpected { status: Some(501), .. }),
        "{refused}"
    );
    assert_eq!(world.read(&node).await.provision_state, ProvisionState::Manageable);
    world.go(&node, Transition::Adopt, ProvisionState::Active).await;
    let refused = world.ask(&node, Transition::Service(update())).await.unwrap_err();
    assert!(
        matches!(refused, Error::Unexpected { status: Some(501), .. }),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_root_names_the_dialects_that_this_ironic_speaks() {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let mut options = Options::new(1, clock);
    options.versions.maximum = metal3_ironic::version::Microversion::minor(94);
    let ironic = Ironic::start(options);
    let request = http::Request::get("/v1").header("x-openstack-ironic-api-version", "1.90");
    let answer = metal3_ironic::transport::Transport::exchange(&ironic, request.body(Vec::new()).unwrap())
        .await
        .unwrap();
    let root: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!(root["version"]["version"], "1.94");
    assert_eq!(root["version"]["min_version"], "1.1");
}
