//! Random operations on a few nodes, drawn from a seed.

use metal3_domain::mac::MacAddress;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{ConfigDrive, Step, Transition};
use metal3_ironic::calls::state::Power;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::{Client, Error};
use metal3_sim_faults::Random;
use serde_json::{Value, json};

use crate::lab::object;

/// The number of nodes of a sequence: few, so that operations interact.
const NODES: u64 = 3;

/// An operation of a sequence.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    /// The number of the node.
    pub(super) node: u64,
    pub(super) action: Action,
}

/// The action on a node.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Create,
    Delete,
    Read,
    Move(Transition),
    Power(Power),
    Change(Change),
    Maintain(bool),
    Traits(bool),
    Raid(Vec<Value>),
    SetBootDevice(&'static str),
    BootDevice,
    Validate,
    Inventory,
    Media,
    Port(u64),
    Ports,
}

/// A patch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Change {
    Nothing,
    Property,
    RemoveProperty,
    Instance(bool),
    NoInstance,
    KeepPower(bool),
    NoClean(bool),
    Inspect(&'static str),
    Boot(&'static str),
    Description,
    Name(u64),
}

const INSTANCES: [&str; 2] = [
    "11111111-2222-4333-8444-555555555555",
    "66666666-7777-4888-8999-aaaaaaaaaaaa",
];

fn step(interface: &str, name: &str, args: Value) -> Step {
    Step {
        interface: interface.into(),
        step: name.into(),
        args: args.as_object().cloned().unwrap_or_default(),
        priority: None,
    }
}

fn transition(random: &mut Random) -> Transition {
    let deploy = Transition::Deploy {
        config_drive: ConfigDrive(object([("meta_data", json!({"name": "n"}))])),
        steps: Vec::new(),
    };
    let settings = json!({"settings": [{"name": "Turbo", "value": "On"}]});
    let transitions = [
        Transition::Manage,
        Transition::Manage,
        Transition::Manage,
        Transition::Inspect,
        Transition::Adopt,
        Transition::Provide,
        Transition::Provide,
        deploy.clone(),
        deploy,
        Transition::Delete,
        Transition::Delete,
        Transition::Abort,
        Transition::Unhold,
        Transition::Clean(vec![step("bios", "apply_configuration", settings.clone())]),
        Transition::Clean(vec![step("bios", "factory_reset", json!({}))]),
        Transition::Clean(vec![step("bios", "apply_configuration", json!({}))]),
        Transition::Clean(vec![step("raid", "no_such_step", json!({}))]),
        Transition::Clean(vec![step("abacus", "count", json!({}))]),
        Transition::Clean(Vec::new()),
        Transition::Service(vec![step("vendor", "log_passthrough", json!({}))]),
        Transition::Service(vec![step("bios", "no_such_step", json!({}))]),
        Transition::Service(vec![step("vendor", "trigger_servicewait", json!({}))]),
        Transition::Service(Vec::new()),
    ];
    random.pick(&transitions).cloned().unwrap_or(Transition::Manage)
}

fn change(random: &mut Random) -> Change {
    let changes = [
        Change::Nothing,
        Change::Property,
        Change::RemoveProperty,
        Change::Instance(true),
        Change::Instance(false),
        Change::NoInstance,
        Change::KeepPower(true),
        Change::KeepPower(false),
        Change::NoClean(true),
        Change::NoClean(false),
        Change::Inspect("abacus"),
        Change::Inspect("fake"),
        Change::Boot("redfish-virtual-media"),
        Change::Boot("fake"),
        Change::Description,
        Change::Name(0),
        Change::Name(1),
    ];
    random.pick(&changes).copied().unwrap_or(Change::Nothing)
}

impl Operation {
    /// Draws the next operation.
    pub(super) fn draw(random: &mut Random) -> Self {
        use std::time::Duration;
        let node = random.below(NODES);
        let powers = [
            Power::On,
            Power::Off,
            Power::SoftOff(Duration::from_secs(5)),
            Power::Reboot,
            Power::SoftReboot,
        ];
        let action = match random.below(40) {
            0..4 => Action::Create,
            4..6 => Action::Delete,
            6..20 => Action::Move(transition(random)),
            20..24 => Action::Power(random.pick(&powers).copied().unwrap_or(Power::On)),
            24..29 => Action::Change(change(random)),
            29 => Action::Maintain(true),
            30..32 => Action::Maintain(false),
            32 => Action::Traits(random.below(2) == 0),
            33 => Action::Raid(match random.below(3) {
                0 => vec![json!({"size_gb": 10, "raid_level": "1"})],
                1 => vec![json!({"raid_level": "1"})],
                _ => Vec::new(),
            }),
            34 => Action::SetBootDevice(if random.below(2) == 0 { "pxe" } else { "disk" }),
            35 => Action::BootDevice,
            36 => Action::Validate,
            37 => Action::Inventory,
            38 if random.below(2) == 0 => Action::Media,
            38 => Action::Read,
            _ if random.below(3) == 0 => Action::Ports,
            _ => Action::Port(random.below(2)),
        };
        Self { node, action }
    }

    /// Sends the request. Node names are the prefix and a number. The result has only the compared part of the response.
    pub(super) async fn ask(&self, client: &Client, prefix: &str) -> anyhow::Result<Result<Value, Error>> {
        let name = format!("{prefix}{}", self.node);
        let node = NodeRef::Name(name.clone());
        let done = |answer: Result<_, Error>| answer.map(|_: metal3_ironic::Response<()>| Value::Null);
        Ok(match &self.action {
            Action::Create => create(client, &name).await?,
            Action::Delete => done(client.send(&calls::node::delete(&node)).await),
            Action::Read => {
                let answer = client.send(&calls::node::get(&node)).await;
                answer.map(|answer| json!(answer.value.provision_state))
            }
            Action::Move(transition) => done(
                client
                    .send(&calls::provision::request(&node, transition.clone())?)
                    .await,
            ),
            Action::Power(power) => done(client.send(&calls::state::set_power(&node, *power)).await),
            Action::Change(change) => {
                let answer = client.send(&calls::node::patch(&node, change.patch(prefix))?).await;
                answer.map(|answer| json!([answer.value.name, answer.value.instance_uuid]))
            }
            Action::Maintain(true) => done(client.send(&calls::node::set_maintenance(&node, "a reason")).await),
            Action::Maintain(false) => done(client.send(&calls::node::clear_maintenance(&node)).await),
            Action::Traits(fits) => {
                let traits = [if *fits { "CUSTOM_DIFFER" } else { "no trait" }.to_owned()];
                done(client.send(&calls::hardware::set_traits(&node, &traits)).await)
            }
            Action::Raid(disks) => done(client.send(&calls::state::set_target_raid(&node, disks)).await),
            Action::SetBootDevice(device) => {
                done(client.send(&calls::state::set_boot_device(&node, device, false)).await)
            }
            Action::BootDevice => {
                let answer = client.send(&calls::state::boot_device(&node)).await;
                answer.map(|answer| json!(answer.value.boot_device))
            }
            Action::Validate => {
                let answer = client.send(&calls::node::validate(&node)).await;
                answer.map(|answer| json!(answer.value.deploy_errors().len()))
            }
            Action::Inventory => client.send(&calls::node::inventory(&node)).await.map(|_| Value::Null),
            Action::Media => {
                let answer = client.send(&calls::hardware::virtual_media(&node)).await;
                answer.map(|answer| json!(answer.value.len()))
            }
            Action::Port(number) => port(client, &node, *number).await?,
            Action::Ports => {
                let answer = client.send(&calls::port::of_node(&node, None)).await;
                answer.map(|answer| json!(answer.value.items.len()))
            }
        })
    }
}

async fn create(client: &Client, name: &str) -> anyhow::Result<Result<Value, Error>> {
    let new = calls::node::NewNode {
        name: name.to_owned(),
        driver: "fake-hardware".into(),
        driver_info: object([("fake_password", json!("hunter2"))]),
        properties: object([("cpu_arch", json!("x86_64"))]),
        more: serde_json::Map::new(),
        disable_power_off: None,
    };
    let answer = client.send(&calls::node::create(new)?).await;
    Ok(answer.map(|answer| json!(answer.value.provision_state)))
}

/// A port needs the UUID of its node, which is read first.
async fn port(client: &Client, node: &NodeRef, number: u64) -> anyhow::Result<Result<Value, Error>> {
    let found = match client.send(&calls::node::get(node)).await {
        Ok(found) => found.value.uuid,
        Err(error) => return Ok(Err(error)),
    };
    let address = MacAddress::parse(&format!("02:d1:ff:00:00:{number:02X}"))?;
    let answer = client.send(&calls::port::create(&found, &address, true)).await;
    Ok(answer.map(|answer| json!(answer.value.address)))
}

impl Change {
    fn patch(self, prefix: &str) -> Patch {
        let patch = Patch::new();
        match self {
            Self::Nothing => patch,
            Self::Property => patch.set(&["properties", "rack"], 7),
            Self::RemoveProperty => patch.remove(&["properties", "rack"]),
            Self::Instance(first) => {
                let [one, other] = INSTANCES;
                patch
                    .set(&["instance_uuid"], if first { one } else { other })
                    .set(&["instance_info", "image_source"], "http://images/a.raw")
            }
            Self::NoInstance => patch.remove(&["instance_uuid"]),
            Self::KeepPower(on) => patch.set(&["disable_power_off"], on),
            Self::NoClean(off) => patch.set(&["automated_clean"], !off),
            Self::Inspect(interface) => patch.set(&["inspect_interface"], interface),
            Self::Boot(interface) => patch.set(&["boot_interface"], interface),
            Self::Name(number) => patch.set(&["name"], format!("{prefix}{number}")),
            Self::Description => patch.set(&["description"], "a description"),
        }
    }
}
