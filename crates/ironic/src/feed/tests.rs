mod world;

use std::time::Duration;

use proptest::prelude::*;

use super::timing::{FULL_EVERY, OVERLAP};
use super::*;
use crate::client::tests::support::{RANGE, Scripted, answer, clock};
use crate::error::{Error, Refusal};
use crate::model::page::Page;
use crate::model::state::ProvisionState;
use world::{World, uuid};

fn lost() -> Error {
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
    let mut world = World::with_nodes(10_000);
    world.run(Duration::from_secs(1));
    // The page that sets the watermark, ten pages of a thousand, and the empty one that tells that they were all.
    assert_eq!((world.newest_asked, world.full_asked), (1, 11));
    world.forget_counts();
    world.run(Duration::from_secs(60));
    assert_eq!((world.newest_asked, world.full_asked), (6, 0));
    world.forget_counts();
    world.run(FULL_EVERY);
    assert_eq!((world.newest_asked, world.full_asked), (30, 11));
}

#[test]
fn ten_thousand_nodes_with_one_in_a_hundred_busy_cost_one_request_a_second() {
    let mut world = World::with_nodes(10_000);
    for number in 0..100 {
        world.set_state(number, ProvisionState::Cleaning);
        world.tracker.manage(uuid(number));
    }
    world.run(Duration::from_secs(2));
    world.forget_counts();
    let mut turn = 0;
    world.run_with(Duration::from_secs(60), |world| {
        turn += 1;
        world.change(turn % 100, 0);
    });
    assert_eq!((world.newest_asked, world.full_asked), (60, 0));
    assert!(world.differences().is_empty());
}

#[test]
fn nodes_that_become_idle_together_are_one_small_page_again() {
    let mut world = World::with_nodes(300);
    world.run(Duration::from_secs(1));
    for number in 0..300 {
        world.change(number, -i64::try_from(number).unwrap());
    }
    world.run(OVERLAP * 3);
    world.forget_counts();
    world.run(Duration::from_secs(60));
    assert_eq!((world.newest_asked, world.nodes_sent), (6, 6 * 20));
}

#[test]
fn a_timestamp_behind_many_newer_ones_is_seen_after_several_slow_rounds() {
    let mut world = World::with_nodes(50);
    world.small_pages = true;
    for number in 0..30 {
        world.change(number, -i64::try_from(number).unwrap());
    }
    for _ in 0..8 {
        world.tracker.poll_soon(world.now());
        world.run(Duration::from_secs(1));
    }
    // Stamped before the thirty, visible after them.
    world.change(40, -15_000 + 1);
    world.run(Duration::from_secs(2));
    assert!(world.differences().is_empty());
}

#[test]
fn the_feed_polls_quickly_while_a_managed_node_is_in_transition_and_slowly_otherwise() {
    let mut world = World::with_nodes(3);
    world.set_state(0, ProvisionState::Deploying);
    world.run(Duration::from_secs(1));
    world.forget_counts();
    world.run(Duration::from_secs(60));
    assert_eq!(world.newest_asked, 6, "a in_transition node of someone else");
    world.tracker.manage(uuid(0));
    world.run(Duration::from_secs(10));
    world.forget_counts();
    world.run(Duration::from_secs(60));
    assert_eq!(world.newest_asked, 60, "one of ours");
    world.set_state(0, ProvisionState::Active);
    world.run(Duration::from_secs(2));
    world.forget_counts();
    world.run(Duration::from_secs(60));
    assert_eq!(world.newest_asked, 6, "settled");
    world.run(Duration::from_secs(1));
    world.tracker.poll_soon(world.now());
    world.change(1, 0);
    world.run(Duration::from_secs(1));
    assert!(world.differences().is_empty(), "seen within a second of asking");
}

#[test]
fn a_deleted_node_is_reported_by_the_next_full_list_and_at_once_when_it_was_the_newest() {
    let mut world = World::with_nodes(3);
    world.change(1, 0);
    world.run(Duration::from_secs(1));
    world.delete(0);
    world.run(Duration::from_secs(60));
    assert!(world.tracker.node(&uuid(0)).is_some());
    world.run(FULL_EVERY);
    assert!(world.tracker.node(&uuid(0)).is_none());
    world.delete(1);
    world.run(Duration::from_secs(11));
    assert!(world.tracker.node(&uuid(1)).is_none());
    assert_eq!(world.gone, [uuid(0), uuid(1)]);
}

