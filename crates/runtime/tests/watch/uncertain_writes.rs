//! Every hold of a key for an own write ends, even when the watch fails.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::queue::{Lane, Outcome, Queue, RequestSource};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::watch::{SILENCE_LIMIT, Scope};
use metal3_sim_faults::{Fault, Rule};
use tokio::time::{Instant, timeout};

use crate::setup::{TestEnv, key, simulated};

/// Bound of the wait for a late watch.
const SOON: Duration = Duration::from_secs(10);
/// Bound of every wait.
const LONGEST: Duration = Duration::from_secs(130);

struct Fixture {
    env: TestEnv,
    cache: SharedCache<ConfigMap>,
    queue: Queue<String>,
}

async fn fixture(scope: Scope, faults: impl IntoIterator<Item = Rule>) -> Fixture {
    let env = simulated();
    env.inject(faults);
    let cache = SharedCache::default();
    env.fill(&cache, scope);
    cache.synced().await;
    let queue = Queue::new(env.clock());
    Fixture { env, cache, queue }
}

impl Fixture {
    fn source(&self, name: &str) -> RequestSource {
        RequestSource::new(self.queue.clone(), name.to_owned())
    }

    /// Reports a write of `object` by `source`, without adding the response to the cache.
    fn wrote<K: Resource>(&self, source: &str, object: &K) {
        self.cache.hold(&self.source(source), &Identity::of(object).unwrap());
        self.queue.add(source.to_owned(), Lane::High);
    }

    /// Reports a write of `object` by `source` without a response.
    fn lost(&self, source: &str, object: Key) {
        drop(self.cache.start_write(&self.source(source), object));
        self.queue.add(source.to_owned(), Lane::High);
    }

    /// Time until the queue returns a key.
    async fn wait_for_key(&self, name: &str) -> Duration {
        let began = Instant::now();
        let item = timeout(Duration::from_hours(1), self.queue.take()).await;
        // A timeout means that the key is held for ever.
        let item = item.unwrap().unwrap();
        assert_eq!(item.key(), name);
        item.finish(Outcome::Done);
        began.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn write_that_a_silent_watch_does_not_deliver_is_read() {
    let fixture = fixture(
        Scope::everywhere(),
        [Rule::at(1, Fault::WatchFrozen { after: 0 }).verb("watch")],
    )
    .await;
    let written = fixture.env.create("a").await;
    fixture.wrote("source", &written);
    let waited = fixture.wait_for_key("source").await;
    assert!(waited < SOON && SOON < SILENCE_LIMIT, "{waited:?}");
    assert_eq!(crate::setup::shown(&fixture.cache).len(), 1);
    assert_eq!((fixture.env.request_counts().0, fixture.cache.held()), (2, 0));
    fixture.env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_that_the_watch_delivers_in_time_costs_no_read() {
    let fixture = fixture(Scope::everywhere(), []).await;
    let written = fixture.env.create("a").await;
    fixture.wrote("source", &written);
    assert!(fixture.wait_for_key("source").await < Duration::from_secs(1));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(fixture.env.request_counts().0, 1);
    fixture.env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_outside_the_scope_of_a_cache_holds_no_key_for_long() {
    let mut elsewhere = ConfigMap::default();
    elsewhere.metadata.namespace = Some("elsewhere".to_owned());
    elsewhere.metadata.name = Some("a".to_owned());
    elsewhere.metadata.uid = Some("u".to_owned());
    elsewhere.metadata.resource_version = Some("99999".to_owned());
    for (scope, longest, lists) in [
        (Scope::namespace("default"), Duration::from_secs(1), 1),
        (Scope::everywhere().labels("own=yes"), SOON, 2),
    ] {
        let fixture = fixture(scope, []).await;
        fixture.wrote("source", &elsewhere);
        let waited = fixture.wait_for_key("source").await;
        assert!(waited < longest, "{waited:?}");
        assert_eq!(fixture.env.request_counts().0, lists);
        fixture.env.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_write_in_another_namespace_is_not_read_in_this_one() {
    let fixture = fixture(Scope::namespace("default"), []).await;
    let elsewhere = Key {
        namespace: "elsewhere".to_owned(),
        name: "a".to_owned(),
    };
    fixture.lost("source", elsewhere);
    assert!(fixture.wait_for_key("source").await < Duration::from_secs(1));
    assert_eq!(fixture.env.request_counts().0, 1);
    fixture.env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slow_uncertain_write_does_not_delay_others() {
    let fixture = fixture(Scope::everywhere(), []).await;
    fixture
        .env
        .inject([Rule::at(1, Fault::Delay(Duration::from_secs(25))).verb("list")]);
    fixture.lost("slow", key("a"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    fixture.lost("quick", key("b"));
    assert!(fixture.wait_for_key("quick").await < Duration::from_secs(1));
    let waited = fixture.wait_for_key("slow").await;
    assert!(waited > Duration::from_secs(20), "{waited:?}");
    fixture.env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn uncertain_write_ends_with_a_final_error_and_after_a_time_without_a_response() {
    for (code, longest) in [(403, Duration::from_secs(1)), (503, LONGEST)] {
        let fixture = fixture(Scope::everywhere(), []).await;
        let refused = Fault::refused(code);
        fixture.env.inject([Rule::random(1000, refused).verb("list")]);
        fixture.lost("source", key("a"));
        let waited = fixture.wait_for_key("source").await;
        assert!(waited < longest, "{code} {waited:?}");
        assert_eq!(fixture.queue.stats().held, 0);
        fixture.env.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn recreated_object_ends_the_wait_for_its_old_version() {
    let fixture = fixture(Scope::everywhere(), []).await;
    let written = fixture.env.create("a").await;
    fixture.env.delete("a").await;
    fixture.env.create("a").await;
    fixture.wrote("source", &written);
    assert!(fixture.wait_for_key("source").await < Duration::from_secs(1));
    fixture.env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_version_that_the_server_never_reaches_ends() {
    let fixture = fixture(Scope::everywhere(), []).await;
    let mut written = fixture.env.create("a").await;
    // As after a restore of the server to a state before the write.
    written.metadata.resource_version = Some("99999999".to_owned());
    fixture.wrote("source", &written);
    assert!(fixture.wait_for_key("source").await < SOON);
    assert_eq!(fixture.cache.held(), 0);
    fixture.env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_key_waits_for_a_stopped_watch() {
    let fixture = fixture(Scope::everywhere(), []).await;
    let mut written = fixture.env.create("a").await;
    written.metadata.resource_version = Some("99999999".to_owned());
    fixture.wrote("source", &written);
    let Fixture { env, cache, queue } = fixture;
    assert_eq!(cache.held(), 1);
    env.stop().await;
    assert_eq!(cache.held(), 0);
    let fixture = Fixture {
        env: crate::setup::simulated(),
        cache,
        queue,
    };
    fixture.wrote("source", &written);
    assert_eq!(fixture.cache.held(), 0);
    let known = fixture.cache.read(|cache| cache.reached().cloned());
    assert!(known < ResourceVersion::parse("99999999").ok());
}
