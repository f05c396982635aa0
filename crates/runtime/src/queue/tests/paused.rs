//! The async queue under paused time.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::clock::TimerClock;
use crate::queue::{Lane, Outcome, Queue, RequestSource};

fn queue() -> Queue<u32> {
    Queue::new(Arc::new(TimerClock::start(DateTime::UNIX_EPOCH)))
}

#[tokio::test(start_paused = true)]
async fn failing_key_returns_after_5_10_20_40_milliseconds() {
    let queue = queue();
    queue.add(1, Lane::High);
    let start = tokio::time::Instant::now();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let item = queue.take().await.unwrap();
        seen.push(start.elapsed().as_millis());
        item.finish(Outcome::Failed);
    }
    assert_eq!(seen, [0, 5, 15, 35, 75]);
}

#[tokio::test(start_paused = true)]
async fn waiting_taker_is_woken_by_an_add() {
    let queue = queue();
    let (taken, ()) = tokio::join!(queue.take(), async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        queue.add(7, Lane::Low);
    });
    assert_eq!(taken.map(|item| *item.key()), Some(7));
}

#[tokio::test(start_paused = true)]
async fn dropped_work_item_counts_as_failed() {
    let queue = queue();
    queue.add(1, Lane::High);
    drop(queue.take().await.unwrap());
    let again = queue.take().await.unwrap();
    assert_eq!(again.taken().failures, 1);
    again.finish(Outcome::Done);
    assert_eq!(queue.stats().retries, 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_take_loses_no_key() {
    let queue = queue();
    let second = Duration::from_secs(1);
    assert!(timeout(second, queue.take()).await.is_err());
    queue.add(1, Lane::High);
    assert!(timeout(second, queue.take()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn closing_releases_every_taker_and_refuses_adds() {
    let queue = queue();
    let takers = futures::future::join_all((0..3).map(|_| queue.take()));
    let (taken, ()) = tokio::join!(takers, async {
        tokio::task::yield_now().await;
        queue.close();
    });
    assert!(taken.iter().all(Option::is_none));
    queue.add(1, Lane::High);
    assert_eq!(queue.stats().high, 0);
    assert!(queue.take().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_keys_are_reconciled_by_eight_workers_each_once() {
    let queue = queue();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let workers = TaskTracker::new();
    for _ in 0..8 {
        let (queue, seen) = (queue.clone(), Arc::clone(&seen));
        workers.spawn(async move {
            while let Some(item) = queue.take().await {
                tokio::time::sleep(Duration::from_millis(1)).await;
                seen.lock().push(*item.key());
                item.finish(Outcome::Done);
            }
        });
    }
    (0..10_000).for_each(|key| queue.add(key, Lane::High));
    // 10,000 reconciles of 1 ms by eight workers take 1.25 s.
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    queue.close();
    workers.close();
    workers.wait().await;
    let mut seen = std::mem::take(&mut *seen.lock());
    seen.sort_unstable();
    assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn held_key_is_handed_out_after_the_last_hold_and_only_if_enqueued() {
    let queue = queue();
    queue.add(1, Lane::High);
    let item = queue.take().await.unwrap();
    let holds = [item.request_source().hold(), item.request_source().hold()];
    item.finish(Outcome::Failed);
    queue.add(2, Lane::Low);
    let other = queue.take().await.unwrap();
    assert_eq!(*other.key(), 2);
    other.finish(Outcome::Done);
    let [first, last] = holds;
    drop(first);
    assert!(timeout(Duration::from_secs(9), queue.take()).await.is_err());
    assert_eq!(queue.stats().held, 1);
    drop(last);
    let again = queue.take().await.unwrap();
    assert_eq!((*again.key(), again.taken().failures), (1, 1));
    let unwanted = again.request_source().hold();
    again.finish(Outcome::Done);
    drop(unwanted);
    assert!(timeout(Duration::from_secs(9), queue.take()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn request_source_is_one_key_of_one_queue() {
    let (one, other) = (queue(), queue());
    let source = RequestSource::new(one.clone(), 1);
    assert!(source.is(&one, &1));
    assert!(!source.is(&one, &2) && !source.is(&other, &1));
    let of_other_keys = Queue::new(Arc::new(TimerClock::start(DateTime::UNIX_EPOCH)));
    assert!(!source.is(&of_other_keys, &1_u64));
}
