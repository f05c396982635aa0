//! Watches on demand whose target fails or changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::plan::Observed;
use metal3_runtime::watch::{Failing, OnDemand, Scope, Watch, WatchSource};
use metal3_sim_faults::{Fault, Rule};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::setup::{Reading, TestEnv, key, simulated};

type TargetState = Result<u32, String>;

/// Resolves config maps; a test blocks or changes the target.
struct ConfigMaps {
    env: TestEnv,
    target: Arc<Mutex<TargetState>>,
    resolved: AtomicU32,
}

impl WatchSource for ConfigMaps {
    type Name = u32;
    type Waiter = Key;
    type Object = ConfigMap;
    type Interest = BTreeSet<String>;
    type Target = u32;
    type Error = String;

    const RETRY: Duration = Duration::from_mins(1);

    async fn resolve(&self, _: &u32) -> TargetState {
        self.resolved.fetch_add(1, Ordering::Relaxed);
        self.target.lock().clone()
    }

    fn watch(&self, _: &u32, cache: SharedCache<ConfigMap>) -> Watch<ConfigMap> {
        let (client, clock) = (self.env.cache_client(), self.env.clock());
        Watch::whole::<Reading>(client, cache, &(), Scope::everywhere(), clock)
    }

    fn error(&self, target: &u32, failing: Failing) -> String {
        format!("{target}: {} {:?}", failing.verb, failing.class)
    }

    fn concerns(change: &Change<'_, ConfigMap>) -> impl Fn(&BTreeSet<String>) -> bool {
        let key = change.key();
        move |names| key.as_ref().is_some_and(|key| names.contains(&key.name))
    }
}

/// Watches on demand with one key, `m0`, that waits for the config map `a`.
struct Scenario {
    maps: OnDemand<ConfigMaps>,
    target: Arc<Mutex<TargetState>>,
    woken: Arc<AtomicU32>,
}

const NAME: u32 = 7;

impl Scenario {
    fn new() -> Self {
        let target = Arc::new(Mutex::new(Ok(1)));
        let maps = OnDemand::new(ConfigMaps {
            env: simulated(),
            target: Arc::clone(&target),
            resolved: AtomicU32::new(0),
        });
        let woken = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&woken);
        maps.set_wake(Box::new(move |waiter| {
            assert_eq!(*waiter, key("m0"));
            count.fetch_add(1, Ordering::Relaxed);
        }));
        Self { maps, target, woken }
    }

    /// Executes the steps while the watches run.
    async fn run(&self, steps: impl Future<Output = ()>) {
        let stop = CancellationToken::new();
        let steps_and_stop = async {
            steps.await;
            stop.cancel();
        };
        tokio::join!(self.maps.run(stop.clone()), steps_and_stop);
    }

    fn set_interest(&self) {
        let wanted = BTreeMap::from([(NAME, BTreeSet::from(["a".to_owned()]))]);
        self.maps.set_interest(&key("m0"), &wanted);
    }

    fn clear_interest(&self) {
        self.maps.set_interest(&key("m0"), &BTreeMap::new());
    }

    fn env(&self) -> &TestEnv {
        &self.maps.source().env
    }

    fn refuse(&self, verb: &str, code: u16) {
        let refused = Fault::refused(code);
        self.env().inject([Rule::random(1000, refused).verb(verb)]);
    }

    fn error(&self) -> Option<String> {
        self.maps.get(&NAME).unwrap().error
    }

    fn found(&self, name: &str) -> Observed<Arc<ConfigMap>> {
        self.maps.get(&NAME).unwrap().cache.find(&key(name))
    }

    /// Wake-ups of the waiter since the last call.
    fn woken(&self) -> u32 {
        self.woken.swap(0, Ordering::Relaxed)
    }
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn refusal_after_the_first_list_is_reported_once_until_the_watch_is_served() {
    let scenario = Scenario::new();
    scenario.env().create("a").await;
    scenario.refuse("watch", 403);
    let steps = async {
        scenario.set_interest();
        seconds(10).await;
        assert!(matches!(scenario.found("a"), Observed::Present(_)));
        assert_eq!(scenario.error().as_deref(), Some("1: watch Some(Forbidden)"));
        assert!(scenario.woken() > 0);
        seconds(600).await;
        assert_eq!(scenario.woken(), 0, "an unchanged error wakes no waiter");
        let (lists, watches) = scenario.env().request_counts();
        assert!(lists == 1 && (20..60).contains(&watches), "{lists} {watches}");
        scenario.env().inject([]);
        seconds(40).await;
        assert_eq!((scenario.error(), scenario.woken()), (None, 1));
        seconds(3600).await;
        assert_eq!(scenario.env().request_counts().0, 1, "the watch resumes without a list");
    };
    scenario.run(steps).await;
}

