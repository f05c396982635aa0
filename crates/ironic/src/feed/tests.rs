mod fixture;
mod keys;
mod lag;
mod orders;

use std::time::Duration;

use proptest::prelude::*;

use super::timing::{FULL_EVERY, OVERLAP};
use super::*;
use crate::client::tests::support::{RANGE, ScriptedServer, clock, response};
use crate::error::{Error, Refusal};
use crate::model::page::Page;
use crate::model::state::ProvisionState;
use fixture::{Fixture, uuid};

fn timeout() -> Error {
    Error::Timeout {
        operation: "list nodes",
    }
}

fn not_found() -> Error {
    Error::NotFound(Refusal {
        operation: "list nodes",
        status: 404,
        message: String::new(),
        request_id: None,
    })
}

#[test]
fn ten_thousand_idle_nodes_cost_six_requests_a_minute_and_a_full_list_every_five() {
    let mut fixture = Fixture::with_nodes(10_000);
    fixture.run(Duration::from_secs(1));
    // One page sets the watermark. The complete list has ten pages of a thousand, and an empty one at the end.
    assert_eq!((fixture.newest_requested, fixture.full_requested), (1, 11));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(60));
    assert_eq!((fixture.newest_requested, fixture.full_requested), (6, 0));
    fixture.reset_counts();
    fixture.run(FULL_EVERY);
    assert_eq!((fixture.newest_requested, fixture.full_requested), (30, 11));
}

#[test]
fn ten_thousand_nodes_with_one_in_a_hundred_busy_cost_one_request_a_second() {
    let mut fixture = Fixture::with_nodes(10_000);
    for number in 0..100 {
        fixture.set_state(number, ProvisionState::Cleaning);
        fixture.tracker.manage(uuid(number));
    }
    fixture.run(Duration::from_secs(2));
    fixture.reset_counts();
    let mut number = 0;
    fixture.run_with(Duration::from_secs(60), |fixture| {
        number += 1;
        fixture.change(number % 100, 0);
    });
    assert_eq!((fixture.newest_requested, fixture.full_requested), (60, 0));
    assert!(fixture.differences().is_empty());
}

#[test]
fn feed_of_faster_machines_polls_as_much_more_often_while_they_change_state() {
    let mut fixture = Fixture::with_nodes(1);
    fixture.tracker = ChangeTracker::polling_within(Duration::from_millis(25));
    fixture.set_state(0, ProvisionState::Cleaning);
    fixture.tracker.manage(uuid(0));
    fixture.run(Duration::from_secs(1));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(1));
    assert_eq!(fixture.newest_requested, 40);
    fixture.set_state(0, ProvisionState::Active);
    fixture.run(Duration::from_secs(1));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(20));
    assert_eq!(fixture.newest_requested, 2);
}

#[test]
fn nodes_that_become_idle_together_cost_one_small_page_each_round() {
    let mut fixture = Fixture::with_nodes(300);
    fixture.run(Duration::from_secs(1));
    for number in 0..300 {
        fixture.change(number, -i64::try_from(number).unwrap());
    }
    fixture.run(OVERLAP * 3);
    fixture.reset_counts();
    fixture.run(Duration::from_secs(60));
    assert_eq!((fixture.newest_requested, fixture.nodes_sent), (6, 6 * 20));
}

#[test]
fn a_change_with_an_older_timestamp_than_many_others_is_found_after_several_slow_rounds() {
    let mut fixture = Fixture::with_nodes(50);
    fixture.small_pages = true;
    for number in 0..30 {
        fixture.change(number, -i64::try_from(number).unwrap());
    }
    for _ in 0..8 {
        fixture.tracker.poll_soon(fixture.now());
        fixture.run(Duration::from_secs(1));
    }
    // Its timestamp is older than those of the thirty changes, and it becomes visible after them.
    fixture.change(40, -15_000 + 1);
    fixture.run(Duration::from_secs(2));
    assert!(fixture.differences().is_empty());
}

