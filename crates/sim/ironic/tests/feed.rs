//! The client's change feed and slots on the simulated Ironic, with every request counted.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_domain::clock::{Clock, ManualClock};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::feed::{Feed, FeedEvent};
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::slots::{SlotState, Slots};
use metal3_ironic::transport::Transport as _;
use metal3_runtime::clock::TimerClock;
use metal3_sim_ironic::{Ironic, Options};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const MINUTE: Duration = Duration::from_secs(60);
const LIST: (&str, &str) = ("GET", "nodes");

fn ironic(seed: u64) -> (Ironic, Arc<dyn Clock>) {
    // Late enough for nodes with old changes.
    let start = DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000);
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
    (Ironic::start(Options::new(seed, Arc::clone(&clock))), clock)
}

fn lists(ironic: &Ironic) -> u64 {
    ironic.audit().of(LIST.0, LIST.1)
}

/// Runs the feed for a time and returns its events.
async fn run(feed: &Feed, time: Duration) -> Vec<FeedEvent> {
    let (sender, mut wakes) = mpsc::channel(100_000);
    timeout(time, feed.run(sender)).await.ok();
    let mut events = Vec::new();
    while let Ok(wake) = wakes.try_recv() {
        events.push(wake);
    }
    events
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_idle_nodes_cost_six_requests_a_minute_and_a_full_listing_every_five() {
    let (ironic, clock) = ironic(1);
    let nodes = ironic.enrol(10_000, "redfish").unwrap();
    let feed = Feed::new(ironic.client().unwrap(), clock);
    nodes.iter().for_each(|node| feed.manage(node.clone()));
    let events = run(&feed, Duration::from_secs(5)).await;
    assert_eq!(events.len(), 10_000);
    // The page that sets the watermark, ten pages of a thousand, and the empty last page.
    assert_eq!(lists(&ironic), 12);
    ironic.reset_audit();
    assert!(run(&feed, MINUTE).await.is_empty());
    assert_eq!((lists(&ironic), ironic.audit().total()), (6, 6));
    ironic.reset_audit();
    assert!(run(&feed, 5 * MINUTE).await.is_empty());
    assert_eq!((lists(&ironic), ironic.audit().total()), (30 + 11, 30 + 11));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_nodes_with_one_in_a_hundred_busy_cost_one_request_a_second() {
    let (ironic, clock) = ironic(2);
    let nodes = ironic.enrol(10_000, "redfish").unwrap();
    let client = ironic.client().unwrap();
    let feed = Feed::new(client.clone(), clock);
    run(&feed, Duration::from_secs(5)).await;
    for node in nodes.iter().take(100) {
        feed.manage(node.clone());
        let inspect = calls::provision::request(&NodeRef::from(node), Transition::Inspect).unwrap();
        let set = calls::node::patch(
            &NodeRef::from(node),
            calls::patch::Patch::new().set(&["inspect_interface"], "agent"),
        );
        client.send(&set.unwrap()).await.unwrap();
        client.send(&inspect).await.unwrap();
    }
    feed.poll_soon();
    // Start between two rounds, so that the minute contains whole rounds.
    run(&feed, Duration::from_millis(2_500)).await;
    ironic.reset_audit();
    let events = run(&feed, MINUTE).await;
    assert_eq!((lists(&ironic), ironic.audit().total()), (60, 60));
    // Each node was inspected, and the feed reported it without reading it.
    for node in nodes.iter().take(100) {
        assert!(events.contains(&FeedEvent::Changed(node.clone())), "{node}");
    }
    run(&feed, MINUTE).await;
    for node in nodes.iter().take(100) {
        let seen = feed.node(node).unwrap();
        assert_eq!(seen.provision_state, ProvisionState::Manageable, "{node}");
        assert!(
            seen.reservation.is_none() && seen.inspection_finished_at.is_some(),
            "{node}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn lost_database_is_reported_as_deleted_nodes() {
    let (ironic, clock) = ironic(3);
    let nodes = ironic.enrol(30, "redfish").unwrap();
    let feed = Feed::new(ironic.client().unwrap(), clock);
    run(&feed, Duration::from_secs(5)).await;
    ironic.lose_database();
    let mut events = run(&feed, Duration::from_secs(15)).await;
    events.sort();
    let mut gone: Vec<FeedEvent> = nodes.iter().cloned().map(FeedEvent::Deleted).collect();
    gone.sort();
    assert_eq!(events, gone);
}

#[tokio::test(start_paused = true)]
async fn restart_fails_work_in_progress_and_triggers_a_full_resync() {
    let (ironic, clock) = ironic(4);
    let nodes = ironic.enrol(3, "redfish").unwrap();
    let client = ironic.client().unwrap();
    let feed = Feed::new(client.clone(), clock);
    nodes.iter().for_each(|node| feed.manage(node.clone()));
    run(&feed, Duration::from_secs(5)).await;
    let [at_work, waiting, idle] = nodes.as_slice() else {
        panic!("three nodes")
    };
    let provide = |node: &NodeUuid| calls::provision::request(&NodeRef::from(node), Transition::Provide).unwrap();
    client.send(&provide(waiting)).await.unwrap();
    // One node waits for its ramdisk; the other is powering on.
    sleep(Duration::from_secs(10)).await;
    client.send(&provide(at_work)).await.unwrap();
    ironic.restart(Duration::from_secs(8));
    let events = run(&feed, Duration::from_secs(30)).await;
    assert!(events.contains(&FeedEvent::Resync), "{events:?}");
    let state = |node| feed.node(node).unwrap().provision_state.clone();
    assert_eq!(state(at_work), ProvisionState::CleanFailed);
    assert_eq!(state(idle), ProvisionState::Manageable);
    run(&feed, 3 * MINUTE).await;
    assert_eq!(state(waiting), ProvisionState::Available);
}

#[tokio::test(start_paused = true)]
async fn slots_respect_the_limit_and_keep_the_order() {
    let (ironic, clock) = ironic(5);
    let nodes = ironic.enrol(7, "redfish").unwrap();
    let client = ironic.client().unwrap();
    let feed = Feed::new(client.clone(), clock);
    nodes.iter().for_each(|node| feed.manage(node.clone()));
    run(&feed, Duration::from_secs(5)).await;
    let mut slots = Slots::<NodeUuid>::with_unknown_holders(2);
    assert!(slots.restore([]).is_empty());
    let mut begin: Vec<NodeUuid> = nodes
        .iter()
        .filter(|node| slots.request(node) == SlotState::Granted)
        .cloned()
        .collect();
    assert_eq!(begin, nodes[..2]);
    let (mut most, mut order) = (0, Vec::new());
    while !begin.is_empty() || slots.holders().next().is_some() {
        for node in std::mem::take(&mut begin) {
            let provide = calls::provision::request(&NodeRef::from(&node), Transition::Provide).unwrap();
            client.send(&provide).await.unwrap();
            order.push(node);
        }
        feed.poll_soon();
        run(&feed, Duration::from_secs(1)).await;
        let busy = nodes
            .iter()
            .filter(|node| feed.node(node).unwrap().provision_state.is_busy())
            .count();
        most = most.max(busy);
        let done: Vec<NodeUuid> = slots
            .holders()
            .filter(|node| feed.node(node).unwrap().provision_state == ProvisionState::Available)
            .cloned()
            .collect();
        for node in done {
            begin.extend(slots.release(&node));
        }
    }
    assert_eq!((most, order), (2, nodes));
}

async fn send(ironic: &Ironic, method: &str, path: &str, body: &str) -> Vec<u8> {
    let request = http::Request::builder().method(method).uri(path);
    let request = request.header("X-OpenStack-Ironic-API-Version", "1.95");
    let request = request.body(body.as_bytes().to_vec()).unwrap();
    let response = ironic.exchange(request).await.unwrap();
    assert!(response.status().is_success(), "{method} {path}: {response:?}");
    response.into_body()
}

/// The list as it is answered, and as it is computed.
async fn list(ironic: &Ironic, query: &str) -> Vec<u8> {
    let path = format!("/v1/nodes?{query}");
    let answered = send(ironic, "GET", &path, "").await;
    // Whatever is not known to leave the nodes as they are drops the known answers.
    ironic.reset_audit();
    let computed = send(ironic, "GET", &path, "").await;
    assert_eq!(answered, computed);
    assert_eq!(send(ironic, "GET", &path, "").await, computed);
    answered
}

#[tokio::test(start_paused = true)]
async fn list_is_that_of_now_after_each_change_and_for_each_query() {
    let clock = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000)));
    let mut options = Options::new(1, Arc::<ManualClock>::clone(&clock));
    options.pace.power_sync = Duration::from_hours(1);
    let ironic = Ironic::start(options);
    let nodes = ironic.enrol(3, "redfish").unwrap();
    let (node, other) = (nodes[0].as_str(), nodes[1].as_str());
    let (all, two) = ("detail=true&limit=20", "detail=true&limit=2");
    let mut before = list(&ironic, all).await;
    for (method, path, body) in [
        ("PATCH", "", r#"[{"op": "add", "path": "/extra/a", "value": 1}]"#),
        ("PUT", "/maintenance", r#"{"reason": "a"}"#),
        ("DELETE", "/maintenance", ""),
        ("PUT", "/states/power", r#"{"target": "power on"}"#),
        // Ironic switches the machine later.
        ("", "", ""),
        ("GET", "/management/boot_device", ""),
        ("DELETE", "", ""),
    ] {
        assert_ne!(list(&ironic, two).await, before);
        clock.advance(Duration::from_secs(60));
        if !method.is_empty() {
            let node = if path.is_empty() && method == "DELETE" {
                other
            } else {
                node
            };
            send(&ironic, method, &format!("/v1/nodes/{node}{path}"), body).await;
        }
        let after = list(&ironic, all).await;
        assert_ne!(after, before, "{method} {path}");
        before = after;
    }
}
