//! The cache between tasks: which keys are enqueued, which are held, and which own writes enqueue nothing.

use std::sync::Arc;

use chrono::DateTime;
use tokio::time::{Duration, timeout};

use super::*;
use crate::cache::{AnswerContent, SharedCache, SharedIndexes, UncertainWrite};
use crate::clock::TimerClock;
use crate::plan::{Observed, UnknownReason};
use crate::queue::{Lane, Outcome, Queue, WorkItem};

type Shared = SharedCache<ConfigMap, ByOwner>;

fn queue() -> Queue<String> {
    Queue::new(Arc::new(TimerClock::start(DateTime::UNIX_EPOCH)))
}

/// A cache with an empty first list at `at`, which adds the names of its objects to `queue`.
fn enqueueing(queue: &Queue<String>, at: u64) -> Shared {
    let cache = Shared::default();
    cache.listed(Vec::new(), version(at)).unwrap();
    cache.enqueue_changes(queue, |change| change.key().map(|key| key.name));
    cache
}

/// Such a cache and its queue.
fn with_queue(at: u64) -> (Queue<String>, Shared) {
    let queue = queue();
    let cache = enqueueing(&queue, at);
    (queue, cache)
}

/// A write of `item` whose response has this version.
fn write(cache: &Shared, item: &WorkItem<String>, (name, uid, at): (&str, &str, u64)) {
    cache
        .start_write(&item.request_source(), key(name))
        .wrote(object(name, uid, at, "o"), AnswerContent::OwnChange)
        .unwrap();
}

async fn item(queue: &Queue<String>, name: &str) -> WorkItem<String> {
    queue.add(name.to_owned(), Lane::High);
    let item = queue.take().await.unwrap();
    assert_eq!(item.key(), name);
    item
}

/// The ready key, if any.
async fn ready(queue: &Queue<String>) -> Option<(String, Lane)> {
    let item = timeout(Duration::ZERO, queue.take()).await.ok()??;
    let taken = (item.key().clone(), item.taken().lane);
    item.finish(Outcome::Done);
    Some(taken)
}

#[tokio::test(start_paused = true)]
async fn late_queue_receives_the_cached_objects() {
    let (cache, queue) = (Shared::default(), queue());
    cache.listed(vec![live("a", "u", 2)], version(3)).unwrap();
    cache.enqueue_changes(&queue, |change| change.key().map(|key| key.name));
    assert_eq!(ready(&queue).await, Some(("a".to_owned(), Lane::Low)));
    cache.observed(live("b", "v", 4)).unwrap();
    assert_eq!(ready(&queue).await, Some(("b".to_owned(), Lane::High)));
    cache.listed(vec![live("b", "v", 5)], version(6)).unwrap();
    // The relist removes "a" and changes "b".
    assert_eq!(ready(&queue).await, Some(("a".to_owned(), Lane::Low)));
    assert_eq!(ready(&queue).await, Some(("b".to_owned(), Lane::Low)));
}

#[tokio::test(start_paused = true)]
async fn found_object_is_valid_beyond_the_lock() {
    let cache = Shared::default();
    assert_eq!(cache.find(&key("a")), Observed::Unknown(UnknownReason::NotListed));
    cache
        .listed(vec![live("a", "u", 2), unreadable("b", "v", 2)], version(3))
        .unwrap();
    let found = cache.find(&key("a"));
    cache.observed_deleted(&identity("a", "u", 4));
    assert!(matches!(found, Observed::Present(object) if object.metadata.uid.as_deref() == Some("u")));
    assert!(
        matches!(cache.find(&key("b")), Observed::Unknown(UnknownReason::Unreadable(why)) if why.contains("spec.image"))
    );
    assert_eq!(cache.find(&key("a")), Observed::Absent);
}

#[tokio::test(start_paused = true)]
async fn synced_waits_for_the_first_list() {
    let cache = Shared::default();
    assert!(timeout(Duration::from_secs(9), cache.synced()).await.is_err());
    let (after, ()) = tokio::join!(timeout(Duration::from_secs(9), cache.synced()), async {
        cache.listed(Vec::new(), version(3)).unwrap();
    });
    assert!(after.is_ok());
    cache.synced().await;
}

