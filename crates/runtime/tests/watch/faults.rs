//! Server and watch faults.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_runtime::cache::{Change, SharedCache};
use metal3_runtime::plan::Observed;
use metal3_runtime::watch::{PAGE_SIZE, SILENCE_LIMIT, Scope};
use metal3_sim_faults::{Fault, Rule};
use tokio::time::Instant;

use crate::setup::{key, shown, simulated, stored, until};

/// Two events, then three silent watches.
fn silent_watches() -> [Rule; 3] {
    [(1, 2), (2, 0), (3, 0)].map(|(nth, after)| Rule::at(nth, Fault::WatchFrozen { after }).verb("watch"))
}

#[tokio::test(start_paused = true)]
async fn broken_watch_resumes_without_another_list() {
    let env = simulated();
    env.inject([1, 2].map(|nth| Rule::at(nth, Fault::WatchDropped { after: 1 }).verb("watch")));
    let (cache, changes, health) = env.recorded().await;
    for name in ["a", "b", "c", "d"] {
        env.create(name).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    env.delete("c").await;
    until(|| cache.find(&key("c")) == Observed::Absent).await;
    assert_eq!(shown(&cache), stored(&env).await);
    assert_eq!(
        changes.lock()[..],
        ["synced", "a added", "b added", "c added", "d added", "c deleted"]
    );
    assert_eq!(env.request_counts().0, 1);
    assert!(health.last_error().is_none() && health.stats().failures == 2);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn expired_version_leads_to_a_list_and_no_change_is_missed() {
    let env = simulated();
    for name in ["goes", "changes", "stays"] {
        env.create(name).await;
    }
    env.inject([Rule::at(1, Fault::WatchFrozen { after: 0 }).verb("watch")]);
    let (cache, changes, _) = env.recorded().await;
    changes.lock().clear();
    env.delete("goes").await;
    env.create("comes").await;
    env.put("changes", "x").await;
    env.create("brief").await;
    env.delete("brief").await;
    env.cluster().compact();
    let real = stored(&env).await;
    until(|| shown(&cache) == real).await;
    assert_eq!(changes.lock()[..], ["goes deleted", "changes changed", "comes added"]);
    assert_eq!(env.request_counts().0, 2);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn silence_is_detected_within_its_limit_and_costs_no_list() {
    let env = simulated();
    env.inject([Rule::at(1, Fault::WatchFrozen { after: 1 }).verb("watch")]);
    let (cache, health) = env.synced().await;
    env.create("seen").await;
    until(|| shown(&cache).len() == 1).await;
    env.create("unseen").await;
    let late = until(|| shown(&cache).len() == 2).await;
    assert!(
        late > SILENCE_LIMIT.mul_f32(0.9) && late < SILENCE_LIMIT + Duration::from_secs(1),
        "{late:?}"
    );
    assert_eq!((env.request_counts(), health.stats().frozen), ((1, 2), 1));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn server_whose_every_watch_is_silent_is_followed_by_lists() {
    let env = simulated();
    env.inject([Rule::random(1000, Fault::WatchFrozen { after: 0 }).verb("watch")]);
    let (cache, _) = env.synced().await;
    for name in ["a", "b"] {
        env.create(name).await;
        let late = until(|| matches!(cache.find(&key(name)), Observed::Present(_))).await;
        assert!(late < 4 * SILENCE_LIMIT, "{late:?}");
    }
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_of_a_lagging_follower_brings_no_old_version_back() {
    let env = simulated();
    env.create("a").await;
    // Three silent watches cause a second list, which a follower answers.
    let stale = Rule::at(2, Fault::StaleRead { writes: 2 }).verb("list");
    env.inject(silent_watches().into_iter().chain([stale]));
    let (cache, changes, health) = env.recorded().await;
    env.put("a", "1").await;
    env.put("a", "2").await;
    until(|| changes.lock().len() == 4).await;
    let newest = env.put("a", "3").await.metadata.resource_version.unwrap();
    until(|| health.last_error().is_some_and(|error| error.contains("older than"))).await;
    assert_eq!((env.request_counts().0, health.stats().lists), (2, 1));
    until(|| shown(&cache)["a"].to_string() == newest).await;
    assert_eq!((env.request_counts().0, health.stats().lists), (3, 2));
    assert_eq!(
        changes.lock()[..],
        ["a added", "synced", "a changed", "a changed", "a changed"]
    );
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_that_stays_behind_is_accepted_and_the_watch_catches_up() {
    let env = simulated();
    env.create("a").await;
    env.inject(silent_watches());
    let (cache, health) = env.synced().await;
    env.put("a", "1").await;
    env.put("a", "2").await;
    let newest = stored(&env).await;
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
    env.inject([Rule::random(1000, Fault::StaleRead { writes: 1 }).verb("list")]);
    until(|| put_back.load(Ordering::Relaxed) == 1 && shown(&cache) == newest).await;
    assert_eq!(
        (env.request_counts().0, health.stats().lists),
        (6, 2),
        "a stale list is rejected four times"
    );
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn watch_makes_up_for_an_old_first_list() {
    let env = simulated();
    env.create("a").await;
    env.create("b").await;
    env.delete("a").await;
    env.inject([Rule::at(1, Fault::StaleRead { writes: 2 }).verb("list")]);
    let (cache, _) = env.synced().await;
    until(|| shown(&cache).into_keys().eq(["b".to_owned()])).await;
    assert_eq!(env.request_counts(), (1, 1));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_with_an_expired_continue_token_is_read_in_one_piece() {
    let env = simulated();
    for number in 0..=PAGE_SIZE {
        env.create(&format!("c{number}")).await;
    }
    env.inject([Rule::at(1, Fault::Delay(Duration::from_secs(9))).verb("list")]);
    let cache = SharedCache::<ConfigMap>::default();
    let health = env.fill(&cache, Scope::everywhere());
    tokio::time::sleep(Duration::from_secs(5)).await;
    env.create("later").await;
    env.cluster().compact();
    cache.synced().await;
    assert_eq!(shown(&cache), stored(&env).await);
    assert_eq!(
        (env.request_counts().0, health.stats().lists, health.stats().failures),
        (3, 1, 0)
    );
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn repeated_events_are_delivered_once() {
    let env = simulated();
    env.inject([Rule::at(1, Fault::DuplicateEvents).verb("watch")]);
    let (cache, changes, _) = env.recorded().await;
    env.create("a").await;
    env.put("a", "x").await;
    env.delete("a").await;
    env.create("end").await;
    until(|| shown(&cache).contains_key("end")).await;
    assert_eq!(
        changes.lock()[..],
        ["synced", "a added", "a changed", "a deleted", "end added"]
    );
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn retry_after_of_the_server_is_respected() {
    let env = simulated();
    let later = Fault::Refused {
        code: 429,
        retry_after: Some(17),
    };
    env.inject([Rule::at(1, later).verb("list")]);
    let start = Instant::now();
    let (_cache, health) = env.synced().await;
    let waited = start.elapsed();
    assert!(
        waited >= Duration::from_secs(17) && waited < Duration::from_secs(18),
        "{waited:?}"
    );
    assert_eq!((env.request_counts().0, health.stats().failures), (2, 1));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn outage_shows_in_the_health_costs_few_requests_and_ends_without_a_list() {
    let env = simulated();
    let (cache, health) = env.synced().await;
    // The next renewal fails.
    env.inject([Rule::random(1000, Fault::refused(503))]);
    tokio::time::sleep(Duration::from_mins(60)).await;
    assert!(!health.is_alive() && health.silent_for() > Duration::from_mins(25));
    assert!(health.last_error().unwrap().contains("503") || health.stats().failures > 9);
    let (lists, watches) = env.request_counts();
    assert!(lists == 1 && (60..140).contains(&watches), "{lists} {watches}");
    env.inject([]);
    env.create("a").await;
    let late = until(|| shown(&cache).len() == 1).await;
    assert!(late <= Duration::from_secs(31) && health.is_alive(), "{late:?}");
    assert_eq!((env.request_counts().0, health.last_error()), (1, None));
    env.stop().await;
}
