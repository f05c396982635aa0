use std::time::Duration;

use metal3_domain::clock::Monotonic;

use crate::queue::{HIGH_IN_A_ROW, Lane, Outcome, WorkQueue};

const NOW: Monotonic = Monotonic::new(Duration::ZERO);

fn at(millis: u64) -> Monotonic {
    Monotonic::new(Duration::from_millis(millis))
}

fn take<K: Ord + Clone>(queue: &mut WorkQueue<K>, now: Monotonic) -> Option<K> {
    queue.take(now).map(|taken| taken.key)
}

#[test]
fn adding_a_ready_key_again_keeps_its_place() {
    let mut queue = WorkQueue::default();
    assert!(queue.add("a", Lane::High, NOW));
    assert!(queue.add("b", Lane::High, NOW));
    assert!(!queue.add("a", Lane::High, NOW));
    assert_eq!(take(&mut queue, NOW), Some("a"));
    assert_eq!(take(&mut queue, NOW), Some("b"));
    assert_eq!(take(&mut queue, NOW), None);
}

#[test]
fn event_moves_a_low_key_to_the_high_lane_and_keeps_its_waiting_time() {
    let mut queue = WorkQueue::default();
    queue.add("first", Lane::Low, NOW);
    queue.add("second", Lane::Low, NOW);
    queue.add("second", Lane::High, at(3));
    let taken = queue.take(at(4)).unwrap();
    assert_eq!((taken.key, taken.lane), ("second", Lane::High));
    assert_eq!(taken.waited, Duration::from_millis(4));
    assert_eq!(take(&mut queue, at(4)), Some("first"));
}

#[test]
fn key_added_during_its_reconcile_runs_once_more_afterwards() {
    let mut queue = WorkQueue::default();
    queue.add("a", Lane::High, NOW);
    assert_eq!(take(&mut queue, NOW), Some("a"));
    assert!(queue.add("a", Lane::Low, NOW));
    assert!(!queue.add("a", Lane::High, NOW));
    assert_eq!(take(&mut queue, NOW), None);
    queue.finish(&"a", Outcome::Done, NOW);
    assert_eq!(queue.take(NOW).map(|taken| taken.lane), Some(Lane::High));
    queue.finish(&"a", Outcome::Done, NOW);
    assert_eq!(take(&mut queue, NOW), None);
}

#[test]
fn recheck_waits_its_time_unless_an_event_is_first() {
    let mut queue = WorkQueue::default();
    queue.add("a", Lane::High, NOW);
    take(&mut queue, NOW);
    queue.finish(&"a", Outcome::RequeueAfter(Duration::from_millis(50)), NOW);
    assert_eq!((take(&mut queue, at(49)), queue.next_due()), (None, Some(at(50))));
    queue.add("a", Lane::High, at(49));
    assert_eq!(take(&mut queue, at(49)), Some("a"));
    queue.finish(&"a", Outcome::Done, at(49));
    assert_eq!((take(&mut queue, at(60)), queue.next_due()), (None, None));
}

#[test]
fn success_resets_failures() {
    let mut queue = WorkQueue::default();
    queue.add("a", Lane::High, NOW);
    for (now, due) in [(0, 5), (5, 15), (15, 35)] {
        take(&mut queue, at(now));
        queue.finish(&"a", Outcome::Failed, at(now));
        assert_eq!(queue.next_due(), Some(at(due)));
    }
    assert_eq!(queue.take(at(35)).map(|taken| taken.failures), Some(3));
    queue.finish(&"a", Outcome::Done, at(35));
    queue.add("a", Lane::High, at(40));
    assert_eq!(queue.take(at(40)).map(|taken| taken.failures), Some(0));
    queue.finish(&"a", Outcome::Failed, at(40));
    assert_eq!(queue.next_due(), Some(at(45)));
}

