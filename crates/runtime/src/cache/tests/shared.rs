//! The cache between tasks: who is woken, who is held, and who is spared the news of what it did.

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

/// A cache that was listed, empty, at `at`, and feeds `queue` with the names of its objects.
fn feeding(queue: &Queue<String>, at: u64) -> Shared {
    let cache = Shared::default();
    cache.listed(Vec::new(), version(at)).unwrap();
    cache.enqueue_changes(queue, |change| change.key().map(|key| key.name));
    cache
}

fn live(name: &str, uid: &str, at: u64) -> Item<ConfigMap> {
    Item::Object(object(name, uid, at, "o"))
}

async fn pass(queue: &Queue<String>, name: &str) -> WorkItem<String> {
    queue.add(name.to_owned(), Lane::High);
    let pass = queue.take().await.unwrap();
    assert_eq!(pass.key(), name);
    pass
}

/// The key that is ready, if any.
async fn ready(queue: &Queue<String>) -> Option<(String, Lane)> {
    let pass = timeout(Duration::ZERO, queue.take()).await.ok()??;
    let taken = (pass.key().clone(), pass.taken().lane);
    pass.finish(Outcome::Done);
    Some(taken)
}

#[tokio::test(start_paused = true)]
async fn what_is_known_when_a_queue_comes_late_is_told_to_it() {
    let (cache, queue) = (Shared::default(), queue());
    cache.listed(vec![live("a", "u", 2)], version(3)).unwrap();
    cache.enqueue_changes(&queue, |change| change.key().map(|key| key.name));
    assert_eq!(ready(&queue).await, Some(("a".to_owned(), Lane::Low)));
    cache.observed(live("b", "v", 4)).unwrap();
    assert_eq!(ready(&queue).await, Some(("b".to_owned(), Lane::High)));
    cache.listed(vec![live("b", "v", 5)], version(6)).unwrap();
    // The relist: "a" is gone, "b" has changed.
    assert_eq!(ready(&queue).await, Some(("a".to_owned(), Lane::Low)));
    assert_eq!(ready(&queue).await, Some(("b".to_owned(), Lane::Low)));
}

