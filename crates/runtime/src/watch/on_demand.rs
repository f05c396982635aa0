//! Watches that exist while a key is interested: kinds of other projects, Nodes of other clusters.
//!
//! Each has a [`WatchSource`], which may be missing or be lost later.
//!
//! Invariants:
//! - A watch begins with the first interested key and ends with the last.
//! - An error is reported from the beginning or when it occurs: a cache with an error may be out of date. The error
//!   stays until the server serves the watch again.
//! - Interested keys are enqueued when the error changes, and by each change of an object of interest. An error that
//!   stays the same enqueues no key.
//! - While the target stays the same, the watch continues with its own back-off, however long it fails.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube_core::Resource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::health::{Failing, WatchHealth};
use super::task::Watch;
use crate::cache::{Change, Key, SharedCache};

/// How long a server may be unavailable, as during a restart, before its watch is reported as failing. A final error is
/// reported at once.
const GRACE: Duration = Duration::from_secs(20);
/// How long a watch that failed must last before it counts as served.
const RECOVERY: Duration = Duration::from_secs(5);

/// Called with an interested key that has to reconcile.
pub type WakeFn<W = Key> = Box<dyn Fn(&W) + Send + Sync>;

/// Resolves and opens on-demand watches.
pub trait WatchSource: Send + Sync + 'static {
    /// Identifies a watch.
    type Name: Ord + Clone + Send + Sync + 'static;
    /// Identifies who is interested: a key, and which controller's it is when there are several.
    type Waiter: Ord + Clone + Send + Sync + 'static;
    /// The watched kind.
    type Object: Resource + DeserializeOwned + Send + Sync + 'static;
    /// What a key is interested in.
    type Interest: Clone + Send + Sync + 'static;
    /// The resolved target. While it stays the same, the watch continues.
    type Target: Clone + PartialEq + Send + Sync;
    /// Why the target or the watch is not available.
    type Error: Clone + PartialEq + Send + Sync;

    /// How often a missing target is resolved again. No event reports that it exists.
    const RETRY: Duration;

    /// Resolves the target.
    fn resolve(&self, name: &Self::Name) -> impl Future<Output = Result<Self::Target, Self::Error>> + Send;

    /// Opens the watch.
    fn watch(&self, target: &Self::Target, cache: SharedCache<Self::Object>) -> Watch<Self::Object>;

    /// The error of a failing watch.
    fn error(&self, target: &Self::Target, failing: Failing) -> Self::Error;

    /// Which interests a change concerns. Evaluated once for all interested keys.
    fn concerns(change: &Change<'_, Self::Object>) -> impl Fn(&Self::Interest) -> bool;
}

/// The cache of an on-demand watch.
pub struct WatchedCache<R: WatchSource> {
    /// Its objects. With an error they may be out of date.
    pub cache: SharedCache<R::Object>,
    /// The target, once it was resolved.
    pub target: Option<R::Target>,
    /// The current error.
    pub error: Option<R::Error>,
}

/// One watch with its interested keys.
struct Link<R: WatchSource> {
    waiters: BTreeMap<R::Waiter, R::Interest>,
    cache: SharedCache<R::Object>,
    target: Option<R::Target>,
    error: Option<R::Error>,
    stop: CancellationToken,
}

struct Links<R: WatchSource> {
    of: BTreeMap<R::Name, Link<R>>,
    /// The names that each key is interested in, so that a change of its interests visits no other link.
    names_of: BTreeMap<R::Waiter, BTreeSet<R::Name>>,
    wake: Option<Arc<WakeFn<R::Waiter>>>,
}

impl<R: WatchSource> Links<R> {
    /// Ends the interest of a key in one name, and the watch with its last key.
    fn lose(&mut self, name: &R::Name, waiter: &R::Waiter) {
        let Some(link) = self.of.get_mut(name) else { return };
        link.waiters.remove(waiter);
        if link.waiters.is_empty() {
            link.stop.cancel();
            self.of.remove(name);
        }
    }
}

/// A link that was just created.
struct NewLink<R: WatchSource> {
    name: R::Name,
    cache: SharedCache<R::Object>,
    stop: CancellationToken,
}

/// Watches that begin with the first interested key and end with the last.
pub struct OnDemand<R: WatchSource> {
    source: R,
    links: Arc<Mutex<Links<R>>>,
    begin: UnboundedSender<NewLink<R>>,
    new_links: Mutex<Option<UnboundedReceiver<NewLink<R>>>>,
}

/// Calls the wake function for the keys whose interest matches.
fn wake<R: WatchSource>(links: &Mutex<Links<R>>, name: &R::Name, is_concerned: impl Fn(&R::Interest) -> bool) {
    let (waiters, wake) = {
        let links = links.lock();
        let waiting = links.of.get(name).into_iter().flat_map(|link| &link.waiters);
        let concerned = waiting.filter(|(_, interest)| is_concerned(interest));
        let waiters: Vec<R::Waiter> = concerned.map(|(waiter, _)| waiter.clone()).collect();
        (waiters, links.wake.clone())
    };
    if let Some(wake) = wake {
        waiters.iter().for_each(|waiter| wake(waiter));
    }
}

impl<R: WatchSource> OnDemand<R> {
    /// Nothing is watched before it [runs](Self::run).
    #[must_use]
    pub fn new(source: R) -> Self {
        let (begin, new_links) = unbounded_channel();
        let links = Links {
            of: BTreeMap::new(),
            names_of: BTreeMap::new(),
            wake: None,
        };
        Self {
            source,
            links: Arc::new(Mutex::new(links)),
            begin,
            new_links: Mutex::new(Some(new_links)),
        }
    }

