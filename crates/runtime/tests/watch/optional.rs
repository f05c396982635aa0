//! Kinds that need not be installed, and that need not be permitted.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_runtime::cache::{SharedCache, Unwatched};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::watch::{Scope, Watch, WatchHealth};
use metal3_sim_faults::{Fault, Rule};
use tokio::time::timeout;

use crate::setup::{Reading, TestEnv, key, shown, simulated, until};

const NOT_SERVED: u16 = 404;
const NOT_PERMITTED: u16 = 403;

/// Every list and watch is refused.
fn refused(code: u16) -> [Rule; 2] {
    ["list", "watch"].map(|verb| Rule::random(1000, Fault::refused(code)).verb(verb))
}

fn optional(env: &TestEnv) -> (SharedCache<ConfigMap>, WatchHealth) {
    let cache = SharedCache::default();
    let (client, scope) = (env.cache_client(), Scope::everywhere());
    let watch = Watch::whole::<Reading>(client, cache.clone(), &(), scope, env.clock());
    (cache, env.run(watch.optional()))
}

#[tokio::test(start_paused = true)]
async fn optional_kind_that_is_refused_from_the_start_holds_nothing_and_is_watched_once_it_can_be() {
    for (code, unwatched, seen) in [
        (NOT_SERVED, Unwatched::NotServed, Observed::Absent),
        (
            NOT_PERMITTED,
            Unwatched::NotPermitted,
            Observed::Unknown(UnknownReason::NotPermitted),
        ),
    ] {
        let env = simulated();
        env.create("a").await;
        env.inject(refused(code));
        let (cache, health) = optional(&env);
        timeout(Duration::from_secs(10), cache.synced()).await.unwrap();
        assert_eq!((cache.find(&key("a")), health.unwatched()), (seen, Some(unwatched)));
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(cache.is_synced() && health.is_alive());
        let (lists, watches) = env.request_counts();
        assert!((50..70).contains(&lists) && watches == 0, "{lists} {watches}");
        env.inject([]);
        let late = until(|| shown(&cache).len() == 1).await;
        assert!(late <= Duration::from_secs(61), "{late:?}");
        assert_eq!(health.unwatched(), None);
        env.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn optional_kind_that_is_refused_later_keeps_the_process_alive_and_is_unknown_if_it_may_exist() {
    let not_permitted = || Observed::Unknown(UnknownReason::NotPermitted);
    for (code, unwatched, kept, missing) in [
        (
            NOT_SERVED,
            Unwatched::NotServed,
            Observed::Present(()),
            Observed::Absent,
        ),
        (NOT_PERMITTED, Unwatched::NotPermitted, not_permitted(), not_permitted()),
    ] {
        let env = simulated();
        env.create("a").await;
        let (cache, health) = optional(&env);
        cache.synced().await;
        // The next renewal fails.
        env.inject(refused(code));
        tokio::time::sleep(Duration::from_hours(2)).await;
        assert_eq!((health.unwatched(), health.is_alive()), (Some(unwatched), true));
        assert_eq!(cache.find(&key("a")).map(drop), kept);
        assert_eq!(cache.find(&key("b")).map(drop), missing);
        env.inject([]);
        env.create("b").await;
        let late = until(|| shown(&cache).len() == 2).await;
        assert!(late <= Duration::from_secs(61), "{late:?}");
        env.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn optional_kind_that_is_refused_for_a_moment_is_waited_for() {
    let env = simulated();
    env.create("a").await;
    env.inject([1, 2].map(|nth| Rule::at(nth, Fault::refused(NOT_PERMITTED)).verb("list")));
    let (cache, _) = optional(&env);
    cache.synced().await;
    assert!(matches!(cache.find(&key("a")), Observed::Present(_)));
    env.stop().await;
}

/// A server that starts refuses connections first, and then for a moment what it permits later.
#[tokio::test(start_paused = true)]
async fn optional_kind_that_is_refused_once_after_an_outage_is_waited_for() {
    let env = simulated();
    env.create("a").await;
    let answers = [503, 503, 503, 503, NOT_PERMITTED, 503, NOT_PERMITTED];
    env.inject(
        (1..)
            .zip(answers)
            .map(|(nth, code)| Rule::at(nth, Fault::refused(code)).verb("list")),
    );
    let (cache, health) = optional(&env);
    cache.synced().await;
    assert_eq!(health.unwatched(), None);
    assert!(matches!(cache.find(&key("a")), Observed::Present(_)));
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn required_kind_that_is_refused_is_waited_for_and_ends_the_process() {
    for code in [NOT_SERVED, NOT_PERMITTED] {
        let env = simulated();
        env.inject(refused(code));
        let cache = SharedCache::<ConfigMap>::default();
        let health = env.fill(&cache, Scope::everywhere());
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(
            (cache.is_synced(), health.is_alive(), health.unwatched()),
            (false, false, None)
        );
        env.stop().await;
    }
}
