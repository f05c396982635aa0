//! A server, a cache and the task between them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::DateTime;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Resource};
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::clock::TimerClock;
use metal3_runtime::watch::{Scope, Watch, WatchHealth};
use metal3_sim_cluster::Cluster;
use metal3_sim_faults::{Plan, Rule};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::counters::{RequestCounts, counted};
use crate::server::Server;

metal3_runtime::role! {
    /// Reads config maps.
    pub(crate) struct Reading {
        ConfigMap: List, Watch;
    }
}

pub(crate) struct TestEnv {
    server: Server,
    namespace: String,
    request_counts: RequestCounts,
    pub(crate) api: Api<ConfigMap>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A simulated server.
pub(crate) fn simulated() -> TestEnv {
    TestEnv::on(Server::simulated(), "default".to_owned())
}

/// The real server with a separate namespace if one is configured; otherwise a simulated one.
pub(crate) async fn any_server() -> TestEnv {
    let server = Server::open().await;
    let namespace = match &server {
        Server::Simulated(_) => "default".to_owned(),
        Server::Real(client) => {
            let namespace = Namespace {
                metadata: ObjectMeta {
                    generate_name: Some("watch-".to_owned()),
                    ..ObjectMeta::default()
                },
                ..Namespace::default()
            };
            let made = Api::all(client.clone())
                .create(&PostParams::default(), &namespace)
                .await;
            made.unwrap().metadata.name.unwrap()
        }
    };
    TestEnv::on(server, namespace)
}

impl TestEnv {
    fn on(server: Server, namespace: String) -> Self {
        Self {
            api: Api::namespaced(server.client("tester"), &namespace),
            server,
            namespace,
            request_counts: RequestCounts::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// The simulated cluster; fails for a real server.
    pub(crate) fn cluster(&self) -> &Cluster {
        let simulated = match &self.server {
            Server::Simulated(cluster) => Some(cluster),
            Server::Real(_) => None,
        };
        simulated.unwrap()
    }

    /// The config maps of another namespace that every server has.
    pub(crate) fn elsewhere(&self) -> Api<ConfigMap> {
        Api::namespaced(self.server.client("tester"), "kube-system")
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::namespace(&self.namespace)
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// The client of the caches, which counts lists and watches.
    pub(crate) fn cache_client(&self) -> kube::Client {
        counted(self.server.client("cache"), &self.request_counts)
    }

    /// Waits until the condition holds; with a shorter limit on a real server.
    pub(crate) async fn until(&self, condition: impl FnMut() -> bool) -> Duration {
        let limit = match self.server {
            Server::Simulated(_) => Duration::from_hours(2),
            Server::Real(_) => Duration::from_mins(1),
        };
        timeout(limit, until(condition)).await.unwrap()
    }

    pub(crate) fn clock(&self) -> Arc<TimerClock> {
        Arc::new(TimerClock::start(DateTime::UNIX_EPOCH))
    }

    pub(crate) fn inject(&self, rules: impl IntoIterator<Item = Rule>) {
        self.cluster()
            .inject(rules.into_iter().fold(Plan::seeded(1), |plan, rule| plan.with(rule)));
    }

    /// Starts the watch of a cache.
    pub(crate) fn fill<K>(&self, cache: &SharedCache<K>, scope: Scope) -> WatchHealth
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        Reading: Permits<verb::List, K> + Permits<verb::Watch, K>,
    {
        let client = self.cache_client();
        self.run(Watch::whole::<Reading>(client, cache.clone(), &(), scope, self.clock()))
    }

    /// A cache of all config maps after its first list.
    pub(crate) async fn synced(&self) -> (SharedCache<ConfigMap>, WatchHealth) {
        let cache = SharedCache::default();
        let health = self.fill(&cache, Scope::everywhere());
        cache.synced().await;
        (cache, health)
    }

    /// The same with its changes as text.
    pub(crate) async fn recorded(&self) -> (SharedCache<ConfigMap>, Arc<Mutex<Vec<String>>>, WatchHealth) {
        let cache = SharedCache::default();
        let changes = record_changes(&cache);
        let health = self.fill(&cache, Scope::everywhere());
        cache.synced().await;
        (cache, changes, health)
    }

    pub(crate) fn run<K>(&self, watch: Watch<K>) -> WatchHealth
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: Send + Sync,
    {
        let health = watch.health();
        self.tasks.spawn(watch.run(self.stop.clone()));
        health
    }

    pub(crate) async fn create(&self, name: &str) -> ConfigMap {
        let object = config_map(name, []);
        self.api.create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn put(&self, name: &str, data: &str) -> ConfigMap {
        let patch = Patch::Merge(serde_json::json!({"data": {"k": data}}));
        self.api.patch(name, &PatchParams::default(), &patch).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Numbers of lists and watches.
    pub(crate) fn request_counts(&self) -> (u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (of(&self.request_counts.lists), of(&self.request_counts.watches))
    }

    /// Ends the tasks and waits for them.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        timeout(Duration::from_secs(1), self.tasks.wait()).await.unwrap();
    }
}

pub(crate) fn config_map<const N: usize>(name: &str, labels: [(&str, &str); N]) -> ConfigMap {
    let labels: BTreeMap<String, String> = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels).filter(|labels| !labels.is_empty()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

/// Names and versions of the cached objects.
pub(crate) fn shown<K: Resource>(cache: &SharedCache<K>) -> BTreeMap<String, u64> {
    let entry = |key: &Key, object: &Arc<K>| {
        let version = object.meta().resource_version.as_ref().unwrap();
        (key.name.clone(), version.parse().unwrap())
    };
    cache.read(|cache| cache.objects().map(|(key, object)| entry(key, object)).collect())
}

pub(crate) async fn stored(env: &TestEnv) -> BTreeMap<String, u64> {
    let list = env.api.list(&kube::api::ListParams::default()).await.unwrap();
    let objects = list.items.into_iter().map(|object| object.metadata);
    objects
        .map(|meta| (meta.name.unwrap(), meta.resource_version.unwrap().parse().unwrap()))
        .collect()
}

/// Waits until the condition holds, and returns the elapsed time.
pub(crate) async fn until(mut condition: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_hours(2), wait).await.unwrap();
    start.elapsed()
}

/// Records the changes of a cache, as text. Fails when an object returns to an older version.
pub(crate) fn record_changes(cache: &SharedCache<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let changes = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&changes);
    let version = |object: &ConfigMap| -> u64 { object.metadata.resource_version.as_ref().unwrap().parse().unwrap() };
    cache.subscribe(move |change| {
        let text = match change {
            Change::Applied { old, new, .. } => {
                assert!(
                    old.is_none_or(|old| version(old) < version(new)),
                    "went back: {old:?} {new:?}"
                );
                format!(
                    "{} {}",
                    Key::of(*new).name,
                    if old.is_some() { "changed" } else { "added" }
                )
            }
            Change::Unreadable { key, .. } => format!("{} unreadable", key.name),
            Change::Deleted { key, .. } => format!("{} deleted", key.name),
            Change::Synced => "synced".to_owned(),
        };
        sink.lock().push(text);
    });
    changes
}