    /// The source of the watches.
    pub const fn source(&self) -> &R {
        &self.source
    }

    /// Sets the function that enqueues interested keys.
    pub fn set_wake(&self, wake: WakeFn<R::Waiter>) {
        self.links.lock().wake = Some(Arc::new(wake));
    }

    /// Sets all interests of `waiter`.
    pub fn set_interest(&self, waiter: &R::Waiter, wanted: &BTreeMap<R::Name, R::Interest>) {
        let mut links = self.links.lock();
        let former = links.names_of.remove(waiter).unwrap_or_default();
        for name in former.into_iter().filter(|name| !wanted.contains_key(name)) {
            links.lose(&name, waiter);
        }
        if !wanted.is_empty() {
            links.names_of.insert(waiter.clone(), wanted.keys().cloned().collect());
        }
        for (name, interest) in wanted {
            let link = links.of.entry(name.clone()).or_insert_with(|| self.begin(name));
            link.waiters.insert(waiter.clone(), interest.clone());
        }
    }

    /// The cache of a watch with an [interested](Self::set_interest) key.
    pub fn get(&self, name: &R::Name) -> Option<WatchedCache<R>> {
        let links = self.links.lock();
        links.of.get(name).map(|link| WatchedCache {
            cache: link.cache.clone(),
            target: link.target.clone(),
            error: link.error.clone(),
        })
    }

    /// Runs the watches with interested keys, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        let new_links = self.new_links.lock().take();
        let Some(mut new_links) = new_links else { return };
        let mut links = FuturesUnordered::new();
        let keeping = async {
            loop {
                tokio::select! {
                    biased;
                    Some(new_links) = new_links.recv() => links.push(self.keep(new_links)),
                    Some(()) = links.next(), if !links.is_empty() => {}
                    else => return,
                }
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    /// A new link without interested keys.
    fn begin(&self, name: &R::Name) -> Link<R> {
        let (cache, stop) = (SharedCache::default(), CancellationToken::new());
        let (links, of) = (Arc::downgrade(&self.links), name.clone());
        cache.subscribe(move |change: &Change<'_, R::Object>| {
            if let Some(links) = links.upgrade() {
                wake(&links, &of, R::concerns(change));
            }
        });
        // There is no receiver only when the program ends.
        let _ = self.begin.send(NewLink {
            name: name.clone(),
            cache: cache.clone(),
            stop: stop.clone(),
        });
        Link {
            waiters: BTreeMap::new(),
            cache,
            target: None,
            error: None,
            stop,
        }
    }

    /// Resolves the target and watches, while a key is interested.
    async fn keep(&self, NewLink { name, cache, stop }: NewLink<R>) {
        let keeping = async {
            let mut target = self.resolve_with_retries(&name).await;
            loop {
                self.set_target(&name, target.clone());
                let watch = self.source.watch(&target, cache.clone());
                let health = watch.health();
                target = tokio::select! {
                    biased;
                    () = watch.run(stop.clone()) => return,
                    other = self.supervise(&name, &target, &health) => other,
                };
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    /// Resolves until there is a target, and reports the errors meanwhile.
    async fn resolve_with_retries(&self, name: &R::Name) -> R::Target {
        loop {
            match self.source.resolve(name).await {
                Ok(target) => return target,
                Err(error) => self.set_error(name, Some(error)),
            }
            sleep(R::RETRY).await;
        }
    }

    /// Reports the state of a watch until the target changes; returns the new target.
    async fn supervise(&self, name: &R::Name, target: &R::Target, health: &WatchHealth) -> R::Target {
        let mut failing = tokio::select! {
            biased;
            () = health.served() => {
                self.set_error(name, None);
                persistent_failure(health).await
            }
            failing = persistent_failure(health) => failing,
        };
        loop {
            let mut error = self.source.error(target, failing.clone());
            self.set_error(name, Some(error.clone()));
            loop {
                match self.source.resolve(name).await {
                    Ok(found) if found != *target => return found,
                    Ok(_) => {
                        // The message may change each time and does not count.
                        if let Some(now) = health.failing_now().filter(|now| !now.is_alike(&failing)) {
                            error = self.source.error(target, now.clone());
                            failing = now;
                        }
                        self.set_error(name, Some(error.clone()));
                    }
                    Err(lost) => self.set_error(name, Some(lost)),
                }
                if timeout(R::RETRY, recovered(health)).await.is_ok() {
                    break;
                }
            }
            self.set_error(name, None);
            failing = persistent_failure(health).await;
        }
    }

    fn set_target(&self, name: &R::Name, target: R::Target) {
        if let Some(link) = self.links.lock().of.get_mut(name) {
            link.target = Some(target);
        }
    }

    /// Records the error, and wakes the interested keys if it changed.
    fn set_error(&self, name: &R::Name, error: Option<R::Error>) {
        let is_new = {
            let mut links = self.links.lock();
            let Some(link) = links.of.get_mut(name) else { return };
            let before = std::mem::replace(&mut link.error, error);
            before != link.error
        };
        if is_new {
            wake(&self.links, name, |_| true);
        }
    }
}

/// Waits until a watch fails for longer than a server restart takes.
async fn persistent_failure(health: &WatchHealth) -> Failing {
    loop {
        let failing = health.failing().await;
        if failing.is_final || timeout(GRACE, health.served()).await.is_err() {
            return failing;
        }
    }
}

/// Waits until a watch that failed is served for a while.
async fn recovered(health: &WatchHealth) {
    loop {
        health.served().await;
        if timeout(RECOVERY, health.failing()).await.is_err() {
            return;
        }
    }
}
