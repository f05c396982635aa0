//! Watches of what somebody asks for, while somebody does: kinds that others define, Nodes of other clusters.
//!
//! Each has a [`Route`], which may lead nowhere, or be lost later. It does not know what is at its end, nor who waits.
//!
//! Invariants:
//! - A watch begins with the first who waits for it and ends with the last.
//! - What is in the way is told, whether it was there from the beginning or came later: who looks at a cache beside a
//!   trouble knows that it may be old. It stands until the server serves the watch again.
//! - Who waits is woken when that changes, and by each change of an object that is of interest; a trouble that goes on
//!   wakes nobody.
//! - While the way stays the same the watch goes on by its own pace, however long it fails.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::pulse::{Failing, WatchHealth};
use super::task::Watch;
use crate::cache::{Change, Key, SharedCache};

/// How long a server may be away, as one that is restarted, before its watch is said to fail. What it refuses for good
/// is said at once.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a watch that failed must last before it is trusted again.
const STEADY: Duration = Duration::from_secs(5);

/// Called with the key of whoever has something to look at.
pub type Wake = Box<dyn Fn(&Key) + Send + Sync>;

/// The way to what is watched on demand.
pub trait Route: Send + Sync + 'static {
    /// What is asked for.
    type Name: Ord + Clone + fmt::Debug + Send + Sync + 'static;
    /// The objects there.
    type Object: Resource + DeserializeOwned + Send + Sync + 'static;
    /// What somebody waits for there.
    type Interest: Clone + Send + Sync + 'static;
    /// Where it leads. While that is the same, the watch goes on.
    type Way: Clone + PartialEq + Send + Sync;
    /// What is in the way.
    type WatchError: Clone + PartialEq + Send + Sync;

    /// How often a way is looked for that is not there. Nothing tells when it is.
    const RETRY: Duration;

    /// Looks for the way.
    fn find(&self, name: &Self::Name) -> impl Future<Output = Result<Self::Way, Self::WatchError>> + Send;

    /// The watch of what is there.
    fn watch(&self, way: &Self::Way, cache: SharedCache<Self::Object>) -> Watch<Self::Object>;

    /// What is in the way of a watch that fails.
    fn trouble(&self, way: &Self::Way, failing: Failing) -> Self::WatchError;

    /// Whom a change is news for. It is judged once, however many wait.
    fn concerns(change: &Change<'_, Self::Object>) -> impl Fn(&Self::Interest) -> bool;
}

/// What is known of something that is asked for.
pub struct Seen<R: Route> {
    /// Its objects. With a trouble, what they were.
    pub cache: SharedCache<R::Object>,
    /// The way to it, once it was found.
    pub way: Option<R::Way>,
    /// What is in the way.
    pub trouble: Option<R::WatchError>,
}

impl<R: Route> fmt::Debug for Seen<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").finish_non_exhaustive()
    }
}

/// One watch that somebody waits for.
struct Link<R: Route> {
    waiters: BTreeMap<Key, R::Interest>,
    cache: SharedCache<R::Object>,
    way: Option<R::Way>,
    trouble: Option<R::WatchError>,
    stop: CancellationToken,
}

struct Links<R: Route> {
    of: BTreeMap<R::Name, Link<R>>,
    wake: Option<Arc<Wake>>,
}

/// A link that was just made.
struct Begun<R: Route> {
    name: R::Name,
    cache: SharedCache<R::Object>,
    stop: CancellationToken,
}

/// Watches that begin with the first question and end with the last.
pub struct OnDemand<R: Route> {
    route: R,
    links: Arc<Mutex<Links<R>>>,
    begin: UnboundedSender<Begun<R>>,
    begun: Mutex<Option<UnboundedReceiver<Begun<R>>>>,
}

impl<R: Route> fmt::Debug for OnDemand<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links = lock(&self.links);
        f.debug_struct("OnDemand").field("names", &links.of.keys()).finish()
    }
}

