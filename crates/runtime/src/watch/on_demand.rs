//! Watches of what somebody asks for, while somebody does: kinds that others define, Nodes of other clusters.
//!
//! Each has a [`WatchSource`], which may lead nowhere, or be lost later. It does not know what is at its end, nor who waits.
//!
//! Invariants:
//! - A watch begins with the first who waits for it and ends with the last.
//! - What is in the way is told, whether it was there from the beginning or came later: who looks at a cache beside a
//!   error knows that it may be old. It stands until the server serves the watch again.
//! - Who waits is woken when that changes, and by each change of an object that is of interest; a error that goes on
//!   wakes nobody.
//! - While the way stays the same the watch goes on by its own backoff, however long it fails.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube_core::Resource;
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::health::{Failing, WatchHealth};
use super::task::Watch;
use crate::cache::{Change, Key, SharedCache};

/// How long a server may be away, as one that is restarted, before its watch is said to fail. What it refuses for good
/// is said at once.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a watch that failed must last before it is trusted again.
const STEADY: Duration = Duration::from_secs(5);

/// Called with the key of whoever has something to look at.
pub type WakeFn = Box<dyn Fn(&Key) + Send + Sync>;

/// The way to what is watched on demand.
pub trait WatchSource: Send + Sync + 'static {
    /// What is asked for.
    type Name: Ord + Clone + fmt::Debug + Send + Sync + 'static;
    /// The objects there.
    type Object: Resource + DeserializeOwned + Send + Sync + 'static;
    /// What somebody waits for there.
    type Interest: Clone + Send + Sync + 'static;
    /// Where it leads. While that is the same, the watch goes on.
    type Target: Clone + PartialEq + Send + Sync;
    /// What is in the target.
    type Error: Clone + PartialEq + Send + Sync;

    /// How often a way is looked for that is not there. Nothing tells when it is.
    const RETRY: Duration;

    /// Looks for the target.
    fn resolve(&self, name: &Self::Name) -> impl Future<Output = Result<Self::Target, Self::Error>> + Send;

    /// The watch of what is there.
    fn watch(&self, target: &Self::Target, cache: SharedCache<Self::Object>) -> Watch<Self::Object>;

    /// What is in the way of a watch that fails.
    fn error(&self, target: &Self::Target, failing: Failing) -> Self::Error;

    /// Whom a change is news for. It is judged once, however many wait.
    fn concerns(change: &Change<'_, Self::Object>) -> impl Fn(&Self::Interest) -> bool;
}

/// What is known of something that is asked for.
pub struct WatchedCache<R: WatchSource> {
    /// Its objects. With a error, what they were.
    pub cache: SharedCache<R::Object>,
    /// The way to it, once it was found.
    pub target: Option<R::Target>,
    /// What is in the target.
    pub error: Option<R::Error>,
}

impl<R: WatchSource> fmt::Debug for WatchedCache<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedCache").finish_non_exhaustive()
    }
}

/// One watch that somebody waits for.
struct Link<R: WatchSource> {
    waiters: BTreeMap<Key, R::Interest>,
    cache: SharedCache<R::Object>,
    target: Option<R::Target>,
    error: Option<R::Error>,
    stop: CancellationToken,
}

struct Links<R: WatchSource> {
    of: BTreeMap<R::Name, Link<R>>,
    wake: Option<Arc<WakeFn>>,
}

/// A link that was just made.
struct Begun<R: WatchSource> {
    name: R::Name,
    cache: SharedCache<R::Object>,
    stop: CancellationToken,
}

/// Watches that begin with the first question and end with the last.
pub struct OnDemand<R: WatchSource> {
    source: R,
    links: Arc<Mutex<Links<R>>>,
    begin: UnboundedSender<Begun<R>>,
    begun: Mutex<Option<UnboundedReceiver<Begun<R>>>>,
}

impl<R: WatchSource> fmt::Debug for OnDemand<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = lock(&self.links);
        f.debug_struct("OnDemand").field("names", &links.of.keys()).finish()
    }
}

fn lock<R: WatchSource>(links: &Mutex<Links<R>>) -> MutexGuard<'_, Links<R>> {
    links.lock()
}

