//! What is watched while somebody asks for it, when the way there is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_runtime::cache::{Change, SharedCache};
use metal3_runtime::plan::Observed;
use metal3_runtime::watch::{Failing, OnDemand, Scope, Watch, WatchSource};
use metal3_sim_faults::{Fault, Rule};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::world::{Reading, World, key, world};

type TargetState = Result<u32, String>;

/// The way to config maps, which a test may block or change.
struct ConfigMaps {
    world: World,
    way: Arc<Mutex<TargetState>>,
    looked: AtomicU32,
}

impl WatchSource for ConfigMaps {
    type Name = u32;
    type Object = ConfigMap;
    type Interest = BTreeSet<String>;
    type Target = u32;
    type Error = String;

    const RETRY: Duration = Duration::from_mins(1);

    async fn resolve(&self, _: &u32) -> TargetState {
        self.looked.fetch_add(1, Ordering::Relaxed);
        self.way.lock().clone()
    }

    fn watch(&self, _: &u32, cache: SharedCache<ConfigMap>) -> Watch<ConfigMap> {
        let (client, clock) = (self.world.cache_client(), self.world.clock());
        Watch::whole::<Reading>(client, cache, &(), Scope::everywhere(), clock)
    }

    fn error(&self, way: &u32, failing: Failing) -> String {
        format!("{way}: {} {:?}", failing.verb, failing.class)
    }

    fn concerns(change: &Change<'_, ConfigMap>) -> impl Fn(&BTreeSet<String>) -> bool {
        let key = change.key();
        move |names| key.as_ref().is_some_and(|key| names.contains(&key.name))
    }
}

/// One who waits for the config map `a`, and what is heard of it.
struct Scene {
    maps: OnDemand<ConfigMaps>,
    way: Arc<Mutex<TargetState>>,
    woken: Arc<AtomicU32>,
}

const NAME: u32 = 7;

impl Scene {
    fn new() -> Self {
        let way = Arc::new(Mutex::new(Ok(1)));
        let maps = OnDemand::new(ConfigMaps {
            world: world(),
            way: Arc::clone(&way),
            looked: AtomicU32::new(0),
        });
        let woken = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&woken);
        maps.set_wake(Box::new(move |waiter| {
            assert_eq!(*waiter, key("m0"));
            count.fetch_add(1, Ordering::Relaxed);
        }));
        Self { maps, way, woken }
    }

    /// Plays while the watches are kept.
    async fn play(&self, steps: impl Future<Output = ()>) {
        let stop = CancellationToken::new();
        let until_its_end = async {
            steps.await;
            stop.cancel();
        };
        tokio::join!(self.maps.run(stop.clone()), until_its_end);
    }

    fn set_interest(&self) {
        let wanted = BTreeMap::from([(NAME, BTreeSet::from(["a".to_owned()]))]);
        self.maps.set_interest(&key("m0"), &wanted);
    }

    fn clear_interest(&self) {
        self.maps.set_interest(&key("m0"), &BTreeMap::new());
    }

    fn world(&self) -> &World {
        &self.maps.source().world
    }

    fn refuse(&self, verb: &str, code: u16) {
        let refused = Fault::Refused {
            code,
            retry_after: None,
        };
        self.world().suffer([Rule::random(1000, refused).verb(verb)]);
    }

    fn trouble(&self) -> Option<String> {
        self.maps.get(&NAME).unwrap().error
    }

    fn found(&self, name: &str) -> Observed<Arc<ConfigMap>> {
        self.maps.get(&NAME).unwrap().cache.find(&key(name))
    }

    /// How often the one who waits was woken since the last question.
    fn woken(&self) -> u32 {
        self.woken.swap(0, Ordering::Relaxed)
    }
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_after_the_first_list_is_told_once_until_it_is_served_again() {
    let scene = Scene::new();
    scene.world().create("a").await;
    scene.refuse("watch", 403);
    let steps = async {
        scene.set_interest();
        seconds(10).await;
        assert!(matches!(scene.found("a"), Observed::Present(_)));
        assert_eq!(scene.trouble().as_deref(), Some("1: watch Some(Forbidden)"));
        assert!(scene.woken() > 0);
        seconds(600).await;
        assert_eq!(scene.woken(), 0, "a trouble that goes on is no news");
        let (lists, watches) = scene.world().asked();
        assert!(lists == 1 && (20..60).contains(&watches), "{lists} {watches}");
        scene.world().suffer([]);
        seconds(40).await;
        assert_eq!((scene.trouble(), scene.woken()), (None, 1));
        seconds(3600).await;
        assert_eq!(scene.world().asked().0, 1, "the watch goes on where it was");
    };
    scene.play(steps).await;
}

