//! What a cache survives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_runtime::cache::{Change, SharedCache};
use metal3_runtime::plan::Observed;
use metal3_runtime::watch::{PAGE_SIZE, SILENCE_LIMIT, Scope};
use metal3_sim_faults::{Fault, Rule};
use tokio::time::Instant;

use crate::world::{hear, key, shown, stored, until, world};

fn refused(code: u16, retry_after: Option<u32>) -> Fault {
    Fault::Refused { code, retry_after }
}

#[tokio::test(start_paused = true)]
async fn broken_watch_resumes_where_it_was_and_nothing_is_listed_again() {
    let world = world();
    world.suffer([1, 2].map(|nth| Rule::at(nth, Fault::WatchDropped { after: 1 }).verb("watch")));
    let cache = SharedCache::<ConfigMap>::default();
    let heard = hear(&cache);
    let health = world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    for name in ["a", "b", "c", "d"] {
        world.create(name).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    world.delete("c").await;
    until(|| cache.find(&key("c")) == Observed::Absent).await;
    assert_eq!(shown(&cache), stored(&world).await);
    assert_eq!(
        heard.lock()[..],
        ["synced", "a came", "b came", "c came", "d came", "c gone"]
    );
    assert_eq!(world.asked().0, 1);
    assert!(health.last_error().is_none() && health.stats().failures == 2);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_the_server_forgot_leads_to_a_list_and_no_change_is_missed() {
    let world = world();
    for name in ["goes", "changes", "stays"] {
        world.create(name).await;
    }
    world.suffer([Rule::at(1, Fault::WatchFrozen { after: 0 }).verb("watch")]);
    let cache = SharedCache::<ConfigMap>::default();
    let heard = hear(&cache);
    world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    heard.lock().clear();
    world.delete("goes").await;
    world.create("comes").await;
    world.put("changes", "x").await;
    world.create("brief").await;
    world.delete("brief").await;
    world.cluster().compact();
    let real = stored(&world).await;
    until(|| shown(&cache) == real).await;
    assert_eq!(heard.lock()[..], ["goes gone", "changes changed", "comes came"]);
    assert_eq!(world.asked().0, 2);
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn silence_is_noticed_within_its_bound_and_costs_no_list() {
    let world = world();
    world.suffer([Rule::at(1, Fault::WatchFrozen { after: 1 }).verb("watch")]);
    let cache = SharedCache::<ConfigMap>::default();
    let health = world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    world.create("seen").await;
    until(|| shown(&cache).len() == 1).await;
    world.create("unseen").await;
    let late = until(|| shown(&cache).len() == 2).await;
    assert!(
        late > SILENCE_LIMIT.mul_f32(0.9) && late < SILENCE_LIMIT + Duration::from_secs(1),
        "{late:?}"
    );
    assert_eq!((world.asked(), health.stats().frozen), ((1, 2), 1));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn server_whose_every_watch_freezes_is_followed_by_lists() {
    let world = world();
    world.suffer([Rule::random(1000, Fault::WatchFrozen { after: 0 }).verb("watch")]);
    let cache = SharedCache::<ConfigMap>::default();
    world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    for name in ["a", "b"] {
        world.create(name).await;
        let late = until(|| matches!(cache.find(&key(name)), Observed::Present(_))).await;
        assert!(late < 4 * SILENCE_LIMIT, "{late:?}");
    }
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_of_a_follower_that_lags_puts_nothing_back() {
    let world = world();
    world.create("a").await;
    // Three watches that fall silent lead to a second list; a follower answers it.
    world.suffer([
        Rule::at(1, Fault::WatchFrozen { after: 2 }).verb("watch"),
        Rule::at(2, Fault::WatchFrozen { after: 0 }).verb("watch"),
        Rule::at(3, Fault::WatchFrozen { after: 0 }).verb("watch"),
        Rule::at(2, Fault::StaleRead { writes: 2 }).verb("list"),
    ]);
    let cache = SharedCache::<ConfigMap>::default();
    let heard = hear(&cache);
    let health = world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    world.put("a", "1").await;
    world.put("a", "2").await;
    until(|| heard.lock().len() == 4).await;
    let newest = world.put("a", "3").await.metadata.resource_version.unwrap();
    until(|| {
        health
            .last_error()
            .is_some_and(|trouble| trouble.contains("older than"))
    })
    .await;
    assert_eq!((world.asked().0, health.stats().lists), (2, 1));
    until(|| shown(&cache)["a"].to_string() == newest).await;
    assert_eq!((world.asked().0, health.stats().lists), (3, 2));
    assert_eq!(
        heard.lock()[..],
        ["a came", "synced", "a changed", "a changed", "a changed"]
    );
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_that_stays_behind_is_believed_and_the_watch_catches_up() {
    let world = world();
    world.create("a").await;
    world.suffer([
        Rule::at(1, Fault::WatchFrozen { after: 2 }).verb("watch"),
        Rule::at(2, Fault::WatchFrozen { after: 0 }).verb("watch"),
        Rule::at(3, Fault::WatchFrozen { after: 0 }).verb("watch"),
    ]);
    let cache = SharedCache::<ConfigMap>::default();
    let health = world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    world.put("a", "1").await;
    world.put("a", "2").await;
    let newest = stored(&world).await;
    until(|| shown(&cache) == newest && health.stats().watches == 3).await;
    let put_back = Arc::new(AtomicU32::new(0));
    let version = |object: &ConfigMap| {
        object
            .metadata
            .resource_version
            .as_ref()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let count = Arc::clone(&put_back);
    cache.subscribe(move |change| {
        if let Change::Applied {
            old: Some(old), new, ..
        } = change
            && version(old) > version(new)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    world.suffer([Rule::random(1000, Fault::StaleRead { writes: 1 }).verb("list")]);
    until(|| put_back.load(Ordering::Relaxed) == 1 && shown(&cache) == newest).await;
    assert_eq!(
        (world.asked().0, health.stats().lists),
        (6, 2),
        "four times it was not believed"
    );
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn first_list_that_is_old_is_made_up_for_by_the_watch() {
    let world = world();
    world.create("a").await;
    world.create("b").await;
    world.delete("a").await;
    world.suffer([Rule::at(1, Fault::StaleRead { writes: 2 }).verb("list")]);
    let cache = SharedCache::<ConfigMap>::default();
    world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    until(|| shown(&cache).into_keys().eq(["b".to_owned()])).await;
    assert_eq!(world.asked(), (1, 1));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_whose_rest_was_forgotten_is_read_in_one_piece() {
    let world = world();
    for number in 0..=PAGE_SIZE {
        world.create(&format!("c{number}")).await;
    }
    world.suffer([Rule::at(1, Fault::Delay(Duration::from_secs(9))).verb("list")]);
    let cache = SharedCache::<ConfigMap>::default();
    let health = world.fill(&cache, Scope::everywhere());
    tokio::time::sleep(Duration::from_secs(5)).await;
    world.create("later").await;
    world.cluster().compact();
    cache.synced().await;
    assert_eq!(shown(&cache), stored(&world).await);
    assert_eq!(
        (world.asked().0, health.stats().lists, health.stats().failures),
        (3, 1, 0)
    );
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_that_come_twice_are_heard_once() {
    let world = world();
    world.suffer([Rule::at(1, Fault::DuplicateEvents).verb("watch")]);
    let cache = SharedCache::<ConfigMap>::default();
    let heard = hear(&cache);
    world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    world.create("a").await;
    world.put("a", "x").await;
    world.delete("a").await;
    world.create("end").await;
    until(|| shown(&cache).contains_key("end")).await;
    assert_eq!(
        heard.lock()[..],
        ["synced", "a came", "a changed", "a gone", "end came"]
    );
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn server_that_asks_for_a_pause_gets_it() {
    let world = world();
    world.suffer([Rule::at(1, refused(429, Some(17))).verb("list")]);
    let cache = SharedCache::<ConfigMap>::default();
    let start = Instant::now();
    let health = world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    let waited = start.elapsed();
    assert!(
        waited >= Duration::from_secs(17) && waited < Duration::from_secs(18),
        "{waited:?}"
    );
    assert_eq!((world.asked().0, health.stats().failures), (2, 1));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn outage_shows_in_the_pulse_costs_few_requests_and_ends_without_a_list() {
    let world = world();
    let cache = SharedCache::<ConfigMap>::default();
    let health = world.fill(&cache, Scope::everywhere());
    cache.synced().await;
    // The next renewal finds nobody there.
    world.suffer([Rule::random(1000, refused(503, None))]);
    tokio::time::sleep(Duration::from_mins(60)).await;
    assert!(!health.is_alive() && health.silent_for() > Duration::from_mins(25));
    assert!(health.last_error().unwrap().contains("503") || health.stats().failures > 9);
    let (lists, watches) = world.asked();
    assert!(lists == 1 && (60..140).contains(&watches), "{lists} {watches}");
    world.suffer([]);
    world.create("a").await;
    let late = until(|| shown(&cache).len() == 1).await;
    assert!(late <= Duration::from_secs(31) && health.is_alive(), "{late:?}");
    assert_eq!((world.asked().0, health.last_error()), (1, None));
    world.stop().await;
}