#[tokio::test(start_paused = true)]
async fn own_write_enqueues_other_keys_and_not_its_source() {
    let (queue, cache) = with_queue(1);
    cache.enqueue_changes(&queue, |_| Some("owner".to_owned()));
    while ready(&queue).await.is_some() {}
    let item = item(&queue, "a").await;
    write(&cache, &item, ("a", "u", 5));
    item.finish(Outcome::Done);
    assert_eq!(ready(&queue).await.unwrap().0, "owner");
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(
        ready(&queue).await,
        None,
        "the watch event of the own write enqueues nothing"
    );
    cache.observed(live("a", "u", 6)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn write_of_another_client_inside_the_own_response_enqueues_the_key_with_the_watch_event() {
    let (queue, cache) = with_queue(1);
    cache.observed(live("a", "u", 2)).unwrap();
    assert!(ready(&queue).await.is_some());
    let item = item(&queue, "a").await;
    write(&cache, &item, ("a", "u", 7));
    item.finish(Outcome::Done);
    assert_eq!(ready(&queue).await, None);
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    cache.observed(live("a", "u", 7)).unwrap();
    assert_eq!(ready(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn version_older_than_the_own_write_enqueues_no_key_when_the_watch_delivers_it_late() {
    let (queue, cache) = with_queue(1);
    cache.listed(vec![live("a", "u", 3)], version(2)).unwrap();
    assert!(ready(&queue).await.is_some());
    let item = item(&queue, "a").await;
    write(&cache, &item, ("a", "u", 7));
    item.finish(Outcome::Done);
    cache.observed(live("a", "u", 3)).unwrap();
    assert_eq!(ready(&queue).await, None, "the list has enqueued this version");
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a", "the response included it");
}

#[tokio::test(start_paused = true)]
async fn relist_enqueues_sources_that_may_have_missed_a_change() {
    let (queue, cache) = with_queue(1);
    for (name, at) in [("a", 5), ("b", 9)] {
        let item = item(&queue, name).await;
        write(&cache, &item, (name, name, at));
        item.finish(Outcome::Done);
    }
    cache.listed(vec![live("a", "a", 5)], version(7)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    assert_eq!(ready(&queue).await, None, "the watch reports b completely");
}

#[tokio::test(start_paused = true)]
async fn watch_event_before_the_response_enqueues_no_key_either() {
    let (queue, cache) = with_queue(1);
    let item = item(&queue, "a").await;
    let writing = cache.start_write(&item.request_source(), key("a"));
    cache.observed(live("a", "u", 5)).unwrap();
    writing
        .wrote(object("a", "u", 5, "o"), AnswerContent::OwnChange)
        .unwrap();
    let deleting = cache.start_write(&item.request_source(), key("a"));
    cache.observed_deleted(&identity("a", "u", 6));
    deleting.deleted(&identity("a", "u", 5));
    item.finish(Outcome::Done);
    assert_eq!(ready(&queue).await, None);
    assert_eq!(cache.read(Cache::unconfirmed_deletes), 0);
}

#[tokio::test(start_paused = true)]
async fn write_of_another_client_enqueues_the_key_before_and_after_its_own_write() {
    for foreign in [4, 6] {
        let (queue, cache) = with_queue(1);
        let item = item(&queue, "a").await;
        let writing = cache.start_write(&item.request_source(), key("a"));
        let mut seen = [foreign, 5];
        seen.sort_unstable();
        for at in seen {
            cache.observed(live("a", "u", at)).unwrap();
        }
        writing
            .wrote(object("a", "u", 5, "o"), AnswerContent::OwnChange)
            .unwrap();
        item.finish(Outcome::Done);
        assert_eq!(ready(&queue).await.unwrap().0, "a", "{foreign}");
    }
}

#[tokio::test(start_paused = true)]
async fn write_without_a_response_may_be_an_own_one_so_its_source_reconciles() {
    let (queue, cache) = with_queue(1);
    let item = item(&queue, "a").await;
    let writing = cache.start_write(&item.request_source(), key("a"));
    cache.observed(live("a", "u", 5)).unwrap();
    drop(writing);
    item.finish(Outcome::Done);
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn source_of_a_lost_write_is_held_until_the_object_was_read_again() {
    let (queue, cache) = with_queue(1);
    let mut refresher = cache.refresher();
    let item = item(&queue, "a").await;
    drop(cache.start_write(&item.request_source(), key("a")));
    item.finish(Outcome::Failed);
    let uncertain = refresher.next().await.unwrap();
    assert!(timeout(Duration::from_secs(9), queue.take()).await.is_err());
    assert!(matches!(&uncertain, UncertainWrite::Lost { object, .. } if *object == key("a")));
    assert_eq!(queue.stats().held, 1);
    cache
        .refreshed(&key("a"), Some(live("a", "u", 5)), &version(6))
        .unwrap();
    assert_eq!(cache.read(|cache| shown(cache, "a")), Some(5));
    drop(uncertain);
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn read_that_finds_no_object_deletes_cached_versions_that_are_not_newer() {
    let cache = Shared::default();
    cache
        .listed(vec![live("old", "u", 2), live("new", "v", 2)], version(3))
        .unwrap();
    cache.wrote(object("new", "v", 9, "o")).unwrap();
    for name in ["old", "new"] {
        cache.refreshed(&key(name), None, &version(8)).unwrap();
    }
    cache.observed(live("old", "u", 7)).unwrap();
    assert_eq!(
        cache.find(&key("old")),
        Observed::Absent,
        "a late event of a deleted object"
    );
    assert_eq!(cache.read(|cache| shown(cache, "new")), Some(9));
    cache.observed_deleted(&identity("old", "u", 8));
    assert_eq!(cache.read(Cache::unconfirmed_deletes), 0);
}

#[tokio::test(start_paused = true)]
async fn rejected_write_is_certain_and_without_a_refresher_no_key_is_held() {
    let (queue, cache) = with_queue(1);
    let item = item(&queue, "a").await;
    drop(cache.start_write(&item.request_source(), key("a")));
    let mut refresher = cache.refresher();
    cache.start_write(&item.request_source(), key("a")).refused();
    assert!(timeout(Duration::from_secs(9), refresher.next()).await.is_err());
    drop(refresher);
    drop(cache.start_write(&item.request_source(), key("a")));
    item.finish(Outcome::Done);
    queue.add("a".to_owned(), Lane::High);
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn key_is_held_until_every_cache_has_its_writes() {
    let queue = queue();
    let (pools, claims) = (enqueueing(&queue, 1), enqueueing(&queue, 1));
    let _kept = (pools.refresher(), claims.refresher());
    let item = item(&queue, "a").await;
    pools.hold(&item.request_source(), &identity("a", "u", 5));
    claims
        .start_write(&item.request_source(), key("b"))
        .wrote_version(&identity("b", "v", 7), AnswerContent::OwnChange);
    claims.hold(&item.request_source(), &identity("c", "w", 1));
    assert_eq!((pools.held(), claims.held()), (1, 1), "version 1 is shown already");
    item.finish(Outcome::Done);
    queue.add("a".to_owned(), Lane::High);
    pools.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await, None);
    claims.observed_bookmark(version(7));
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    assert_eq!((pools.held(), claims.held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn watch_event_of_a_held_write_is_an_own_write() {
    let (queue, cache) = with_queue(1);
    let _kept = cache.refresher();
    let item = item(&queue, "a").await;
    cache.hold(&item.request_source(), &identity("a", "u", 5));
    item.finish(Outcome::Done);
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!((ready(&queue).await, cache.held()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn restored_server_holds_no_key() {
    let (queue, cache) = with_queue(50);
    let _kept = cache.refresher();
    let item = item(&queue, "a").await;
    cache.hold(&item.request_source(), &identity("a", "u", 60));
    item.finish(Outcome::Done);
    cache.listed(Vec::new(), version(30)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn cache_without_a_refresher_holds_no_key() {
    for refresher in [None, Some(enqueueing(&queue(), 1).refresher())] {
        let (queue, cache) = with_queue(1);
        let _of_another_cache = refresher;
        let item = item(&queue, "a").await;
        cache.hold(&item.request_source(), &identity("a", "u", 5));
        item.finish(Outcome::Done);
        queue.add("a".to_owned(), Lane::High);
        assert_eq!((ready(&queue).await.unwrap().0, cache.held()), ("a".to_owned(), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn holds_end_with_the_last_refresher() {
    let (queue, cache) = with_queue(1);
    let first = cache.refresher();
    let item = item(&queue, "a").await;
    cache.hold(&item.request_source(), &identity("a", "u", 5));
    let second = cache.refresher();
    cache.hold(&item.request_source(), &identity("b", "v", 6));
    item.finish(Outcome::Done);
    queue.add("a".to_owned(), Lane::High);
    drop(first);
    assert_eq!((ready(&queue).await, cache.held()), (None, 2));
    drop(second);
    assert_eq!((ready(&queue).await.unwrap().0, cache.held()), ("a".to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn tombstone_outside_the_watch_scope_is_removed_once_the_watch_has_passed_it() {
    let (queue, cache) = with_queue(1);
    let _kept = cache.refresher();
    let item = item(&queue, "a").await;
    for number in 0..100 {
        let name = format!("out-of-scope-{number}");
        cache.hold(&item.request_source(), &identity(&name, &name, 5));
        cache
            .start_write(&item.request_source(), key(&name))
            .deleted(&identity(&name, &name, 5));
    }
    assert_eq!(cache.read(Cache::unconfirmed_deletes), 100);
    for at in [4, 6, 7, 8] {
        cache.observed_bookmark(version(at));
    }
    assert_eq!(cache.read(Cache::unconfirmed_deletes), 0);
    assert_eq!(
        (cache.own_writes(|own_writes| own_writes.expected()), cache.held()),
        (0, 0)
    );
}

#[test]
#[should_panic(expected = "a subscriber of a cache must not use a cache")]
fn subscriber_that_uses_another_cache_panics_at_its_first_change() {
    let (machines, hosts) = (Shared::default(), Shared::default());
    machines.subscribe(move |_| drop(hosts.find(&key("a"))));
    machines.listed(Vec::new(), version(1)).unwrap();
}

#[test]
fn shared_indexes_follow_their_cache_and_may_be_read_from_inside_another() {
    type IndexedCache = SharedCache<ConfigMap, SharedIndexes<ByOwner>>;
    let (machines, hosts) = (IndexedCache::default(), Shared::default());
    let (owners, (sender, counts)) = (machines.indexes(), std::sync::mpsc::channel());
    hosts.subscribe(move |_| {
        let owned = owners.read(|indexes| indexes.0.get(&"o".to_owned()).count());
        sender.send(owned).unwrap();
    });
    machines.listed(vec![live("a", "u", 2)], version(3)).unwrap();
    hosts.listed(Vec::new(), version(1)).unwrap();
    machines.listed(Vec::new(), version(4)).unwrap();
    hosts.observed(live("h", "v", 5)).unwrap();
    assert_eq!(counts.try_iter().collect::<Vec<_>>(), [1, 0]);
}