/// Wakes those of the waiters who are concerned.
fn wake<R: WatchSource>(links: &Mutex<Links<R>>, name: &R::Name, is_concerned: impl Fn(&R::Interest) -> bool) {
    let (waiters, wake) = {
        let links = lock(links);
        let waiting = links.of.get(name).into_iter().flat_map(|link| &link.waiters);
        let concerned = waiting.filter(|(_, interest)| is_concerned(interest));
        let waiters: Vec<Key> = concerned.map(|(waiter, _)| waiter.clone()).collect();
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
        let (begin, begun) = unbounded_channel();
        let links = Links {
            of: BTreeMap::new(),
            wake: None,
        };
        Self {
            source,
            links: Arc::new(Mutex::new(links)),
            begin,
            begun: Mutex::new(Some(begun)),
        }
    }

    /// The way to what is watched.
    pub const fn source(&self) -> &R {
        &self.source
    }

    /// From now on those who wait are woken this target.
    pub fn set_wake(&self, wake: WakeFn) {
        lock(&self.links).wake = Some(Arc::new(wake));
    }

    /// Lets `waiter` wait for exactly these.
    pub fn set_interest(&self, waiter: &Key, wanted: &BTreeMap<R::Name, R::Interest>) {
        let mut links = lock(&self.links);
        links.of.retain(|name, link| {
            let is_wanted = wanted.contains_key(name);
            if !is_wanted {
                link.waiters.remove(waiter);
            }
            let is_idle = link.waiters.is_empty() && !is_wanted;
            if is_idle {
                link.stop.cancel();
            }
            !is_idle
        });
        for (name, interest) in wanted {
            let link = links.of.entry(name.clone()).or_insert_with(|| self.begin(name));
            link.waiters.insert(waiter.clone(), interest.clone());
        }
    }

    /// What is known of something that somebody [waits for](Self::set_interest).
    pub fn get(&self, name: &R::Name) -> Option<WatchedCache<R>> {
        let links = lock(&self.links);
        links.of.get(name).map(|link| WatchedCache {
            cache: link.cache.clone(),
            target: link.target.clone(),
            error: link.error.clone(),
        })
    }

    /// Keeps the watches that are wanted, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        let begun = self.begun.lock().take();
        let Some(mut begun) = begun else { return };
        let mut links = FuturesUnordered::new();
        let keeping = async {
            loop {
                tokio::select! {
                    biased;
                    Some(begun) = begun.recv() => links.push(self.keep(begun)),
                    Some(()) = links.next(), if !links.is_empty() => {}
                    else => return,
                }
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    /// A link that nobody has asked for yet.
    fn begin(&self, name: &R::Name) -> Link<R> {
        let (cache, stop) = (SharedCache::default(), CancellationToken::new());
        let (links, of) = (Arc::downgrade(&self.links), name.clone());
        cache.subscribe(move |change: &Change<'_, R::Object>| {
            if let Some(links) = links.upgrade() {
                wake(&links, &of, R::concerns(change));
            }
        });
        // Nobody listens only when this program ends.
        let _ = self.begin.send(Begun {
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

    /// Finds the way and watches, while somebody waits.
    async fn keep(&self, Begun { name, cache, stop }: Begun<R>) {
        let keeping = async {
            let mut target = self.search(&name).await;
            loop {
                self.leads(&name, target.clone());
                let watch = self.source.watch(&target, cache.clone());
                let health = watch.health();
                target = tokio::select! {
                    biased;
                    () = watch.run(stop.clone()) => return,
                    other = self.mind(&name, &target, &health) => other,
                };
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    /// Looks until there is a target, and tells what is in it meanwhile.
    async fn search(&self, name: &R::Name) -> R::Target {
        loop {
            match self.source.resolve(name).await {
                Ok(target) => return target,
                Err(error) => self.tell(name, Some(error)),
            }
            sleep(R::RETRY).await;
        }
    }

    /// Tells how a watch is served, until the way is another: that one.
    async fn mind(&self, name: &R::Name, target: &R::Target, health: &WatchHealth) -> R::Target {
        let mut failing = tokio::select! {
            biased;
            () = health.served() => {
                self.tell(name, None);
                lasting(health).await
            }
            failing = lasting(health) => failing,
        };
        loop {
            let mut error = self.source.error(target, failing.clone());
            self.tell(name, Some(error.clone()));
            loop {
                match self.source.resolve(name).await {
                    Ok(found) if found != *target => return found,
                    Ok(_) => {
                        // Not the words count, which may change each time.
                        if let Some(now) = health.failing_now().filter(|now| !now.is_alike(&failing)) {
                            error = self.source.error(target, now.clone());
                            failing = now;
                        }
                        self.tell(name, Some(error.clone()));
                    }
                    Err(lost) => self.tell(name, Some(lost)),
                }
                if timeout(R::RETRY, steady(health)).await.is_ok() {
                    break;
                }
            }
            self.tell(name, None);
            failing = lasting(health).await;
        }
    }

    fn leads(&self, name: &R::Name, target: R::Target) {
        if let Some(link) = lock(&self.links).of.get_mut(name) {
            link.target = Some(target);
        }
    }

    /// Remembers what is in the target, and wakes who waits if that is news.
    fn tell(&self, name: &R::Name, error: Option<R::Error>) {
        let is_news = {
            let mut links = lock(&self.links);
            let Some(link) = links.of.get_mut(name) else { return };
            let before = std::mem::replace(&mut link.error, error);
            before != link.error
        };
        if is_news {
            wake(&self.links, name, |_| true);
        }
    }
}

/// Waits until a watch fails for longer than a server is away that is restarted.
async fn lasting(health: &WatchHealth) -> Failing {
    loop {
        let failing = health.failing().await;
        if failing.is_final || timeout(PATIENCE, health.served()).await.is_err() {
            return failing;
        }
    }
}

/// Waits until a watch that failed goes on for a while.
async fn steady(health: &WatchHealth) {
    loop {
        health.served().await;
        if timeout(STEADY, health.failing()).await.is_err() {
            return;
        }
    }
}
