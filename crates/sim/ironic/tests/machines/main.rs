//! Operations on machines, and their independence of Ironic's records.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disks;
mod firmware;
mod live;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_domain::clock::Clock;
use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{ConfigDrive, Step, Transition};
use metal3_ironic::calls::state::Power;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::{PowerState, ProvisionState};
use metal3_ironic::request::Call;
use metal3_ironic::{Client, Error};
use metal3_runtime::clock::TimerClock;
use metal3_sim_bmc::fault::Fault;
use metal3_sim_bmc::profile;
use metal3_sim_ironic::{FirmwareUpdates, Ironic, Machine, Options};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

/// The BMC address in the form of a host; nodes split it into two fields.
const BMC: &str = "redfish-virtualmedia://192.0.2.1/redfish/v1/Systems/1";
/// Longer than any work of a node.
const LONG: Duration = Duration::from_secs(300);

struct Fixture {
    ironic: Ironic,
    client: Client,
}

impl Fixture {
    fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
        let ironic = Ironic::start(Options::new(1, clock));
        let client = ironic.client().unwrap();
        Self { ironic, client }
    }

    fn machine(&self) -> Machine {
        self.ironic.machine_at(BMC, |machine| machine.clone()).unwrap()
    }

    fn learn(&self, step: &str) {
        let learned = self
            .ironic
            .machine_at(BMC, |machine| machine.deploy_steps.insert(step.to_owned()));
        assert_eq!(learned, Some(true));
    }

    async fn create(&self, name: &str, driver_info: &Value, more: Map<String, Value>) -> NodeUuid {
        let new = calls::node::NewNode {
            name: name.into(),
            driver: "redfish".into(),
            driver_info: driver_info.as_object().cloned().unwrap(),
            properties: Map::new(),
            more,
            disable_power_off: None,
        };
        self.send(calls::node::create(new).unwrap()).await.unwrap().uuid
    }

    async fn register(&self, more: Value) -> NodeUuid {
        let mut fields = Map::from_iter([("inspect_interface".to_owned(), json!("agent"))]);
        fields.extend(more.as_object().cloned().unwrap());
        let info = json!({"redfish_address": "https://192.0.2.1", "redfish_system_id": "/redfish/v1/Systems/1"});
        let node = self.create("ns~host", &info, fields).await;
        let mac = MacAddress::parse(&self.machine().macs().remove(0)).unwrap();
        self.send(calls::port::create(&node, &mac, true)).await.unwrap();
        self.go(&node, Transition::Manage, ProvisionState::Manageable).await;
        node
    }

    async fn send<T>(&self, call: Call<T>) -> Result<T, Error> {
        self.client.send(&call).await.map(|answer| answer.value)
    }

    async fn ask(&self, node: &NodeUuid, transition: Transition) -> Result<(), Error> {
        self.send(calls::provision::request(&NodeRef::from(node), transition).unwrap())
            .await
    }

    async fn go(&self, node: &NodeUuid, transition: Transition, to: ProvisionState) -> Node {
        self.ask(node, transition).await.unwrap();
        sleep(LONG).await;
        let found = self.read(node).await;
        assert_eq!(found.provision_state, to, "{:?}", found.last_error);
        found
    }

    async fn read(&self, node: &NodeUuid) -> Node {
        self.send(calls::node::get(&NodeRef::from(node))).await.unwrap()
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

fn assert_status(error: &Error, code: u16) {
    assert!(
        matches!(error, Error::Unexpected { status: Some(found), .. } if *found == code),
        "{error}"
    );
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
async fn lost_database_and_adoption_change_neither_power_nor_disk() {
    let fixture = Fixture::new();
    fixture.deployed().await;
    let before = fixture.machine();
    assert_eq!(before.power, PowerState::On);
    fixture.ironic.lose_database();
    // Longer than the power sync period.
    sleep(LONG).await;
    let again = fixture.register(json!({})).await;
    let adopted = fixture.go(&again, Transition::Adopt, ProvisionState::Active).await;
    assert_eq!(adopted.power_state, Some(PowerState::On));
    let after = fixture.machine();
    assert_eq!(after.counts, before.counts);
    assert_eq!(after.disk, before.disk);
    assert_eq!(after.power, PowerState::On);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_node_keeps_its_machine_for_another_node() {
    let fixture = Fixture::new();
    let node = fixture.deployed().await;
    let reference = NodeRef::from(&node);
    fixture
        .send(calls::node::set_maintenance(&reference, "detached"))
        .await
        .unwrap();
    fixture.send(calls::node::delete(&reference)).await.unwrap();
    let again = fixture.register(json!({})).await;
    assert_ne!(again, node);
    assert_eq!(fixture.read(&again).await.power_state, Some(PowerState::On));
    assert_eq!(fixture.machine().counts.written, 1);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_writes_the_image_with_its_checksum_and_config_drive_once() {
    let fixture = Fixture::new();
    let node = fixture.deployed().await;
    let disk = fixture.machine().disk.unwrap();
    assert_eq!(disk.source, "http://images/a.raw");
    assert_eq!(disk.checksum.as_deref(), Some("hash of a"));
    assert_eq!(disk.config_drive, Some(json!({"user_data": "#cloud-config"})));
    assert!(!format!("{disk:?}").contains("cloud-config"), "{disk:?}");
    let shown = fixture.read(&node).await.instance_info;
    assert_eq!(shown.text("configdrive"), Some("******"));
    fixture.set(&node, "instance_info", image("b")).await;
    let rebuild = Transition::Rebuild { config_drive: drive() };
    fixture.go(&node, rebuild, ProvisionState::Active).await;
    let machine = fixture.machine();
    assert_eq!(machine.disk.unwrap().source, "http://images/b.raw");
    assert_eq!(machine.counts.written, 2);
}

#[tokio::test(start_paused = true)]
async fn incomplete_deployment_is_rejected_before_any_power_change() {
    let fixture = Fixture::new();
    for (info, field) in [
        (json!({}), "image_source"),
        (json!({"image_source": "http://images/a.raw"}), "image_checksum"),
        (
            json!({"image_source": "http://images/a.raw", "image_checksum": "b", "image_os_hash_algo": "sha256"}),
            "image_os_hash_value",
        ),
    ] {
        let node = fixture
            .register(json!({"instance_info": info, "automated_clean": false}))
            .await;
        fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
        let refused = fixture.ask(&node, deploy()).await.unwrap_err();
        assert_eq!(refused.category(), "invalid");
        assert!(refused.to_string().contains(field), "{refused}");
        assert_eq!(fixture.read(&node).await.provision_state, ProvisionState::Available);
        fixture.send(calls::node::delete(&NodeRef::from(&node))).await.unwrap();
    }
    assert_eq!(fixture.machine().counts, metal3_sim_ironic::MachineCounts::default());
}

#[tokio::test(start_paused = true)]
async fn image_of_a_registry_needs_no_checksum_but_the_login_that_the_registry_requires() {
    let fixture = Fixture::new();
    fixture.ironic.require_login("registry.example", "u:p");
    let source = "oci://registry.example/os:v1";
    let info = json!({"image_source": source, "image_pull_secret": "u:x"});
    let node = fixture
        .register(json!({"instance_info": info, "automated_clean": false}))
        .await;
    fixture.go(&node, Transition::Provide, ProvisionState::Available).await;
    fixture.go(&node, deploy(), ProvisionState::DeployFailed).await;
    assert_eq!(fixture.machine().counts, metal3_sim_ironic::MachineCounts::default());
    fixture
        .set(
            &node,
            "instance_info",
            json!({"image_source": source, "image_pull_secret": "u:p"}),
        )
        .await;
    let active = fixture.go(&node, deploy(), ProvisionState::Active).await;
    assert_eq!(fixture.machine().disk.unwrap().source, source);
    let shown = |key| active.instance_info.text(key);
    assert_eq!(shown("image_source"), Some(source));
    assert_eq!(shown("image_pull_secret"), Some("******"));
    assert!(shown("image_checksum").is_some());
}

#[tokio::test(start_paused = true)]
async fn cleaning_erases_the_disk_unless_it_is_disabled() {
    for (automated, erased) in [(true, true), (false, false)] {
        let fixture = Fixture::new();
        let node = fixture.deployed().await;
        fixture.set(&node, "automated_clean", json!(automated)).await;
        fixture.go(&node, Transition::Delete, ProvisionState::Available).await;
        let machine = fixture.machine();
        assert_eq!(machine.disk.is_none(), erased, "automated cleaning: {automated}");
        assert_eq!(machine.power, PowerState::Off);
    }
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    let erase = Transition::Clean(vec![step("deploy", "erase_devices_metadata", json!({}))]);
    fixture.go(&node, erase, ProvisionState::Manageable).await;
    assert_eq!(fixture.machine().counts.erased, 1);
}

#[tokio::test(start_paused = true)]
async fn only_actual_power_changes_are_counted() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    for (power, started, stopped) in [
        (Power::On, 1, 0),
        (Power::On, 1, 0),
        (Power::Reboot, 2, 1),
        (Power::Off, 2, 2),
        (Power::Off, 2, 2),
    ] {
        fixture
            .send(calls::state::set_power(&NodeRef::from(&node), power))
            .await
            .unwrap();
        sleep(LONG).await;
        let counts = fixture.machine().counts;
        assert_eq!((counts.started, counts.stopped), (started, stopped), "{power:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn machine_exists_and_can_have_faults_before_its_node() {
    let fixture = Fixture::new();
    let mut large = profile::parse(profile::BUILT_IN).unwrap();
    let macs = fixture.ironic.machine_at(BMC, |machine| {
        machine.profile = large.remove("large").unwrap();
        machine.power = PowerState::On;
        machine.faults = [Fault::InspectionError].into_iter().collect();
        machine.macs()
    });
    let node = fixture.register(json!({})).await;
    assert_eq!(fixture.read(&node).await.power_state, Some(PowerState::On));
    fixture
        .go(&node, Transition::Inspect, ProvisionState::InspectFailed)
        .await;
    fixture
        .ironic
        .machine_at(BMC, |machine| machine.faults = Default::default());
    fixture.go(&node, Transition::Inspect, ProvisionState::Manageable).await;
    let call = calls::node::inventory(&NodeRef::from(&node));
    let found = fixture.client.send(&call).await.unwrap().value.inventory;
    assert_eq!(found.disks.len(), 40);
    let seen: Vec<String> = found.interfaces.into_iter().filter_map(|nic| nic.mac_address).collect();
    assert_eq!(seen, macs.unwrap());
}

#[tokio::test(start_paused = true)]
async fn bios_settings_survive_a_lost_database() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    let settings = json!({"settings": [{"name": "ProcVirtualization", "value": "Disabled"}]});
    let apply = Transition::Clean(vec![step("bios", "apply_configuration", settings)]);
    fixture.go(&node, apply, ProvisionState::Manageable).await;
    fixture.ironic.lose_database();
    let again = fixture.register(json!({})).await;
    let bios = fixture
        .send(calls::hardware::bios(&NodeRef::from(&again)))
        .await
        .unwrap();
    let shown = bios.items.iter().find(|setting| setting.name == "ProcVirtualization");
    assert_eq!(shown.unwrap().value, "Disabled");
}

#[tokio::test(start_paused = true)]
async fn slow_bmc_delays_every_caller() {
    let fixture = Fixture::new();
    let node = fixture.register(json!({})).await;
    fixture.ironic.machine_at(BMC, |machine| {
        machine.faults = [Fault::SlowBmc(30)].into_iter().collect()
    });
    // The client's timeout is shorter.
    let media = fixture
        .send(calls::hardware::virtual_media(&NodeRef::from(&node)))
        .await;
    assert!(matches!(media, Err(Error::Timeout { .. })), "{media:?}");
    let begun = Instant::now();
    let on = calls::state::set_power(&NodeRef::from(&node), Power::On);
    fixture.client.send(&on).await.unwrap();
    while fixture.read(&node).await.target_power_state.is_some() {
        sleep(Duration::from_secs(1)).await;
    }
    assert!(begun.elapsed() > Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(fixture.read(&node).await.power_state, Some(PowerState::On));
}

#[tokio::test(start_paused = true)]
async fn node_without_bmc_address_fails_verification() {
    let fixture = Fixture::new();
    let node = fixture.create("ns~lost", &json!({}), Map::new()).await;
    fixture.go(&node, Transition::Manage, ProvisionState::Enroll).await;
    assert!(fixture.read(&node).await.last_error.unwrap().contains("driver_info"));
    fixture
        .set(&node, "driver_info", json!({"redfish_address": "https://192.0.2.9"}))
        .await;
    fixture.go(&node, Transition::Manage, ProvisionState::Manageable).await;
    // Removing an address is not simulated.
    let call = calls::node::patch(&NodeRef::from(&node), Patch::new().set(&["driver_info"], json!({}))).unwrap();
    let refused = fixture.client.send(&call).await.unwrap_err();
    assert_status(&refused, 501);
}

const UPDATE: &str = "http://images/bios-2.bin";

fn update_of(component: &str, url: &str) -> Transition {
    let settings = json!({"settings": [{"component": component, "url": url}]});
    Transition::Clean(vec![step("firmware", "update", settings)])
}

#[tokio::test(start_paused = true)]
async fn root_lists_the_supported_microversions() {
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