#[tokio::test(start_paused = true)]
async fn server_that_is_started_anew_is_no_trouble_and_one_that_stays_away_is() {
    let scene = Scene::new();
    let steps = async {
        scene.set_interest();
        seconds(10).await;
        assert_eq!(scene.woken(), 0);
        scene.world().suffer([Rule::random(
            1000,
            Fault::Refused {
                code: 503,
                retry_after: None,
            },
        )]);
        // The next renewal finds nobody there.
        seconds(30 * 60 - 5).await;
        scene.world().suffer([]);
        seconds(40).await;
        assert_eq!((scene.trouble(), scene.woken()), (None, 0));
        scene.refuse("watch", 503);
        seconds(31 * 60).await;
        assert_eq!(scene.trouble().as_deref(), Some("1: watch Some(Server)"));
        assert_eq!(scene.woken(), 1);
        scene.refuse("watch", 403);
        seconds(90).await;
        assert_eq!(scene.trouble().as_deref(), Some("1: watch Some(Forbidden)"));
        assert_eq!(scene.woken(), 1, "another trouble is news");
    };
    scene.play(steps).await;
}

#[tokio::test(start_paused = true)]
async fn watch_that_breaks_and_goes_on_is_no_trouble() {
    let scene = Scene::new();
    let broken = Rule::random(1000, Fault::WatchDropped { after: 1 }).verb("watch");
    scene.world().suffer([broken]);
    let steps = async {
        scene.set_interest();
        for _ in 0..20 {
            seconds(30).await;
            scene.world().create("b").await;
            scene.world().delete("b").await;
        }
        assert_eq!((scene.trouble(), scene.woken()), (None, 0), "nobody waits for b");
    };
    scene.play(steps).await;
}

#[tokio::test(start_paused = true)]
async fn another_way_is_taken_once_the_old_one_fails_and_what_was_seen_is_old_until_then() {
    let scene = Scene::new();
    scene.world().create("a").await;
    let steps = async {
        scene.set_interest();
        seconds(10).await;
        *scene.way.lock() = Ok(2);
        seconds(60).await;
        assert_eq!(scene.maps.source().looked.load(Ordering::Relaxed), 1, "all is well");
        scene.refuse("watch", 404);
        seconds(30 * 60).await;
        assert_eq!(scene.maps.get(&NAME).unwrap().target, Some(2));
        assert_eq!(scene.trouble().as_deref(), Some("2: watch Some(NotFound)"));
        scene.woken();
        seconds(600).await;
        assert_eq!(
            scene.woken(),
            0,
            "a list that is served between refused watches is no cure"
        );
        *scene.way.lock() = Err("it is gone".to_owned());
        seconds(61).await;
        assert_eq!(scene.trouble().as_deref(), Some("it is gone"));
        *scene.way.lock() = Ok(3);
        scene.world().suffer([]);
        seconds(61).await;
        assert_eq!(scene.trouble(), None);
    };
    scene.play(steps).await;
}

#[tokio::test(start_paused = true)]
async fn way_that_is_not_there_is_looked_for_and_found() {
    let scene = Scene::new();
    *scene.way.lock() = Err("it is not there".to_owned());
    let steps = async {
        scene.set_interest();
        seconds(10).await;
        assert_eq!(scene.trouble().as_deref(), Some("it is not there"));
        assert_eq!(scene.woken(), 1);
        seconds(600).await;
        assert_eq!((scene.woken(), scene.world().asked()), (0, (0, 0)));
        *scene.way.lock() = Ok(1);
        seconds(60).await;
        assert_eq!((scene.trouble(), scene.found("a")), (None, Observed::Absent));
        assert_eq!(scene.woken(), 1);
    };
    scene.play(steps).await;
}

#[tokio::test(start_paused = true)]
async fn who_asks_anew_at_once_is_watched_for_once_and_the_last_ends_it() {
    let scene = Scene::new();
    scene.set_interest();
    scene.clear_interest();
    scene.set_interest();
    let steps = async {
        seconds(10).await;
        assert_eq!(scene.world().asked(), (1, 1));
        scene.world().create("a").await;
        seconds(1).await;
        assert_eq!(scene.woken(), 1);
        scene.clear_interest();
        assert!(scene.maps.get(&NAME).is_none());
        scene.world().put("a", "x").await;
        seconds(3600).await;
        assert_eq!((scene.woken(), scene.world().asked()), (0, (1, 1)));
    };
    scene.play(steps).await;
}
