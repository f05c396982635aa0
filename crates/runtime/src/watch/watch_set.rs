//! The watches of one product.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use kube::Client;
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;
use metal3_domain::clock::Clock;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::health::WatchHealth;
use super::scope::Scope;
use super::task::Watch;
use crate::access::{Permits, Role, verb};
use crate::cache::{Indexes, SharedCache};

/// What watches have in common.
#[derive(Clone)]
pub struct WatchConfig {
    /// The client of the API server.
    pub client: Client,
    /// Which objects.
    pub scope: Scope,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Stops the watches.
    pub stop: CancellationToken,
}

impl WatchConfig {
    /// For all objects.
    #[must_use]
    pub fn everywhere(client: &Client, clock: &Arc<dyn Clock>, stop: &CancellationToken) -> Self {
        Self {
            client: client.clone(),
            scope: Scope::everywhere(),
            clock: Arc::clone(clock),
            stop: stop.clone(),
        }
    }
}

/// The watches of one role, one for each kind, with their health.
pub struct WatchSet<R> {
    config: WatchConfig,
    tasks: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    health: Vec<WatchHealth>,
    synced: Vec<Arc<dyn Fn() -> bool + Send + Sync>>,
    role: PhantomData<fn() -> R>,
}

impl<R: Role> WatchSet<R> {
    /// No watch yet.
    #[must_use]
    pub fn new(config: &WatchConfig) -> Self {
        Self {
            config: config.clone(),
            tasks: Vec::new(),
            health: Vec::new(),
            synced: Vec::new(),
            role: PhantomData,
        }
    }

    /// Keeps `cache` up to date with whole objects.
    #[must_use]
    pub fn whole<K, I>(self, cache: &SharedCache<K, I>) -> Self
    where
        R: Permits<verb::List, K> + Permits<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<K> + Send + 'static,
    {
        let watch = self.watch_whole(cache);
        self.add(cache, watch)
    }

    /// Keeps `cache` up to date with whole objects of a kind that need not be installed, or permitted to this program.
    #[must_use]
    pub fn optional<K, I>(self, cache: &SharedCache<K, I>) -> Self
    where
        R: Permits<verb::List, K> + Permits<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<K> + Send + 'static,
    {
        let watch = self.watch_whole(cache).optional();
        self.add(cache, watch)
    }

    fn watch_whole<K, I>(&self, cache: &SharedCache<K, I>) -> Watch<K, I>
    where
        R: Permits<verb::List, K> + Permits<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<K> + Send + 'static,
    {
        let WatchConfig {
            client, scope, clock, ..
        } = self.config.clone();
        Watch::whole::<R>(client, cache.clone(), &(), scope, clock)
    }

    /// Keeps `cache` up to date with metadata only.
    #[must_use]
    pub fn metadata<K, I>(self, cache: &SharedCache<PartialObjectMeta<K>, I>) -> Self
    where
        R: Permits<verb::List, K> + Permits<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<PartialObjectMeta<K>> + Send + 'static,
    {
        let watch = self.watch_metadata(cache);
        self.add(cache, watch)
    }

    /// Keeps `cache` up to date with metadata only, of a kind that need not be installed, or permitted to this program.
    #[must_use]
    pub fn optional_metadata<K, I>(self, cache: &SharedCache<PartialObjectMeta<K>, I>) -> Self
    where
        R: Permits<verb::List, K> + Permits<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<PartialObjectMeta<K>> + Send + 'static,
    {
        let watch = self.watch_metadata(cache).optional();
        self.add(cache, watch)
    }

    fn watch_metadata<K, I>(&self, cache: &SharedCache<PartialObjectMeta<K>, I>) -> Watch<PartialObjectMeta<K>, I>
    where
        R: Permits<verb::List, K> + Permits<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<PartialObjectMeta<K>> + Send + 'static,
    {
        let WatchConfig {
            client, scope, clock, ..
        } = self.config.clone();
        Watch::metadata::<R>(client, cache.clone(), &(), scope, clock)
    }

    fn add<K, I>(mut self, cache: &SharedCache<K, I>, watch: Watch<K, I>) -> Self
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<K> + Send + 'static,
    {
        let cache = cache.clone();
        self.synced.push(Arc::new(move || cache.is_synced()));
        self.health.push(watch.health());
        self.tasks.push(Box::pin(watch.run(self.config.stop.clone())));
        self
    }

    /// The same with the watches of another role.
    #[must_use]
    pub fn chain<S>(mut self, other: WatchSet<S>) -> Self {
        self.tasks.extend(other.tasks);
        self.health.extend(other.health);
        self.synced.extend(other.synced);
        self
    }

    /// The health of each watch, in the order of their addition.
    #[must_use]
    pub fn health(&self) -> Vec<WatchHealth> {
        self.health.clone()
    }

    /// Whether the first list of each cache is complete, or its kind is optional and not watched.
    pub fn synced(&self) -> impl Fn() -> bool + Send + Sync + use<R> {
        let synced = self.synced.clone();
        move || synced.iter().all(|synced| synced())
    }

    /// The tasks, in the same order, to run with the controllers.
    #[must_use]
    pub fn into_tasks(self) -> Vec<Pin<Box<dyn Future<Output = ()> + Send>>> {
        self.tasks
    }
}
