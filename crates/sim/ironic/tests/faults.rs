//! Faults of machines, compared with a real Ironic, and faults of requests.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

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
use metal3_sim_faults::{Fault as RequestFault, Plan, Rule};
use metal3_sim_ironic::{BmcAccount, Ironic, Options};
use serde_json::{Map, json};
use tokio::time::sleep;

/// The results of `make ironic-faults` on a real Ironic with simulated machines.
const TABLE: &str = include_str!("../../../../docs/ironic-faults.md");
/// The observation time of that table.
const WATCHED: Duration = Duration::from_secs(150);

struct Fixture {
    ironic: Ironic,
    client: Client,
    node: NodeUuid,
}

impl Fixture {
    async fn with_a_machine() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
        let mut options = Options::new(1, clock);
        // The time-outs of the Ironic of the table.
        options.pace.ramdisk_timeout = Duration::from_secs(30);
        options.pace.boot = Duration::from_secs(5);
        options.pace.work = Duration::from_secs(5);
        let ironic = Ironic::start(options);
        let client = ironic.client().unwrap();
        let new = calls::node::NewNode {
            name: "ns~host".into(),
            driver: "redfish".into(),
            driver_info: Map::from_iter([("redfish_address".to_owned(), json!("https://192.0.2.1"))]),
            properties: Map::new(),
            more: Map::from_iter([
                ("inspect_interface".to_owned(), json!("agent")),
                (
                    "instance_info".to_owned(),
                    json!({"image_source": "http://images/a.raw", "image_checksum": "http://images/a.raw.sha256"}),
                ),
            ]),
            disable_power_off: None,
        };
        let created = client.send(&calls::node::create(new).unwrap()).await.unwrap();
        let node = created.value.uuid;
        let mac = ironic
            .machine(node.as_str(), |machine| machine.macs().remove(0))
            .unwrap();
        let mac = MacAddress::parse(&mac).unwrap();
        client.send(&calls::port::create(&node, &mac, true)).await.unwrap();
        Self { ironic, client, node }
    }

    fn reference(&self) -> NodeRef {
        NodeRef::from(&self.node)
    }

    async fn send<T>(&self, call: Call<T>) -> Result<T, Error> {
        self.client.send(&call).await.map(|answer| answer.value)
    }

    async fn ask(&self, transition: Transition) {
        let call = calls::provision::request(&self.reference(), transition).unwrap();
        self.client.send(&call).await.unwrap();
    }

    async fn go(&self, transition: Transition, to: ProvisionState) {
        self.ask(transition).await;
        sleep(WATCHED).await;
        assert_eq!(self.read().await.provision_state, to);
    }

    async fn read(&self) -> Node {
        self.send(calls::node::get(&self.reference())).await.unwrap()
    }

    fn set_fault(&self, fault: Fault) {
        let broken = |machine: &mut metal3_sim_ironic::Machine| machine.faults = [fault].into_iter().collect();
        self.ironic.machine(self.node.as_str(), broken).unwrap();
    }

    fn clear_faults(&self) {
        let mend = |machine: &mut metal3_sim_ironic::Machine| machine.faults = Default::default();
        self.ironic.machine(self.node.as_str(), mend).unwrap();
    }
}

fn fault(words: &str) -> Fault {
    match words {
        "dead BMC" => Fault::DeadBmc,
        "slow BMC, 30 s a call" => Fault::SlowBmc(30),
        "wrong password" => Fault::WrongPassword,
        "BMC answers 503" => Fault::BmcStatus(503),
        "power does not change" => Fault::PowerStuck,
        "MAC not matching" => Fault::ForeignMac,
        "ramdisk never boots" => Fault::NoBoot,
        "inventory cannot be collected" => Fault::InspectionError,
        "agent never heartbeats" => Fault::NoHeartbeat,
        "clean step fails" => Fault::CleanStepFails,
        "checksum mismatch" => Fault::ChecksumMismatch,
        "disk too small" => Fault::DiskTooSmall,
        other => panic!("the table has a fault that is not simulated: {other}"),
    }
}

fn clean() -> Transition {
    Transition::Clean(vec![Step {
        interface: "deploy".into(),
        step: "erase_devices_metadata".into(),
        args: Map::new(),
        priority: None,
    }])
}