#[tokio::test(start_paused = true)]
async fn found_is_kept_beyond_the_lock() {
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
async fn own_write_wakes_others_and_not_its_author() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    cache.enqueue_changes(&queue, |_| Some("owner".to_owned()));
    while ready(&queue).await.is_some() {}
    let pass = pass(&queue, "a").await;
    cache
        .wrote_by(&pass.request_source(), object("a", "u", 5, "o"))
        .unwrap();
    pass.finish(Outcome::Done);
    assert_eq!(ready(&queue).await.unwrap().0, "owner");
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await, None, "the echo is no news");
    cache.observed(live("a", "u", 6)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn foreign_write_inside_our_answer_wakes_us_when_the_watch_passes_it() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    cache.observed(live("a", "u", 2)).unwrap();
    assert!(ready(&queue).await.is_some());
    let pass = pass(&queue, "a").await;
    cache
        .wrote_by(&pass.request_source(), object("a", "u", 7, "o"))
        .unwrap();
    pass.finish(Outcome::Done);
    assert_eq!(ready(&queue).await, None);
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    cache.observed(live("a", "u", 7)).unwrap();
    assert_eq!(ready(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_our_write_is_no_news_when_the_watch_brings_it_late() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    cache.listed(vec![live("a", "u", 3)], version(2)).unwrap();
    assert!(ready(&queue).await.is_some());
    let pass = pass(&queue, "a").await;
    cache
        .wrote_by(&pass.request_source(), object("a", "u", 7, "o"))
        .unwrap();
    pass.finish(Outcome::Done);
    cache.observed(live("a", "u", 3)).unwrap();
    assert_eq!(ready(&queue).await, None, "it was told when it was read");
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a", "it came inside our answer");
}

#[tokio::test(start_paused = true)]
async fn relist_wakes_whoever_it_may_have_robbed_of_news() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    for (name, at) in [("a", 5), ("b", 9)] {
        let pass = pass(&queue, name).await;
        cache
            .wrote_by(&pass.request_source(), object(name, name, at, "o"))
            .unwrap();
        pass.finish(Outcome::Done);
    }
    cache.listed(vec![live("a", "a", 5)], version(7)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    assert_eq!(ready(&queue).await, None, "the watch will bring all about b");
}

#[tokio::test(start_paused = true)]
async fn echo_before_the_answer_is_no_news_either() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    let pass = pass(&queue, "a").await;
    let writing = cache.start_write(&pass.request_source(), key("a"));
    cache.observed(live("a", "u", 5)).unwrap();
    writing
        .wrote(object("a", "u", 5, "o"), AnswerContent::OwnChange)
        .unwrap();
    let deleting = cache.start_write(&pass.request_source(), key("a"));
    cache.observed_deleted(&identity("a", "u", 6));
    deleting.deleted(&identity("a", "u", 5));
    pass.finish(Outcome::Done);
    assert_eq!(ready(&queue).await, None);
    assert_eq!(cache.read(Cache::unconfirmed_deletes), 0);
}

#[tokio::test(start_paused = true)]
async fn foreign_write_beside_ours_is_news_whether_before_or_after_it() {
    for foreign in [4, 6] {
        let queue = queue();
        let cache = feeding(&queue, 1);
        let pass = pass(&queue, "a").await;
        let writing = cache.start_write(&pass.request_source(), key("a"));
        let mut seen = [foreign, 5];
        seen.sort_unstable();
        for at in seen {
            cache.observed(live("a", "u", at)).unwrap();
        }
        writing
            .wrote(object("a", "u", 5, "o"), AnswerContent::OwnChange)
            .unwrap();
        pass.finish(Outcome::Done);
        assert_eq!(ready(&queue).await.unwrap().0, "a", "{foreign}");
    }
}

#[tokio::test(start_paused = true)]
async fn write_without_an_answer_may_have_been_ours_so_its_author_looks() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    let pass = pass(&queue, "a").await;
    let writing = cache.start_write(&pass.request_source(), key("a"));
    cache.observed(live("a", "u", 5)).unwrap();
    drop(writing);
    pass.finish(Outcome::Done);
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn author_of_a_lost_write_is_held_until_the_object_was_read_afresh() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    let mut refresher = cache.refresher();
    let pass = pass(&queue, "a").await;
    drop(cache.start_write(&pass.request_source(), key("a")));
    pass.finish(Outcome::Failed);
    let doubt = refresher.next().await.unwrap();
    assert!(timeout(Duration::from_secs(9), queue.take()).await.is_err());
    assert!(matches!(&doubt, UncertainWrite::Lost { object, .. } if *object == key("a")));
    assert_eq!(queue.stats().held, 1);
    cache
        .refreshed(&key("a"), Some(live("a", "u", 5)), &version(6))
        .unwrap();
    assert_eq!(cache.read(|cache| shown(cache, "a")), Some(5));
    drop(doubt);
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await, None);
}

#[tokio::test(start_paused = true)]
async fn fresh_read_that_finds_nothing_buries_what_is_not_newer() {
    let cache = Shared::default();
    cache
        .listed(vec![live("old", "u", 2), live("new", "v", 2)], version(3))
        .unwrap();
    cache.wrote(object("new", "v", 9, "o")).unwrap();
    for name in ["old", "new"] {
        cache.refreshed(&key(name), None, &version(8)).unwrap();
    }
    cache.observed(live("old", "u", 7)).unwrap();
    assert_eq!(cache.find(&key("old")), Observed::Absent, "late news of the dead");
    assert_eq!(cache.read(|cache| shown(cache, "new")), Some(9));
    cache.observed_deleted(&identity("old", "u", 8));
    assert_eq!(cache.read(Cache::unconfirmed_deletes), 0);
}