#[test]
fn the_feed_polls_quickly_while_a_managed_node_is_in_transition_and_slowly_otherwise() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.set_state(0, ProvisionState::Deploying);
    fixture.run(Duration::from_secs(1));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(60));
    assert_eq!(fixture.newest_requested, 6, "a node in transition that is not managed");
    fixture.tracker.manage(uuid(0));
    fixture.run(Duration::from_secs(10));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(60));
    assert_eq!(fixture.newest_requested, 60, "a managed node in transition");
    fixture.set_state(0, ProvisionState::Active);
    fixture.run(Duration::from_secs(2));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(60));
    assert_eq!(fixture.newest_requested, 6, "no node in transition");
    fixture.update(0, |node| node.target_power_state = Some("power on".to_owned()));
    fixture.run(Duration::from_secs(12));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(60));
    assert_eq!(fixture.newest_requested, 6, "a conductor that died left a target");
    fixture.update(0, |node| node.reservation = Some("conductor".to_owned()));
    fixture.run(Duration::from_secs(12));
    fixture.reset_counts();
    fixture.run(Duration::from_secs(60));
    assert_eq!(fixture.newest_requested, 60, "a managed node whose power changes");
    fixture.update(0, |node| node.reservation = None);
    fixture.run(Duration::from_secs(3));
    fixture.tracker.poll_soon(fixture.now());
    fixture.change(1, 0);
    fixture.run(Duration::from_secs(1));
    assert!(fixture.differences().is_empty(), "found within a second of the request");
}

#[test]
fn a_deleted_node_is_reported_by_the_next_full_list_and_at_once_when_it_was_the_newest() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.change(1, 0);
    fixture.run(Duration::from_secs(1));
    fixture.delete(0);
    fixture.run(Duration::from_secs(60));
    assert!(fixture.tracker.node(&uuid(0)).is_some());
    fixture.run(FULL_EVERY);
    assert!(fixture.tracker.node(&uuid(0)).is_none());
    fixture.delete(1);
    fixture.run(Duration::from_secs(11));
    assert!(fixture.tracker.node(&uuid(1)).is_none());
    assert_eq!(fixture.deleted, [uuid(0), uuid(1)]);
}

#[test]
fn a_node_that_was_created_and_never_changed_is_found_by_a_full_list() {
    let mut fixture = Fixture::with_nodes(50);
    fixture.run(Duration::from_secs(1));
    fixture.create(50);
    fixture.run(Duration::from_secs(60));
    assert!(fixture.tracker.node(&uuid(50)).is_none());
    fixture.run(FULL_EVERY);
    assert!(fixture.tracker.node(&uuid(50)).is_some());
}

#[test]
fn an_emptied_ironic_is_detected_in_the_next_round() {
    let mut fixture = Fixture::with_nodes(30);
    fixture.run(Duration::from_secs(1));
    for number in 0..30 {
        fixture.delete(number);
    }
    fixture.run(Duration::from_secs(11));
    assert_eq!(fixture.deleted.len(), 30);
    assert!(fixture.tracker.nodes().next().is_none());
}

#[test]
fn changes_after_the_clock_was_set_back_are_not_missed() {
    let mut fixture = Fixture::with_nodes(50);
    fixture.change(3, 0);
    fixture.run(Duration::from_secs(60));
    fixture.set_clock_back(Duration::from_secs(3600));
    for number in 10..40 {
        fixture.change(number, 0);
        fixture.run(Duration::from_secs(11));
        assert!(fixture.differences().is_empty(), "node {number}");
    }
}

#[test]
fn after_an_outage_every_key_is_enqueued_and_listed_once() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.run(Duration::from_secs(1));
    fixture.failing = true;
    fixture.run(Duration::from_secs(120));
    assert!(fixture.tracker.last_error().is_some());
    // At 10 s, then after 1, 2 and 4 seconds and each 8: at 17, 25 and so on up to 121 s.
    assert_eq!(fixture.failed, 17);
    (fixture.failing, fixture.resyncs) = (false, 0);
    fixture.reset_counts();
    fixture.run(Duration::from_secs(9));
    assert_eq!((fixture.resyncs, fixture.full_requested), (1, 1));
    assert!(fixture.tracker.last_error().is_none());
}

#[test]
fn one_lost_response_enqueues_no_key() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.run(Duration::from_secs(1));
    let Step::Fetch(_) = fixture.tracker.next(fixture.now().after(Duration::from_secs(10))) else {
        panic!("a round is due")
    };
    fixture.tracker.failed(fixture.now(), timeout());
    fixture.run(Duration::from_secs(30));
    assert_eq!(fixture.resyncs, 0);
}

