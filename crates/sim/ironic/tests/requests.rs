//! The requests of each operation on a host, compared with the possible minimum.
//!
//! The change feed replaces polling; its own requests do not depend on the operations and are not counted.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_domain::clock::Clock;
use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_ironic::Client;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::{ConfigDrive, Transition};
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::feed::Feed;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::request::Call;
use metal3_runtime::clock::TimerClock;
use metal3_sim_ironic::{Audit, Ironic, Options};
use serde_json::{Map, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The requests of each operation. The minimum is 0 where the operation also works without the request.
const TABLE: &str = "\
| operation | request | sent | minimum | why |
| --- | --- | --- | --- | --- |
| register | POST nodes | 1 | 1 | creates the node; an existing name gets 409, so no lookup is needed |
| register | POST ports | 1 | 1 | the MAC address that identifies the ramdisk; an existing one gets 409 |
| register | PUT nodes/{node}/states/provision | 1 | 1 | manage: verifies the credentials |
| register | GET nodes/{node}/bios | 1 | 0 | settings for the user; the feed does not show them |
| register | GET nodes/{node}/firmware | 1 | 0 | versions for the user; the feed does not show them |
| inspect | PUT nodes/{node}/states/provision | 1 | 1 | inspect; the interface is set at creation |
| inspect | GET nodes/{node}/inventory | 1 | 1 | a separate resource; the feed reports when it exists |
| inspect | GET ports | 1 | 0 | finds network cards without a port |
| provide | PUT nodes/{node}/states/provision | 1 | 1 | provide: cleans the node and makes it available |
| deploy | PATCH nodes/{node} | 1 | 1 | image, root device and owner, in one change |
| deploy | GET nodes/{node}/validate | 1 | 0 | reports missing parameters before the deployment |
| deploy | PUT nodes/{node}/states/provision | 1 | 1 | active, with the config-drive |
| tear down | PUT nodes/{node}/states/provision | 1 | 1 | deleted: Ironic clears the instance |
| delete | DELETE nodes/{node} | 1 | 1 | an available node does not need maintenance |
";

/// Operation, method and resource, count and minimum of each row.
fn rows() -> impl Iterator<Item = (&'static str, &'static str, u64, u64)> {
    TABLE.lines().skip(2).map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        (cells[1], cells[2], cells[3].parse().unwrap(), cells[4].parse().unwrap())
    })
}

struct Host {
    client: Client,
    feed: Feed,
    node: NodeUuid,
}

impl Host {
    fn reference(&self) -> NodeRef {
        NodeRef::from(&self.node)
    }

    async fn send<T>(&self, call: Call<T>) -> T {
        self.client.send(&call).await.unwrap().value
    }

    async fn go(&self, transition: Transition, to: &ProvisionState) {
        let call = calls::provision::request(&self.reference(), transition).unwrap();
        self.client.send(&call).await.unwrap();
        self.feed.poll_soon();
        // The longest transition reboots the machine, boots a ramdisk and works twice.
        for _ in 0..600 {
            let (sender, _wakes) = mpsc::channel(64);
            timeout(Duration::from_millis(1_500), self.feed.run(sender)).await.ok();
            let seen = self.feed.node(&self.node);
            if seen.is_some_and(|seen| seen.provision_state == *to && seen.reservation.is_none()) {
                return;
            }
        }
        panic!("{to} was not reached");
    }

    async fn register(client: Client, feed: Feed) -> Self {
        let new = calls::node::NewNode {
            name: "metal3~host-0".into(),
            driver: "redfish".into(),
            driver_info: Map::from_iter([("redfish_address".to_owned(), json!("https://192.0.2.1"))]),
            properties: Map::new(),
            more: Map::from_iter([("inspect_interface".to_owned(), json!("agent"))]),
            disable_power_off: Some(false),
        };
        let created = feed
            .send_and_record(&calls::node::create(new).unwrap())
            .await
            .unwrap()
            .value;
        let (node, mac) = (created.uuid.clone(), MacAddress::parse("52:54:01:00:01:00").unwrap());
        feed.manage(node.clone());
        client.send(&calls::port::create(&node, &mac, true)).await.unwrap();
        let host = Self { client, feed, node };
        host.go(Transition::Manage, &ProvisionState::Manageable).await;
        host.send(calls::hardware::bios(&host.reference())).await;
        host.send(calls::hardware::firmware(&host.reference())).await;
        host
    }

    async fn inspect(&self) {
        self.go(Transition::Inspect, &ProvisionState::Manageable).await;
        let found = self.send(calls::node::inventory(&self.reference())).await;
        let ports = self.send(calls::port::of_node(&self.reference(), None)).await;
        assert_eq!(ports.items.len(), found.inventory.interfaces.len());
    }

    async fn deploy(&self) {
        let patch = Patch::new()
            .set(&["instance_info", "image_source"], "http://images/a.raw")
            .set(&["instance_info", "image_checksum"], "http://images/a.raw.sha256")
            .set(&["instance_uuid"], "11111111-2222-4333-8444-555555555555");
        self.send(calls::node::patch(&self.reference(), patch).unwrap()).await;
        let validation = self.send(calls::node::validate(&self.reference())).await;
        assert!(validation.deploy_errors().is_empty(), "{validation:?}");
        let (config_drive, steps) = (ConfigDrive::default(), Vec::new());
        self.go(Transition::Deploy { config_drive, steps }, &ProvisionState::Active)
            .await;
    }
}

/// Asserts that the requests of an operation equal its rows.
fn assert_counts(operation: &str, audit: &Audit) {
    let rows = rows().filter(|row| row.0 == operation);
    let expected: BTreeMap<String, u64> = rows.map(|row| (row.1.to_owned(), row.2)).collect();
    let counted = audit
        .counts()
        .map(|((method, resource), number)| (format!("{method} {resource}"), number));
    let counted: BTreeMap<String, u64> = counted.filter(|(request, _)| request != "GET nodes").collect();
    assert_eq!(counted, expected, "{operation}");
}

#[tokio::test(start_paused = true)]
async fn each_operation_sends_the_requests_of_the_table() {
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(DateTime::UNIX_EPOCH));
    let ironic = Ironic::start(Options::new(1, Arc::clone(&clock)));
    let client = ironic.client().unwrap();
    // The first answer negotiates the microversion.
    client.send(&calls::service::drivers()).await.unwrap();
    let feed = Feed::new(client.clone(), clock);
    let counted = |operation| {
        assert_counts(operation, &ironic.audit());
        ironic.reset_audit();
    };
    ironic.reset_audit();
    let host = Host::register(client, feed).await;
    counted("register");
    host.inspect().await;
    counted("inspect");
    host.go(Transition::Provide, &ProvisionState::Available).await;
    counted("provide");
    host.deploy().await;
    counted("deploy");
    host.go(Transition::Delete, &ProvisionState::Available).await;
    counted("tear down");
    host.send(calls::node::delete(&host.reference())).await;
    counted("delete");
    let (sent, minimum) = rows().fold((0, 0), |sums, row| (sums.0 + row.2, sums.1 + row.3));
    println!("{TABLE}| whole life | | {sent} | {minimum} | without the feed |");
}