#[tokio::test(start_paused = true)]
async fn restarted_server_is_no_failure_and_a_longer_outage_is() {
    let scenario = Scenario::new();
    let steps = async {
        scenario.set_interest();
        seconds(10).await;
        assert_eq!(scenario.woken(), 0);
        scenario.env().inject([Rule::random(1000, Fault::refused(503))]);
        // The next renewal fails.
        seconds(30 * 60 - 5).await;
        scenario.env().inject([]);
        seconds(40).await;
        assert_eq!((scenario.error(), scenario.woken()), (None, 0));
        scenario.refuse("watch", 503);
        seconds(31 * 60).await;
        assert_eq!(scenario.error().as_deref(), Some("1: watch Some(Server)"));
        assert_eq!(scenario.woken(), 1);
        scenario.refuse("watch", 403);
        seconds(90).await;
        assert_eq!(scenario.error().as_deref(), Some("1: watch Some(Forbidden)"));
        assert_eq!(scenario.woken(), 1, "another error wakes the waiter");
    };
    scenario.run(steps).await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_breaks_and_resumes_is_no_failure() {
    let scenario = Scenario::new();
    let broken = Rule::random(1000, Fault::WatchDropped { after: 1 }).verb("watch");
    scenario.env().inject([broken]);
    let steps = async {
        scenario.set_interest();
        for _ in 0..20 {
            seconds(30).await;
            scenario.env().create("b").await;
            scenario.env().delete("b").await;
        }
        assert_eq!((scenario.error(), scenario.woken()), (None, 0), "b has no waiter");
    };
    scenario.run(steps).await;
}

#[tokio::test(start_paused = true)]
async fn another_connection_is_used_once_the_old_one_fails_and_nodes_are_unknown_until_then() {
    let scenario = Scenario::new();
    scenario.env().create("a").await;
    let steps = async {
        scenario.set_interest();
        seconds(10).await;
        *scenario.target.lock() = Ok(2);
        seconds(60).await;
        assert_eq!(
            scenario.maps.source().resolved.load(Ordering::Relaxed),
            1,
            "the first target still works"
        );
        scenario.refuse("watch", 404);
        seconds(30 * 60).await;
        assert_eq!(scenario.maps.get(&NAME).unwrap().target, Some(2));
        assert_eq!(scenario.error().as_deref(), Some("2: watch Some(NotFound)"));
        scenario.woken();
        seconds(600).await;
        assert_eq!(scenario.woken(), 0, "a list between rejected watches is no recovery");
        *scenario.target.lock() = Err("it is deleted".to_owned());
        seconds(61).await;
        assert_eq!(scenario.error().as_deref(), Some("it is deleted"));
        *scenario.target.lock() = Ok(3);
        scenario.env().inject([]);
        seconds(61).await;
        assert_eq!(scenario.error(), None);
    };
    scenario.run(steps).await;
}

#[tokio::test(start_paused = true)]
async fn missing_target_is_resolved_again_and_found() {
    let scenario = Scenario::new();
    *scenario.target.lock() = Err("target missing".to_owned());
    let steps = async {
        scenario.set_interest();
        seconds(10).await;
        assert_eq!(scenario.error().as_deref(), Some("target missing"));
        assert_eq!(scenario.woken(), 1);
        seconds(600).await;
        assert_eq!((scenario.woken(), scenario.env().request_counts()), (0, (0, 0)));
        *scenario.target.lock() = Ok(1);
        seconds(60).await;
        assert_eq!((scenario.error(), scenario.found("a")), (None, Observed::Absent));
        assert_eq!(scenario.woken(), 1);
    };
    scenario.run(steps).await;
}

#[tokio::test(start_paused = true)]
async fn renewed_interest_keeps_one_watch_and_the_last_interest_ends_it() {
    let scenario = Scenario::new();
    scenario.set_interest();
    scenario.clear_interest();
    scenario.set_interest();
    let steps = async {
        seconds(10).await;
        assert_eq!(scenario.env().request_counts(), (1, 1));
        scenario.env().create("a").await;
        seconds(1).await;
        assert_eq!(scenario.woken(), 1);
        scenario.clear_interest();
        assert!(scenario.maps.get(&NAME).is_none());
        scenario.env().put("a", "x").await;
        seconds(3600).await;
        assert_eq!((scenario.woken(), scenario.env().request_counts()), (0, (1, 1)));
    };
    scenario.run(steps).await;
}
