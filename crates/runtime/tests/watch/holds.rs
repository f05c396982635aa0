//! Every wait for a write to show ends, whatever becomes of the watch.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::queue::{Lane, Outcome, Queue, RequestSource};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::watch::{SILENCE_LIMIT, Scope};
use metal3_sim_faults::{Fault, Rule};
use tokio::time::{Instant, timeout};

use crate::world::{World, key, world};

/// A watch that is late is not waited for much longer than this.
const SOON: Duration = Duration::from_secs(10);
/// Nothing is waited for longer than this.
const LONGEST: Duration = Duration::from_secs(130);

struct Rig {
    world: World,
    cache: SharedCache<ConfigMap>,
    queue: Queue<String>,
}

async fn rig(scope: Scope, faults: impl IntoIterator<Item = Rule>) -> Rig {
    let world = world();
    world.suffer(faults);
    let cache = SharedCache::<ConfigMap>::default();
    world.fill(&cache, scope);
    cache.synced().await;
    let queue = Queue::new(world.clock());
    Rig { world, cache, queue }
}

impl Rig {
    fn source(&self, name: &str) -> RequestSource {
        RequestSource::new(self.queue.clone(), name.to_owned())
    }

    /// Somebody wrote `object` and got an answer that cannot enter the cache.
    fn wrote<K: Resource>(&self, source: &str, object: &K) {
        self.cache.hold(&self.source(source), &Identity::of(object).unwrap());
        self.queue.add(source.to_owned(), Lane::High);
    }

    /// A write of `source` about `object` got no answer.
    fn lost(&self, source: &str, object: Key) {
        drop(self.cache.start_write(&self.source(source), object));
        self.queue.add(source.to_owned(), Lane::High);
    }

    /// How long it takes until a key is given out.
    async fn given_out(&self, name: &str) -> Duration {
        let began = Instant::now();
        let pass = timeout(Duration::from_hours(1), self.queue.take()).await;
        // Otherwise it is held for ever.
        let pass = pass.unwrap().unwrap();
        assert_eq!(pass.key(), name);
        pass.finish(Outcome::Done);
        began.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn write_that_a_frozen_watch_does_not_show_is_read() {
    let rig = rig(
        Scope::everywhere(),
        [Rule::at(1, Fault::WatchFrozen { after: 0 }).verb("watch")],
    )
    .await;
    let written = rig.world.create("a").await;
    rig.wrote("source", &written);
    let waited = rig.given_out("source").await;
    assert!(waited < SOON && SOON < SILENCE_LIMIT, "{waited:?}");
    assert_eq!(crate::world::shown(&rig.cache).len(), 1);
    assert_eq!((rig.world.asked().0, rig.cache.held()), (2, 0));
    rig.world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_that_the_watch_shows_in_time_costs_no_read() {
    let rig = rig(Scope::everywhere(), []).await;
    let written = rig.world.create("a").await;
    rig.wrote("source", &written);
    assert!(rig.given_out("source").await < Duration::from_secs(1));
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(rig.world.asked().0, 1);
    rig.world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn write_that_is_not_in_the_scope_of_a_cache_holds_nobody_for_long() {
    let mut elsewhere = ConfigMap::default();
    elsewhere.metadata.namespace = Some("elsewhere".to_owned());
    elsewhere.metadata.name = Some("a".to_owned());
    elsewhere.metadata.uid = Some("u".to_owned());
    elsewhere.metadata.resource_version = Some("99999".to_owned());
    for (scope, longest, lists) in [
        (Scope::namespace("default"), Duration::from_secs(1), 1),
        (Scope::everywhere().labels("ours=yes"), SOON, 2),
    ] {
        let rig = rig(scope, []).await;
        rig.wrote("source", &elsewhere);
        let waited = rig.given_out("source").await;
        assert!(waited < longest, "{waited:?}");
        assert_eq!(rig.world.asked().0, lists);
        rig.world.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_write_in_another_namespace_is_not_looked_for_in_this_one() {
    let rig = rig(Scope::namespace("default"), []).await;
    let elsewhere = Key {
        namespace: "elsewhere".to_owned(),
        name: "a".to_owned(),
    };
    rig.lost("source", elsewhere);
    assert!(rig.given_out("source").await < Duration::from_secs(1));
    assert_eq!(rig.world.asked().0, 1);
    rig.world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn doubt_that_takes_long_does_not_keep_others_waiting() {
    let rig = rig(Scope::everywhere(), []).await;
    rig.world
        .suffer([Rule::at(1, Fault::Delay(Duration::from_secs(25))).verb("list")]);
    rig.lost("slow", key("a"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.lost("quick", key("b"));
    assert!(rig.given_out("quick").await < Duration::from_secs(1));
    let waited = rig.given_out("slow").await;
    assert!(waited > Duration::from_secs(20), "{waited:?}");
    rig.world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn doubt_ends_where_the_server_would_always_refuse_and_after_a_time_where_it_never_answers() {
    for (code, longest) in [(403, Duration::from_secs(1)), (503, LONGEST)] {
        let rig = rig(Scope::everywhere(), []).await;
        let refused = Fault::Refused {
            code,
            retry_after: None,
        };
        rig.world.suffer([Rule::random(1000, refused).verb("list")]);
        rig.lost("source", key("a"));
        let waited = rig.given_out("source").await;
        assert!(waited < longest, "{code} {waited:?}");
        assert_eq!(rig.queue.stats().held, 0);
        rig.world.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn object_that_is_deleted_and_made_again_ends_the_wait_for_what_it_was() {
    let rig = rig(Scope::everywhere(), []).await;
    let written = rig.world.create("a").await;
    rig.world.delete("a").await;
    rig.world.create("a").await;
    rig.wrote("source", &written);
    assert!(rig.given_out("source").await < Duration::from_secs(1));
    rig.world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_that_the_server_never_reaches_again_is_not_waited_for() {
    let rig = rig(Scope::everywhere(), []).await;
    let mut written = rig.world.create("a").await;
    // As if the server had been put back to a state before the write.
    written.metadata.resource_version = Some("99999999".to_owned());
    rig.wrote("source", &written);
    assert!(rig.given_out("source").await < SOON);
    assert_eq!(rig.cache.held(), 0);
    rig.world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_watch_that_was_stopped() {
    let rig = rig(Scope::everywhere(), []).await;
    let mut written = rig.world.create("a").await;
    written.metadata.resource_version = Some("99999999".to_owned());
    rig.wrote("source", &written);
    let Rig { world, cache, queue } = rig;
    assert_eq!(cache.held(), 1);
    world.stop().await;
    assert_eq!(cache.held(), 0);
    let rig = Rig {
        world: crate::world::world(),
        cache,
        queue,
    };
    rig.wrote("source", &written);
    assert_eq!(rig.cache.held(), 0);
    let known = rig.cache.read(|cache| cache.reached().cloned());
    assert!(known < ResourceVersion::parse("99999999").ok());
}