#[test]
fn a_deleted_marker_begins_the_list_again_at_once() {
    let mut fixture = Fixture::with_nodes(1500);
    let first = fixture.step();
    assert!(first.is_none(), "the newest page");
    fixture.step();
    let Step::Fetch(request) = fixture.tracker.next(fixture.now()) else {
        panic!("the second page is due")
    };
    assert!(request.behind.is_some());
    fixture.tracker.failed(fixture.now(), not_found());
    assert!(fixture.tracker.last_error().is_none());
    fixture.run(Duration::from_secs(1));
    assert_eq!(fixture.tracker.nodes().count(), 1500);
}

#[test]
fn a_deleted_node_is_not_known_any_more_and_no_older_page_brings_it_back() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.run(Duration::from_secs(1));
    fixture.advance(Duration::from_secs(60));
    let Step::Fetch(request) = fixture.tracker.next(fixture.now()) else {
        panic!("a round is due")
    };
    fixture.change(1, 0);
    let page = fixture.page(&request).unwrap();
    let (asked, record) = (fixture.now(), fixture.record(1));
    let now = asked.after(Duration::from_secs(1));
    fixture.tracker.forget(&uuid(1), now);
    assert!(fixture.tracker.node(&uuid(1)).is_none());
    fixture.tracker.observed(record, asked);
    let events = fixture.tracker.answered(now, page, None);
    assert!(fixture.tracker.node(&uuid(1)).is_none(), "it was requested before");
    assert!(!events.contains(&FeedEvent::Changed(uuid(1))), "{events:?}");
    // Ironic has it again, as after the restoration of its database.
    fixture.run(FULL_EVERY * 2);
    assert!(fixture.tracker.node(&uuid(1)).is_some());
}

#[test]
fn an_unreadable_node_is_reported_once_and_never_as_deleted() {
    let mut fixture = Fixture::with_nodes(3);
    fixture.run(Duration::from_secs(1));
    fixture.unreadable.insert(1);
    fixture.run(FULL_EVERY * 2);
    assert_eq!((fixture.reported_unreadable, fixture.deleted.len()), (1, 0));
    assert!(fixture.tracker.node(&uuid(1)).is_some());
    fixture.has_unidentified = true;
    fixture.delete(2);
    fixture.run(FULL_EVERY * 2);
    assert!(
        fixture.deleted.is_empty(),
        "the unidentified node may be the missing one"
    );
}

#[test]
fn an_unreadable_node_has_the_age_of_its_last_read() {
    let mut fixture = Fixture::with_nodes(2);
    fixture.run(Duration::from_secs(1));
    fixture.unreadable.insert(1);
    fixture.change(1, 0);
    fixture.run(Duration::from_secs(20));
    let (readable, unreadable) = (fixture.tracker.as_of(&uuid(0)), fixture.tracker.as_of(&uuid(1)));
    fixture.run(Duration::from_secs(60));
    assert!(fixture.tracker.as_of(&uuid(0)) > readable);
    assert_eq!(fixture.tracker.as_of(&uuid(1)), unreadable);
    fixture.unreadable.clear();
    fixture.change(1, 0);
    fixture.run(Duration::from_secs(20));
    assert!(fixture.tracker.as_of(&uuid(1)) > unreadable);
}

#[tokio::test]
async fn an_outage_begins_with_the_first_failed_attempt_and_ends_with_a_response() {
    let server = ScriptedServer::with_responses(Vec::new());
    let clock = clock();
    let client = Client::new(server.settings(), clock.clone()).await.unwrap();
    let feed = Feed::new(client, clock.clone());
    let start = clock.now();
    for _ in 0..3 {
        feed.tracker().failed(clock.monotonic(), timeout());
        feed.note_error();
        assert_eq!(feed.failing_since(), Some(start));
        clock.advance(Duration::from_secs(60));
    }
    let page = Page {
        items: Vec::new(),
        unreadable: Vec::new(),
        next: None,
    };
    drop(feed.tracker().answered(clock.monotonic(), page, None));
    feed.note_error();
    assert_eq!(feed.failing_since(), None);
}