#[test]
fn a_node_that_was_created_and_never_changed_is_found_by_a_full_list() {
    let mut world = World::with_nodes(50);
    world.run(Duration::from_secs(1));
    world.create(50);
    world.run(Duration::from_secs(60));
    assert!(world.tracker.node(&uuid(50)).is_none());
    world.run(FULL_EVERY);
    assert!(world.tracker.node(&uuid(50)).is_some());
}

#[test]
fn an_emptied_ironic_is_detected_in_the_next_round() {
    let mut world = World::with_nodes(30);
    world.run(Duration::from_secs(1));
    for number in 0..30 {
        world.delete(number);
    }
    world.run(Duration::from_secs(11));
    assert_eq!(world.gone.len(), 30);
    assert!(world.tracker.nodes().next().is_none());
}

#[test]
fn changes_after_the_clock_was_set_back_are_not_missed() {
    let mut world = World::with_nodes(50);
    world.change(3, 0);
    world.run(Duration::from_secs(60));
    world.set_clock_back(Duration::from_secs(3600));
    for number in 10..40 {
        world.change(number, 0);
        world.run(Duration::from_secs(11));
        assert!(world.differences().is_empty(), "node {number}");
    }
}

#[test]
fn after_an_outage_every_key_is_enqueued_and_listed_once() {
    let mut world = World::with_nodes(3);
    world.run(Duration::from_secs(1));
    world.failing = true;
    world.run(Duration::from_secs(120));
    assert!(world.tracker.last_error().is_some());
    // At 10 s, then after 1, 2, 4, 8, 16, 32 seconds: the next would come at 133 s.
    assert_eq!(world.failed, 7);
    (world.failing, world.everything) = (false, 0);
    world.forget_counts();
    world.run(Duration::from_secs(61));
    assert_eq!((world.everything, world.full_asked), (1, 1));
    assert!(world.tracker.last_error().is_none());
}

#[test]
fn one_lost_response_enqueues_no_key() {
    let mut world = World::with_nodes(3);
    world.run(Duration::from_secs(1));
    let Step::Fetch(_) = world.tracker.next(world.now().after(Duration::from_secs(10))) else {
        panic!("a round is due")
    };
    world.tracker.failed(world.now(), lost());
    world.run(Duration::from_secs(30));
    assert_eq!(world.everything, 0);
}

#[test]
fn a_deleted_marker_begins_the_list_again_at_once() {
    let mut world = World::with_nodes(1500);
    let first = world.step();
    assert!(first.is_none(), "the newest page");
    world.step();
    let Step::Fetch(request) = world.tracker.next(world.now()) else {
        panic!("the second page is due")
    };
    assert!(request.behind.is_some());
    world.tracker.failed(world.now(), not_found());
    assert!(world.tracker.last_error().is_none());
    world.run(Duration::from_secs(1));
    assert_eq!(world.tracker.nodes().count(), 1500);
}

#[test]
fn an_unreadable_node_is_reported_once_and_never_as_deleted() {
    let mut world = World::with_nodes(3);
    world.run(Duration::from_secs(1));
    world.unreadable.insert(1);
    world.run(FULL_EVERY * 2);
    assert_eq!((world.told_unreadable, world.gone.len()), (1, 0));
    assert!(world.tracker.node(&uuid(1)).is_some());
    world.has_unidentified = true;
    world.delete(2);
    world.run(FULL_EVERY * 2);
    assert!(world.gone.is_empty(), "the has_unidentified one may be it");
}

#[test]
fn an_unreadable_node_has_the_age_of_its_last_read() {
    let mut world = World::with_nodes(2);
    world.run(Duration::from_secs(1));
    world.unreadable.insert(1);
    world.change(1, 0);
    world.run(Duration::from_secs(20));
    let (readable, unreadable) = (world.tracker.as_of(&uuid(0)), world.tracker.as_of(&uuid(1)));
    world.run(Duration::from_secs(60));
    assert!(world.tracker.as_of(&uuid(0)) > readable);
    assert_eq!(world.tracker.as_of(&uuid(1)), unreadable);
    world.unreadable.clear();
    world.change(1, 0);
    world.run(Duration::from_secs(20));
    assert!(world.tracker.as_of(&uuid(1)) > unreadable);
}