#[test]
fn storm_of_events_does_not_drive_the_back_off() {
    let mut queue = WorkQueue::default();
    for millis in 0..100 {
        queue.add("a", Lane::High, at(millis));
        take(&mut queue, at(millis));
        queue.finish(&"a", Outcome::Failed, at(millis));
    }
    // Windows end at 5, 15, 35, 75 and 155 ms; a hundred failures count as five.
    assert_eq!(queue.next_due(), Some(at(155)));
    assert_eq!(queue.stats(at(99)).retries, 100);
}

#[test]
fn high_lane_goes_first_but_does_not_starve_the_low_one() {
    let mut queue = WorkQueue::default();
    (0..10_000).for_each(|key| {
        queue.add(key, if key % 2 == 0 { Lane::High } else { Lane::Low }, NOW);
    });
    let lanes: Vec<Lane> = std::iter::from_fn(|| queue.take(NOW).map(|taken| taken.lane)).collect();
    assert_eq!(lanes.len(), 10_000);
    let turn = usize::try_from(HIGH_IN_A_ROW).unwrap() + 1;
    let shared = lanes.iter().rposition(|lane| *lane == Lane::High).unwrap();
    for round in lanes[..shared].chunks_exact(turn) {
        assert_eq!(round.iter().filter(|lane| **lane == Lane::Low).count(), 1);
        assert_eq!(round.last(), Some(&Lane::Low));
    }
}

#[test]
fn hot_keys_do_not_starve_others_of_their_lane() {
    let mut queue = WorkQueue::default();
    (0..10_000).for_each(|key| {
        queue.add(key, Lane::High, NOW);
    });
    // Each key is added again while in work; still every key runs once before any runs twice.
    for expected in (0..10_000).chain(0..10_000) {
        assert_eq!(take(&mut queue, NOW), Some(expected));
        queue.add(expected, Lane::High, NOW);
        queue.finish(&expected, Outcome::Done, NOW);
    }
}

#[test]
fn stats_contain_depth_and_latency() {
    let mut queue = WorkQueue::default();
    for (key, lane) in [
        ("a", Lane::High),
        ("b", Lane::High),
        ("c", Lane::Low),
        ("a", Lane::High),
    ] {
        queue.add(key, lane, NOW);
    }
    take(&mut queue, at(10));
    take(&mut queue, at(10));
    queue.finish(&"a", Outcome::Failed, at(12));
    let figures = queue.stats(at(14));
    assert_eq!(
        (figures.high, figures.low, figures.delayed, figures.working),
        (0, 1, 1, 1)
    );
    assert_eq!((figures.adds, figures.retries, figures.failing), (3, 1, 1));
    assert_eq!(
        (figures.waited.count, figures.waited.total),
        (2, Duration::from_millis(20))
    );
    assert_eq!(
        (figures.worked.count, figures.worked.longest),
        (1, Duration::from_millis(2))
    );
    assert_eq!(figures.unfinished, Duration::from_millis(4));
    assert_eq!(figures.longest_unfinished, Duration::from_millis(4));
}

#[test]
fn finishing_a_key_that_is_not_in_work_changes_nothing() {
    let mut queue = WorkQueue::default();
    queue.add("a", Lane::High, NOW);
    assert_eq!(queue.finish(&"a", Outcome::Done, NOW), None);
    assert_eq!(queue.finish(&"b", Outcome::Failed, NOW), None);
    assert_eq!(queue.next_due(), None);
    assert_eq!(take(&mut queue, NOW), Some("a"));
}

#[test]
fn oldest_ready_key_counts_from_when_it_became_ready() {
    let mut queue = WorkQueue::default();
    queue.add("a", Lane::Low, NOW);
    queue.add("b", Lane::High, at(5));
    assert_eq!(queue.stats(at(9)).oldest_ready, Duration::from_millis(9));
    assert_eq!(take(&mut queue, at(9)), Some("b"));
    assert_eq!(queue.stats(at(10)).oldest_ready, Duration::from_millis(10));
    assert_eq!(take(&mut queue, at(10)), Some("a"));
    assert_eq!(queue.stats(at(20)).oldest_ready, Duration::ZERO);
}