fn deploy() -> Transition {
    Transition::Deploy {
        config_drive: ConfigDrive::default(),
        steps: Vec::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn every_fault_of_the_table_results_in_the_state_of_the_real_ironic() {
    let rows: Vec<Vec<&str>> = TABLE
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| fault") && !line.starts_with("| ---"))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 15);
    for row in rows {
        let [_, words, verb, state, power, maintenance, ..] = row.as_slice() else {
            panic!("{row:?}")
        };
        let fixture = Fixture::with_a_machine().await;
        if *verb != "manage" {
            fixture.go(Transition::Manage, ProvisionState::Manageable).await;
        }
        if *verb == "active" {
            fixture.go(Transition::Provide, ProvisionState::Available).await;
        }
        fixture.set_fault(fault(words));
        fixture
            .ask(match *verb {
                "manage" => Transition::Manage,
                "inspect" => Transition::Inspect,
                "clean" => clean(),
                "active" => deploy(),
                other => panic!("{other}"),
            })
            .await;
        sleep(WATCHED).await;
        let node = fixture.read().await;
        let shown = node.power_state.as_ref().map_or("none", PowerState::as_str);
        let found = (node.provision_state.as_str(), shown, &*node.maintenance.to_string());
        assert_eq!(
            found,
            (*state, *power, *maintenance),
            "{words} at {verb}: {:?}",
            node.last_error
        );
    }
}

#[tokio::test(start_paused = true)]
async fn life_cycle_of_a_machine_passes_the_wait_states() {
    let fixture = Fixture::with_a_machine().await;
    let mut passed = Vec::new();
    let life = [
        (Transition::Manage, ProvisionState::Manageable),
        (Transition::Inspect, ProvisionState::Manageable),
        (Transition::Provide, ProvisionState::Available),
        (deploy(), ProvisionState::Active),
        (Transition::Delete, ProvisionState::Available),
    ];
    for (transition, to) in life {
        fixture.ask(transition).await;
        loop {
            let node = fixture.read().await;
            let state = node.provision_state.as_str().to_owned();
            if passed.last() != Some(&state) {
                passed.push(state);
            }
            if node.provision_state == to && node.reservation.is_none() {
                break;
            }
            sleep(Duration::from_millis(500)).await;
        }
    }
    let expected = "verifying, manageable, inspecting, inspect wait, inspecting, manageable, \
                    cleaning, clean wait, cleaning, available, \
                    deploying, wait call-back, deploying, active, \
                    deleting, cleaning, clean wait, cleaning, available";
    assert_eq!(passed.join(", "), expected);
}

#[tokio::test(start_paused = true)]
async fn inspection_reports_the_profile_and_creates_ports() {
    let fixture = Fixture::with_a_machine().await;
    fixture.go(Transition::Manage, ProvisionState::Manageable).await;
    let before = fixture.send(calls::node::inventory(&fixture.reference())).await;
    assert!(matches!(before, Err(Error::NotFound(_))));
    fixture.go(Transition::Inspect, ProvisionState::Manageable).await;
    let found = fixture
        .send(calls::node::inventory(&fixture.reference()))
        .await
        .unwrap();
    assert_eq!(found.inventory.cpu.count, Some(16));
    assert_eq!(found.inventory.disks.len(), 1);
    let ports = fixture
        .send(calls::port::of_node(&fixture.reference(), None))
        .await
        .unwrap();
    let macs: Vec<Option<String>> = found
        .inventory
        .interfaces
        .iter()
        .map(|nic| nic.mac_address.clone())
        .collect();
    let ports: Vec<Option<String>> = ports.items.into_iter().map(|port| Some(port.address)).collect();
    assert_eq!(ports, macs);
}

#[tokio::test(start_paused = true)]
async fn drifted_power_is_restored_and_a_dead_bmc_sets_maintenance() {
    let fixture = Fixture::with_a_machine().await;
    fixture.go(Transition::Manage, ProvisionState::Manageable).await;
    let power = calls::state::set_power(&fixture.reference(), Power::On);
    fixture.client.send(&power).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    let before = fixture.read().await;
    assert_eq!(before.power_state, Some(PowerState::On));
    let name = fixture.node.as_str();
    fixture
        .ironic
        .machine(name, |machine| machine.power = PowerState::Off)
        .unwrap();
    sleep(Duration::from_secs(121)).await;
    let after = fixture.read().await;
    assert_eq!(after.power_state, Some(PowerState::On));
    assert_eq!(
        fixture.ironic.machine(name, |machine| machine.power.clone()),
        Some(PowerState::On)
    );
    fixture.set_fault(Fault::DeadBmc);
    sleep(Duration::from_secs(121 * 4)).await;
    let node = fixture.read().await;
    assert!(
        node.maintenance && node.fault.as_deref() == Some("power failure"),
        "{node:?}"
    );
    fixture.clear_faults();
    sleep(Duration::from_secs(121)).await;
    assert!(!fixture.read().await.maintenance);
}

#[tokio::test(start_paused = true)]
async fn synchronous_bmc_query_takes_the_time_of_the_bmc() {
    let fixture = Fixture::with_a_machine().await;
    fixture.go(Transition::Manage, ProvisionState::Manageable).await;
    fixture.set_fault(Fault::WrongPassword);
    let refused = fixture.send(calls::state::boot_device(&fixture.reference())).await;
    assert!(
        matches!(refused, Err(Error::Unexpected { status: Some(500), .. })),
        "{refused:?}"
    );
    fixture.set_fault(Fault::DeadBmc);
    let late = fixture.send(calls::state::boot_device(&fixture.reference())).await;
    assert!(matches!(late, Err(Error::Timeout { .. })), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn bmc_with_an_account_accepts_no_other_login() {
    let fixture = Fixture::with_a_machine().await;
    fixture.go(Transition::Manage, ProvisionState::Manageable).await;
    let require = |username: &str| {
        let account = BmcAccount {
            username: username.to_owned(),
            password: "p".to_owned(),
        };
        let change = |machine: &mut metal3_sim_ironic::Machine| machine.account = Some(account);
        fixture.ironic.machine(fixture.node.as_str(), change).unwrap();
    };
    require("admin");
    let patch = Patch::new()
        .set(&["driver_info", "redfish_username"], "admin")
        .set(&["driver_info", "redfish_password"], "p");
    let patch = calls::node::patch(&fixture.reference(), patch).unwrap();
    fixture.send(patch).await.unwrap();
    fixture
        .send(calls::state::boot_device(&fixture.reference()))
        .await
        .unwrap();
    require("root");
    let refused = fixture.send(calls::state::boot_device(&fixture.reference())).await;
    let says_why = matches!(&refused, Err(Error::Unexpected { status: Some(500), reason, .. }) if reason.contains("returned code 401"));
    assert!(says_why, "{refused:?}");
    sleep(Duration::from_secs(121 * 4)).await;
    let node = fixture.read().await;
    assert_eq!(node.fault.as_deref(), Some("power failure"), "{node:?}");
}

#[tokio::test(start_paused = true)]
async fn abort_ends_work_that_waits_for_its_ramdisk() {
    for (before, transition, aborted) in [
        (
            ProvisionState::Manageable,
            Transition::Inspect,
            ProvisionState::InspectFailed,
        ),
        (ProvisionState::Manageable, clean(), ProvisionState::CleanFailed),
        (ProvisionState::Available, deploy(), ProvisionState::DeployFailed),
    ] {
        let fixture = Fixture::with_a_machine().await;
        fixture.go(Transition::Manage, ProvisionState::Manageable).await;
        if before == ProvisionState::Available {
            fixture.go(Transition::Provide, ProvisionState::Available).await;
        }
        fixture.ask(transition).await;
        sleep(Duration::from_secs(4)).await;
        assert!(
            fixture.read().await.reservation.is_none(),
            "the node does not wait for its ramdisk yet"
        );
        fixture.ask(Transition::Abort).await;
        sleep(Duration::from_secs(5)).await;
        let node = fixture.read().await;
        assert_eq!(node.provision_state, aborted);
        assert!(node.reservation.is_none() && !node.maintenance, "{node:?}");
        assert_eq!(node.power_state, Some(PowerState::Off));
        // The aborted work does not continue.
        sleep(WATCHED).await;
        assert_eq!(fixture.read().await.provision_state, aborted);
    }
}

#[tokio::test(start_paused = true)]
async fn fault_plan_applies_to_matching_requests() {
    let fixture = Fixture::with_a_machine().await;
    let read = calls::node::get(&fixture.reference());
    let set = || calls::node::patch(&fixture.reference(), Patch::new().set(&["extra", "k"], 1)).unwrap();
    let refused = |code, retry_after| RequestFault::Refused { code, retry_after };
    let plan = |fault| Plan::none().with(Rule::at(1, fault).verb("PATCH").resource("nodes/{node}"));
    fixture.ironic.inject(plan(RequestFault::ReplyLost));
    assert!(fixture.client.send(&read).await.is_ok());
    let lost = fixture.client.send(&set()).await.unwrap_err();
    assert!(lost.may_have_happened(), "{lost}");
    // The change took effect.
    assert!(fixture.read().await.updated_at.is_some());
    for (fault, category) in [
        (RequestFault::CrashBefore, "unreachable"),
        (RequestFault::Conflict, "locked"),
        (refused(503, Some(2)), "busy"),
        (refused(500, None), "unexpected"),
        (RequestFault::Delay(Duration::from_secs(31)), "timeout"),
        (RequestFault::DuplicateEvents, "unexpected"),
    ] {
        fixture.ironic.inject(plan(fault));
        assert_eq!(
            fixture.client.send(&set()).await.unwrap_err().category(),
            category,
            "{fault:?}"
        );
        assert!(fixture.client.send(&set()).await.is_ok());
    }
    // The client retries a broken read.
    fixture
        .ironic
        .inject(Plan::none().with(Rule::at(1, RequestFault::ReplyLost).verb("GET")));
    fixture.ironic.reset_audit();
    assert!(fixture.client.send(&read).await.is_ok());
    assert_eq!(fixture.ironic.audit().of("GET", "nodes/{node}"), 2);
}

#[tokio::test(start_paused = true)]
async fn older_ironic_is_used_with_its_microversion_and_unsupported_requests_answer_501() {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let mut options = Options::new(1, clock);
    options.versions.maximum = metal3_ironic::version::Microversion::minor(94);
    let ironic = Ironic::start(options);
    let client = ironic.client().unwrap();
    client.send(&calls::service::drivers()).await.unwrap();
    assert_eq!(client.features().await.unwrap().version().to_string(), "1.93");
    let nodes = ironic.enrol(1, "redfish").unwrap();
    let owned = calls::node::patch(&NodeRef::from(&nodes[0]), Patch::new().set(&["owner"], "a project")).unwrap();
    let error = client.send(&owned).await.unwrap_err();
    assert!(matches!(error, Error::Unexpected { status: Some(501), .. }), "{error}");
}