fn lock<R: Route>(links: &Mutex<Links<R>>) -> MutexGuard<'_, Links<R>> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes those of the waiters who are concerned.
fn wake<R: Route>(links: &Mutex<Links<R>>, name: &R::Name, is_concerned: impl Fn(&R::Interest) -> bool) {
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

impl<R: Route> OnDemand<R> {
    /// Nothing is watched before it [runs](Self::run).
    #[must_use]
    pub fn new(route: R) -> Self {
        let (begin, begun) = unbounded_channel();
        let links = Links {
            of: BTreeMap::new(),
            wake: None,
        };
        Self {
            route,
            links: Arc::new(Mutex::new(links)),
            begin,
            begun: Mutex::new(Some(begun)),
        }
    }

    /// The way to what is watched.
    pub const fn route(&self) -> &R {
        &self.route
    }

    /// From now on those who wait are woken this way.
    pub fn wake_with(&self, wake: Wake) {
        lock(&self.links).wake = Some(Arc::new(wake));
    }

    /// Lets `waiter` wait for exactly these.
    pub fn attend(&self, waiter: &Key, wanted: &BTreeMap<R::Name, R::Interest>) {
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

    /// What is known of something that somebody [waits for](Self::attend).
    pub fn look(&self, name: &R::Name) -> Option<Seen<R>> {
        let links = lock(&self.links);
        links.of.get(name).map(|link| Seen {
            cache: link.cache.clone(),
            way: link.way.clone(),
            trouble: link.trouble.clone(),
        })
    }

    /// Keeps the watches that are wanted, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
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
        cache.on(move |change: &Change<'_, R::Object>| {
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
            way: None,
            trouble: None,
            stop,
        }
    }

    /// Finds the way and watches, while somebody waits.
    async fn keep(&self, Begun { name, cache, stop }: Begun<R>) {
        let keeping = async {
            let mut way = self.search(&name).await;
            loop {
                self.leads(&name, way.clone());
                let watch = self.route.watch(&way, cache.clone());
                let pulse = watch.pulse();
                way = tokio::select! {
                    biased;
                    () = watch.run(stop.clone()) => return,
                    other = self.mind(&name, &way, &pulse) => other,
                };
            }
        };
        stop.run_until_cancelled(keeping).await;
    }

    /// Looks until there is a way, and tells what is in it meanwhile.
    async fn search(&self, name: &R::Name) -> R::Way {
        loop {
            match self.route.find(name).await {
                Ok(way) => return way,
                Err(trouble) => self.tell(name, Some(trouble)),
            }
            sleep(R::RETRY).await;
        }
    }

    /// Tells how a watch is served, until the way is another: that one.
    async fn mind(&self, name: &R::Name, way: &R::Way, pulse: &WatchHealth) -> R::Way {
        let mut failing = tokio::select! {
            biased;
            () = pulse.served() => {
                self.tell(name, None);
                lasting(pulse).await
            }
            failing = lasting(pulse) => failing,
        };
        loop {
            let mut trouble = self.route.trouble(way, failing.clone());
            self.tell(name, Some(trouble.clone()));
            loop {
                match self.route.find(name).await {
                    Ok(found) if found != *way => return found,
                    Ok(_) => {
                        // Not the words count, which may change each time.
                        if let Some(now) = pulse.failing_now().filter(|now| !now.is_alike(&failing)) {
                            trouble = self.route.trouble(way, now.clone());
                            failing = now;
                        }
                        self.tell(name, Some(trouble.clone()));
                    }
                    Err(lost) => self.tell(name, Some(lost)),
                }
                if timeout(R::RETRY, steady(pulse)).await.is_ok() {
                    break;
                }
            }
            self.tell(name, None);
            failing = lasting(pulse).await;
        }
    }

    fn leads(&self, name: &R::Name, way: R::Way) {
        if let Some(link) = lock(&self.links).of.get_mut(name) {
            link.way = Some(way);
        }
    }

    /// Remembers what is in the way, and wakes who waits if that is news.
    fn tell(&self, name: &R::Name, trouble: Option<R::WatchError>) {
        let is_news = {
            let mut links = lock(&self.links);
            let Some(link) = links.of.get_mut(name) else { return };
            let before = std::mem::replace(&mut link.trouble, trouble);
            before != link.trouble
        };
        if is_news {
            wake(&self.links, name, |_| true);
        }
    }
}

/// Waits until a watch fails for longer than a server is away that is restarted.
async fn lasting(pulse: &WatchHealth) -> Failing {
    loop {
        let failing = pulse.failing().await;
        if failing.is_final || timeout(PATIENCE, pulse.served()).await.is_err() {
            return failing;
        }
    }
}

/// Waits until a watch that failed goes on for a while.
async fn steady(pulse: &WatchHealth) {
    loop {
        pulse.served().await;
        if timeout(STEADY, pulse.failing()).await.is_err() {
            return;
        }
    }
}