#[tokio::test]
async fn the_loop_polls_sends_events_and_ends_without_a_receiver() {
    let node = format!(
        r#"{{"nodes": [{{"uuid": "{}", "provision_state": "active", "updated_at": null}}]}}"#,
        uuid(7)
    );
    let server = ScriptedServer::with_responses(vec![response("200 OK", RANGE, &node); 2]);
    let clock = clock();
    let client = Client::new(server.settings(), clock.clone()).await.unwrap();
    let feed = Feed::new(client, clock);
    let (sender, mut events) = mpsc::channel(1);
    let reader = async {
        let event = events.recv().await;
        drop(events);
        event
    };
    let ((), event) = tokio::join!(feed.run(sender), reader);
    assert_eq!(event, Some(FeedEvent::Changed(uuid(7))));
    assert!(feed.node(&uuid(7)).is_some());
    assert!(server.requests()[0].contains("sort_key=updated_at"));
}

#[test]
fn a_new_destination_ends_the_pause_after_failures() {
    let (mut tracker, mut now) = (ChangeTracker::new(), Monotonic::default());
    for _ in 0..8 {
        while let Step::Wait(pause) = tracker.next(now) {
            now = now.after(pause);
        }
        tracker.failed(now, timeout());
    }
    tracker.poll_soon(now);
    assert_eq!(tracker.next(now), Step::Wait(Duration::from_secs(8)));
    tracker.destination_changed(now);
    assert!(matches!(tracker.next(now), Step::Fetch(_)));
}

#[derive(Debug, Clone)]
enum Action {
    Change(usize, i64),
    Create(usize),
    Delete(usize),
    Wait(u64),
    Page,
    Restart,
    Fail,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => (0usize..40, -7000i64..7000).prop_map(|(node, skew)| Action::Change(node, skew)),
        1 => (0usize..40).prop_map(Action::Create),
        1 => (0usize..40).prop_map(Action::Delete),
        3 => (1u64..20_000).prop_map(Action::Wait),
        8 => Just(Action::Page),
        1 => Just(Action::Restart),
        1 => Just(Action::Fail),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Timestamps differ by up to seven seconds in both directions, with or without fractions of a second. Nodes change
    /// between pages.
    #[test]
    fn no_change_is_missed_and_no_full_list_is_required(
        actions in proptest::collection::vec(action(), 0..120),
        whole_seconds in any::<bool>(),
    ) {
        let mut fixture = Fixture::with_nodes(35);
        (fixture.whole_seconds, fixture.small_pages) = (whole_seconds, true);
        fixture.run(Duration::from_secs(1));
        for action in actions {
            match action {
                Action::Change(node, skew) => fixture.change(node, skew),
                Action::Create(node) => fixture.create(node),
                Action::Delete(node) => fixture.delete(node),
                Action::Wait(millis) => fixture.run(Duration::from_millis(millis)),
                Action::Page => { fixture.step(); }
                Action::Restart => { fixture.restart(); }
                Action::Fail => { fixture.tracker.failed(fixture.now(), timeout()); }
            }
        }
        // The pause after failures is eight seconds at most; after it the feed has no error.
        for _ in 0..10 {
            if fixture.tracker.last_error().is_some() {
                fixture.run(Duration::from_secs(1));
            }
        }
        prop_assert!(fixture.tracker.last_error().is_none());
        // Before the next complete list, rounds alone find every change.
        fixture.run(Duration::from_secs(40));
        let missed: Vec<_> = fixture.differences().into_iter().filter(|node| fixture.has_changed(*node)).collect();
        prop_assert!(missed.is_empty(), "missed {missed:?}");
        // The complete list finds nodes that never changed, and deleted nodes.
        fixture.run(FULL_EVERY + Duration::from_secs(61));
        prop_assert_eq!(fixture.differences(), Vec::<usize>::new());
        prop_assert_eq!(fixture.tracker.nodes().count(), fixture.count());
    }

    #[test]
    fn a_timestamp_beyond_the_overlap_is_found_by_the_next_full_list(skew in 16_000i64..4_000_000) {
        let mut fixture = Fixture::with_nodes(60);
        fixture.run(Duration::from_secs(60));
        for number in 0..60 {
            fixture.change(number, 0);
        }
        fixture.run(Duration::from_secs(60));
        fixture.change(7, -skew);
        fixture.run(FULL_EVERY + Duration::from_secs(10));
        prop_assert!(fixture.differences().is_empty());
    }
}
