//! An example of a controller's test with the simulator. Start with the test at the end.
//!
//! The controller is minimal: the next transition is a pure function of the node ([`next_transition`]), and after an
//! error it reads the node again and decides again.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use metal3_domain::clock::Clock;
use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_ironic::calls::provision::{ConfigDrive, Transition};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::feed::{Feed, FeedEvent};
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::{PowerState, ProvisionState as S};
use metal3_ironic::slots::{SlotState, Slots};
use metal3_ironic::{Client, Error};
use metal3_runtime::clock::TimerClock;
use metal3_sim_bmc::fault::Fault;
use metal3_sim_faults::{Fault as RequestFault, Plan, Rule};
use metal3_sim_ironic::{Ironic, Machine, Options};
use serde_json::{Map, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

const HOSTS: usize = 4;
const MAX_BUSY: usize = 2;
const RETRY_AFTER: Duration = Duration::from_secs(2);

fn bmc(number: usize) -> String {
    format!("https://192.0.2.{number}")
}

struct Host {
    node: Option<NodeUuid>,
    /// Active in Ironic.
    active: bool,
    /// Provisioned according to the host's record, which survives a lost Ironic database.
    provisioned: bool,
}

struct Controller {
    client: Client,
    feed: Feed,
    wakes: mpsc::Receiver<FeedEvent>,
    slots: Slots<usize>,
    hosts: Vec<Host>,
    macs: Vec<MacAddress>,
    /// Hosts to reconcile.
    ready: Vec<usize>,
    busiest: usize,
}

/// The next transition of a node. `None` while the node is locked: the feed reports its change.
fn next_transition(node: &Node, provisioned: bool) -> Option<Transition> {
    if node.reservation.is_some() {
        return None;
    }
    match node.provision_state {
        S::Enroll => Some(Transition::Manage),
        S::Manageable if provisioned => Some(Transition::Adopt),
        S::Manageable if node.inspection_finished_at.is_some() => Some(Transition::Provide),
        S::Manageable | S::InspectFailed => Some(Transition::Inspect),
        S::Available => Some(Transition::Deploy {
            config_drive: ConfigDrive::default(),
            steps: Vec::new(),
        }),
        _ => None,
    }
}

impl Controller {
    fn start(client: Client, clock: Arc<dyn Clock>, macs: Vec<MacAddress>, tasks: &TaskTracker) -> Self {
        let feed = Feed::new(client.clone(), clock);
        let (sender, wakes) = mpsc::channel(64);
        let follows = feed.clone();
        tasks.spawn(async move { follows.run(sender).await });
        let mut slots = Slots::with_unknown_holders(MAX_BUSY);
        assert!(slots.restore([]).is_empty());
        let host = |_| Host {
            node: None,
            active: false,
            provisioned: false,
        };
        Self {
            client,
            feed,
            wakes,
            slots,
            hosts: (0..HOSTS).map(host).collect(),
            macs,
            ready: (0..HOSTS).collect(),
            busiest: 0,
        }
    }

    async fn run_until_all_active(&mut self) {
        loop {
            while let Some(number) = self.ready.pop() {
                self.reconcile(number).await;
            }
            if self.hosts.iter().all(|host| host.active) {
                return;
            }
            // Paused time advances when all tasks are idle.
            let wake = timeout(Duration::from_secs(3_600), self.wakes.recv()).await;
            self.handle_event(wake.unwrap().unwrap());
        }
    }

    fn handle_event(&mut self, wake: FeedEvent) {
        for (number, host) in self.hosts.iter_mut().enumerate() {
            match &wake {
                FeedEvent::Deleted(uuid) if host.node.as_ref() == Some(uuid) => {
                    (host.node, host.active) = (None, false);
                    self.ready.push(number);
                }
                FeedEvent::Changed(uuid) if host.node.as_ref() == Some(uuid) => self.ready.push(number),
                FeedEvent::Resync => self.ready.push(number),
                _ => {}
            }
        }
        let busy = |host: &&Host| {
            let seen = host.node.as_ref().and_then(|node| self.feed.node(node));
            seen.is_some_and(|seen| seen.provision_state.is_busy())
        };
        self.busiest = self.busiest.max(self.hosts.iter().filter(busy).count());
    }

    async fn reconcile(&mut self, number: usize) {
        if self.hosts[number].active || self.slots.request(&number) != SlotState::Granted {
            return;
        }
        let uuid = match self.hosts[number].node.clone() {
            Some(uuid) => uuid,
            None => self.register(number).await,
        };
        self.hosts[number].node = Some(uuid.clone());
        loop {
            // Decisions use a fresh read; the feed only triggers them.
            let read = calls::node::get(&NodeRef::from(&uuid));
            let node = self.feed.send_and_record(&read).await.unwrap().value;
            if node.provision_state == S::Active && node.reservation.is_none() {
                (self.hosts[number].active, self.hosts[number].provisioned) = (true, true);
                self.ready.extend(self.slots.release(&number));
                return;
            }
            let Some(next_transition) = next_transition(&node, self.hosts[number].provisioned) else {
                return;
            };
            let ask = calls::provision::request(&NodeRef::from(&uuid), next_transition).unwrap();
            match self.client.send(&ask).await {
                Ok(_) => return self.feed.poll_soon(),
                // Locked, conflicting or lost: the next read shows the result.
                Err(_) => sleep(RETRY_AFTER).await,
            }
        }
    }

    async fn register(&self, number: usize) -> NodeUuid {
        let image = json!({"image_source": "http://images/a.raw", "image_checksum": "http://images/a.raw.sha256"});
        let new = calls::node::NewNode {
            name: format!("metal3~host-{number}"),
            driver: "redfish".into(),
            driver_info: Map::from_iter([("redfish_address".to_owned(), json!(bmc(number)))]),
            properties: Map::new(),
            more: Map::from_iter([
                ("inspect_interface".to_owned(), json!("agent")),
                ("instance_info".to_owned(), image),
            ]),
            disable_power_off: None,
        };
        let by_name = calls::node::get(&NodeRef::Name(new.name.clone()));
        let create = calls::node::create(new).unwrap();
        let node = loop {
            match self.feed.send_and_record(&create).await {
                Ok(created) => break created.value,
                // The node was created although the answer was lost.
                Err(Error::Exists(_)) => break self.feed.send_and_record(&by_name).await.unwrap().value,
                Err(_) => sleep(RETRY_AFTER).await,
            }
        };
        let uuid = node.uuid.clone();
        let port = calls::port::create(&uuid, &self.macs[number], true);
        while let Err(error) = self.client.send(&port).await {
            if matches!(error, Error::Exists(_)) {
                break;
            }
            sleep(RETRY_AFTER).await;
        }
        self.feed.manage(uuid.clone());
        uuid
    }
}

#[tokio::test(start_paused = true)]
async fn fleet_becomes_active_two_at_a_time_despite_lost_answers_and_a_lost_database() {
    // One clock for Ironic, the feed and the test. It follows the runtime's paused timers, which advance when all tasks
    // wait.
    let start = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
    let ironic = Ironic::start(Options::new(1, Arc::clone(&clock)));
    let machine = |number| {
        ironic
            .machine_at(&bmc(number), |machine: &mut Machine| machine.clone())
            .unwrap()
    };

    // One machine has a fault that is repaired later, another has a slow BMC.
    let set_faults = |number: usize, faults: &[Fault]| {
        let faults = faults.iter().copied().collect();
        ironic.machine_at(&bmc(number), |machine| machine.faults = faults)
    };
    set_faults(1, &[Fault::InspectionError]);
    set_faults(2, &[Fault::SlowBmc(5)]);
    let (tasks, repair) = (TaskTracker::new(), ironic.clone());
    tasks.spawn(async move {
        sleep(Duration::from_secs(600)).await;
        repair.machine_at(&bmc(1), |machine| machine.faults = Default::default())
    });

    // Faults of requests: by verb and resource, at the n-th match.
    let provision = "nodes/{node}/states/provision";
    let plan = Plan::none()
        .with(Rule::at(2, RequestFault::ReplyLost).verb("POST").resource("nodes"))
        .with(Rule::at(3, RequestFault::ReplyLost).verb("PUT").resource(provision))
        .with(Rule::at(5, RequestFault::Conflict).verb("PUT").resource(provision));
    ironic.inject(plan);

    let mac = |number| MacAddress::parse(&machine(number).macs()[0]).unwrap();
    let macs = (0..HOSTS).map(mac).collect();
    let mut controller = Controller::start(ironic.client().unwrap(), Arc::clone(&clock), macs, &tasks);
    controller.run_until_all_active().await;
    assert_eq!(controller.busiest, MAX_BUSY);
    let before: Vec<_> = (0..HOSTS).map(|number| machine(number).counts).collect();
    for number in 0..HOSTS {
        let machine = machine(number);
        assert_eq!(
            (machine.power, machine.counts.written),
            (PowerState::On, 1),
            "host {number}"
        );
        assert_eq!(machine.disk.unwrap().source, "http://images/a.raw");
    }
    // One create was repeated because its answer was lost; no node exists twice.
    assert_eq!(ironic.audit().of("POST", "nodes"), 5);

    // Ironic loses its database. The machines keep running, and the controller adopts them.
    ironic.lose_database();
    for host in &mut controller.hosts {
        host.active = false;
    }
    controller.run_until_all_active().await;
    let after: Vec<_> = (0..HOSTS).map(|number| machine(number).counts).collect();
    assert_eq!(after, before);

    // The feed ends when its receiver is dropped.
    drop(controller);
    tasks.close();
    tasks.wait().await;
}