#[tokio::test]
async fn an_outage_begins_with_the_first_failed_attempt_and_ends_with_a_response() {
    let server = Scripted::answers(Vec::new());
    let clock = clock();
    let client = Client::new(server.settings(), clock.clone()).await.unwrap();
    let feed = Feed::new(client, clock.clone());
    let began = clock.now();
    for _ in 0..3 {
        feed.tracker().failed(clock.monotonic(), lost());
        feed.note_error();
        assert_eq!(feed.failing_since(), Some(began));
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
    let server = Scripted::answers(vec![answer("200 OK", RANGE, &node); 2]);
    let clock = clock();
    let client = Client::new(server.settings(), clock.clone()).await.unwrap();
    let feed = Feed::new(client, clock);
    let (sender, mut events) = mpsc::channel(1);
    let reader = async {
        let wake = events.recv().await;
        drop(events);
        wake
    };
    let ((), wake) = tokio::join!(feed.run(sender), reader);
    assert_eq!(wake, Some(FeedEvent::Changed(uuid(7))));
    assert!(feed.node(&uuid(7)).is_some());
    assert!(server.asked()[0].contains("sort_key=updated_at"));
}

#[derive(Debug, Clone)]
enum Event {
    Change(usize, i64),
    Create(usize),
    Delete(usize),
    Pass(u64),
    Page,
    Restart,
    Fail,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0usize..40, -7000i64..7000).prop_map(|(node, skew)| Event::Change(node, skew)),
        1 => (0usize..40).prop_map(Event::Create),
        1 => (0usize..40).prop_map(Event::Delete),
        3 => (1u64..20_000).prop_map(Event::Pass),
        8 => Just(Event::Page),
        1 => Just(Event::Restart),
        1 => Just(Event::Fail),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Stamps run up to seven seconds behind and ahead, in whole seconds or not; nodes change between pages.
    #[test]
    fn no_change_is_missed_and_no_full_list_is_required(
        events in proptest::collection::vec(event(), 0..120),
        whole_seconds in any::<bool>(),
    ) {
        let mut world = World::with_nodes(35);
        (world.whole_seconds, world.small_pages) = (whole_seconds, true);
        world.run(Duration::from_secs(1));
        for event in events {
            match event {
                Event::Change(node, skew) => world.change(node, skew),
                Event::Create(node) => world.create(node),
                Event::Delete(node) => world.delete(node),
                Event::Pass(millis) => world.run(Duration::from_millis(millis)),
                Event::Page => { world.step(); }
                Event::Restart => { world.restart(); }
                Event::Fail => { world.tracker.failed(world.now(), lost()); }
            }
        }
        // Failures in a row are followed by a pause of a minute at most; then the feed is out of last_error.
        for _ in 0..70 {
            if world.tracker.last_error().is_some() {
                world.run(Duration::from_secs(1));
            }
        }
        prop_assert!(world.tracker.last_error().is_none());
        // Rounds alone, short of the next full listing: everything that ever changed is as Ironic has it.
        world.run(Duration::from_secs(40));
        let missed: Vec<_> = world.differences().into_iter().filter(|node| world.has_changed(*node)).collect();
        prop_assert!(missed.is_empty(), "missed {missed:?}");
        // And with a full listing: everything, the never changed and the deleted too.
        world.run(FULL_EVERY + Duration::from_secs(61));
        prop_assert_eq!(world.differences(), Vec::<usize>::new());
        prop_assert_eq!(world.tracker.nodes().count(), world.count());
    }

    #[test]
    fn a_timestamp_beyond_the_overlap_is_found_by_the_next_full_list(skew in 16_000i64..4_000_000) {
        let mut world = World::with_nodes(60);
        world.run(Duration::from_secs(60));
        for number in 0..60 {
            world.change(number, 0);
        }
        world.run(Duration::from_secs(60));
        world.change(7, -skew);
        world.run(FULL_EVERY + Duration::from_secs(10));
        prop_assert!(world.differences().is_empty());
    }
}
