//! The client's change feed and slots on the simulated Ironic, with every request counted.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use metal3_domain::clock::Clock;
use metal3_domain::ids::NodeUuid;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::{self, NodeRef};
use metal3_ironic::feed::{Feed, FeedEvent};
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::slots::{Slots, Turn};
use metal3_sim_ironic::{Ironic, Options};
use metal3_runtime::clock::TimerClock;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const MINUTE: Duration = Duration::from_secs(60);
const LIST: (&str, &str) = ("GET", "nodes");

fn ironic(seed: u64) -> (Ironic, Arc<dyn Clock>) {
    // Far enough from the epoch that nodes may have changed long ago.
    let start = DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000);
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
    (Ironic::start(Options::new(seed, Arc::clone(&clock))), clock)
}

fn lists(ironic: &Ironic) -> u64 {
    ironic.audit().of(LIST.0, LIST.1)
}

/// Runs the feed for so long and says whom it woke.
async fn run(feed: &Feed, time: Duration) -> Vec<FeedEvent> {
    let (sender, mut wakes) = mpsc::channel(100_000);
    timeout(time, feed.run(sender)).await.ok();
    let mut woken = Vec::new();
    while let Ok(wake) = wakes.try_recv() {
        woken.push(wake);
    }
    woken
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_idle_nodes_cost_six_requests_a_minute_and_a_full_listing_every_five() {
    let (ironic, clock) = ironic(1);
    let nodes = ironic.enrol(10_000, "redfish").unwrap();
    let feed = Feed::new(ironic.client().unwrap(), clock);
    nodes.iter().for_each(|node| feed.manage(node.clone()));
    let woken = run(&feed, Duration::from_secs(5)).await;
    assert_eq!(woken.len(), 10_000);
    // The page that sets the watermark, ten pages of a thousand, and the empty one that tells that they were all.
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
    // Between two rounds, so that no round is cut off at either end of the minute.
    run(&feed, Duration::from_millis(2_500)).await;
    ironic.reset_audit();
    let woken = run(&feed, MINUTE).await;
    assert_eq!((lists(&ironic), ironic.audit().total()), (60, 60));
    // Each of them booted its ramdisk, was inspected and came to rest, and the feed saw it without reading it.
    for node in nodes.iter().take(100) {
        assert!(woken.contains(&FeedEvent::Changed(node.clone())), "{node}");
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
async fn a_lost_database_is_told_as_nodes_that_are_gone() {
    let (ironic, clock) = ironic(3);
    let nodes = ironic.enrol(30, "redfish").unwrap();
    let feed = Feed::new(ironic.client().unwrap(), clock);
    run(&feed, Duration::from_secs(5)).await;
    ironic.lose_database();
    let mut woken = run(&feed, Duration::from_secs(15)).await;
    woken.sort();
    let mut gone: Vec<FeedEvent> = nodes.iter().cloned().map(FeedEvent::Deleted).collect();
    gone.sort();
    assert_eq!(woken, gone);
}

#[tokio::test(start_paused = true)]
async fn a_restart_fails_what_was_at_work_and_everything_is_looked_at_again() {
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
    // The ramdisk of the one is waited for; the other is just being switched on.
    sleep(Duration::from_secs(10)).await;
    client.send(&provide(at_work)).await.unwrap();
    ironic.restart(Duration::from_secs(8));
    let woken = run(&feed, Duration::from_secs(30)).await;
    assert!(woken.contains(&FeedEvent::Resync), "{woken:?}");
    let state = |node| feed.node(node).unwrap().provision_state.clone();
    assert_eq!(state(at_work), ProvisionState::CleanFailed);
    assert_eq!(state(idle), ProvisionState::Manageable);
    run(&feed, 3 * MINUTE).await;
    assert_eq!(state(waiting), ProvisionState::Available);
}

#[tokio::test(start_paused = true)]
async fn slots_keep_to_the_limit_and_go_on_in_the_same_turn() {
    let (ironic, clock) = ironic(5);
    let nodes = ironic.enrol(7, "redfish").unwrap();
    let client = ironic.client().unwrap();
    let feed = Feed::new(client.clone(), clock);
    nodes.iter().for_each(|node| feed.manage(node.clone()));
    run(&feed, Duration::from_secs(5)).await;
    let mut slots = Slots::<NodeUuid>::uncounted(2);
    assert!(slots.restore([]).is_empty());
    let mut begin: Vec<NodeUuid> = nodes
        .iter()
        .filter(|node| slots.ask(node) == Turn::Granted)
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
            begin.extend(slots.leave(&node));
        }
    }
    assert_eq!((most, order), (2, nodes));
}