#[tokio::test(start_paused = true)]
async fn refused_write_leaves_no_doubt_and_nobody_to_resolve_it_holds_nobody() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    let pass = pass(&queue, "a").await;
    drop(cache.start_write(&pass.request_source(), key("a")));
    let mut refresher = cache.refresher();
    cache.start_write(&pass.request_source(), key("a")).refused();
    assert!(timeout(Duration::from_secs(9), refresher.next()).await.is_err());
    drop(refresher);
    drop(cache.start_write(&pass.request_source(), key("a")));
    pass.finish(Outcome::Done);
    queue.add("a".to_owned(), Lane::High);
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn key_is_held_until_every_cache_shows_what_it_wrote() {
    let queue = queue();
    let (pools, claims) = (feeding(&queue, 1), feeding(&queue, 1));
    let _kept = (pools.refresher(), claims.refresher());
    let pass = pass(&queue, "a").await;
    pools.hold(&pass.request_source(), &identity("a", "u", 5));
    claims
        .start_write(&pass.request_source(), key("b"))
        .wrote_version(&identity("b", "v", 7), AnswerContent::OwnChange);
    claims.hold(&pass.request_source(), &identity("c", "w", 1));
    assert_eq!((pools.held(), claims.held()), (1, 1), "version 1 is shown already");
    pass.finish(Outcome::Done);
    queue.add("a".to_owned(), Lane::High);
    pools.observed(live("a", "u", 5)).unwrap();
    assert_eq!(ready(&queue).await, None);
    claims.observed_bookmark(version(7));
    assert_eq!(ready(&queue).await.unwrap().0, "a");
    assert_eq!((pools.held(), claims.held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_held_write_shows_later_is_its_own_doing() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    let _kept = cache.refresher();
    let pass = pass(&queue, "a").await;
    cache.hold(&pass.request_source(), &identity("a", "u", 5));
    pass.finish(Outcome::Done);
    cache.observed(live("a", "u", 5)).unwrap();
    assert_eq!((ready(&queue).await, cache.held()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn server_that_was_put_back_in_time_holds_nobody() {
    let queue = queue();
    let cache = feeding(&queue, 50);
    let _kept = cache.refresher();
    let pass = pass(&queue, "a").await;
    cache.hold(&pass.request_source(), &identity("a", "u", 60));
    pass.finish(Outcome::Done);
    cache.listed(Vec::new(), version(30)).unwrap();
    assert_eq!(ready(&queue).await.unwrap().0, "a");
}

#[tokio::test(start_paused = true)]
async fn cache_that_nobody_fills_holds_nobody() {
    for refresher in [None, Some(feeding(&queue(), 1).refresher())] {
        let queue = queue();
        let cache = feeding(&queue, 1);
        let _another_caches = refresher;
        let pass = pass(&queue, "a").await;
        cache.hold(&pass.request_source(), &identity("a", "u", 5));
        pass.finish(Outcome::Done);
        queue.add("a".to_owned(), Lane::High);
        assert_eq!((ready(&queue).await.unwrap().0, cache.held()), ("a".to_owned(), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn holds_end_with_the_last_one_who_fills_the_cache() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    let first = cache.refresher();
    let pass = pass(&queue, "a").await;
    cache.hold(&pass.request_source(), &identity("a", "u", 5));
    let second = cache.refresher();
    cache.hold(&pass.request_source(), &identity("b", "v", 6));
    pass.finish(Outcome::Done);
    queue.add("a".to_owned(), Lane::High);
    drop(first);
    assert_eq!((ready(&queue).await, cache.held()), (None, 2));
    drop(second);
    assert_eq!((ready(&queue).await.unwrap().0, cache.held()), ("a".to_owned(), 0));
}

#[tokio::test(start_paused = true)]
async fn what_the_watch_never_has_in_sight_is_forgotten_when_it_has_passed() {
    let queue = queue();
    let cache = feeding(&queue, 1);
    let _kept = cache.refresher();
    let pass = pass(&queue, "a").await;
    for number in 0..100 {
        let name = format!("out-of-scope-{number}");
        cache.hold(&pass.request_source(), &identity(&name, &name, 5));
        cache
            .start_write(&pass.request_source(), key(&name))
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
#[should_panic(expected = "inside a cache nobody may look into a cache")]
fn subscriber_that_looks_into_another_cache_is_found_at_its_first_change() {
    let (machines, hosts) = (Shared::default(), Shared::default());
    machines.subscribe(move |_| drop(hosts.find(&key("a"))));
    machines.listed(Vec::new(), version(1)).unwrap();
}

#[test]
fn shared_indexes_follow_their_cache_and_may_be_read_from_inside_another() {
    type Tied = SharedCache<ConfigMap, SharedIndexes<ByOwner>>;
    let (machines, hosts) = (Tied::default(), Shared::default());
    let (owners, (tell, told)) = (machines.indexes(), std::sync::mpsc::channel());
    hosts.subscribe(move |_| {
        let owned = owners.read(|indexes| indexes.0.get(&"o".to_owned()).count());
        tell.send(owned).unwrap();
    });
    machines.listed(vec![live("a", "u", 2)], version(3)).unwrap();
    hosts.listed(Vec::new(), version(1)).unwrap();
    machines.listed(Vec::new(), version(4)).unwrap();
    hosts.observed(live("h", "v", 5)).unwrap();
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [1, 0]);
}
