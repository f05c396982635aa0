//! The cache between tasks: a lock around [`Cache`], the barrier of writes that it does not have yet, and the delivery
//! of changes to queues.
//!
//! Store, indexes, barrier and delivery are one critical section. It does not list or watch, and it never waits inside
//! the section; [`SharedCache::synced`] waits outside.
//!
//! A write with an unknown outcome, or one that was rejected because the cached object was out of date, is an
//! [`UncertainWrite`]: the queue does not hand out its source before the refresher of the cache has read the object again.
//!
//! Every wait ends: the watch delivers the version; the refresher reads the object; it cannot, and ends the
//! wait after a time; or there is no refresher. Without a refresher no wait begins.
//!
//! A write that a reconcile makes ([`CacheWrite`](super::CacheWrite)) does not enqueue its own key: a plan that needs
//! another reconcile after a write requeues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube_core::Resource;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::plan::Observed;
use crate::queue::{Hold, Lane, Queue, RequestSource};
use crate::version::ResourceVersion;

use super::barrier::Barrier;
use super::change::Change;
use super::identity::{Identity, Item, Key, MissingMetadata};
use super::index::{Indexes, SharedIndexes};
use super::own_writes::OwnWrites;
use super::section::Section;
use super::store::Cache;
use super::uncertain::UncertainWrite;
use super::unwatched::Unwatched;

/// A handle to the cache of one kind; clones share it.
pub struct SharedCache<K, I = ()> {
    shared: Arc<Shared<K, I>>,
}

struct Shared<K, I> {
    state: Mutex<State<K, I>>,
    /// Taken inside the lock of the state only, by subscribers, which must not take that lock.
    own_writes: Arc<Mutex<OwnWrites>>,
    is_synced: AtomicBool,
    /// It wakes waiting tasks in order; a watch channel wakes them in random order.
    synced: Notify,
}

pub(super) struct State<K, I> {
    pub(super) cache: Cache<K, I>,
    barrier: Barrier<Hold>,
    /// Passes uncertain writes to the refresher. Without a refresher no wait would end, so none begins.
    refresher: Option<UnboundedSender<UncertainWrite>>,
}

impl<K, I> State<K, I> {
    /// Passes an uncertain write to the refresher, if there is one.
    fn notify_refresher(&self, write: UncertainWrite) -> bool {
        let refresher = self.refresher.as_ref();
        refresher.is_some_and(|refresher| refresher.send(write).is_ok())
    }

    /// Sets the refresher that receives uncertain writes.
    pub(super) fn set_refresher(&mut self, refresher: UnboundedSender<UncertainWrite>) {
        self.refresher = Some(refresher);
    }

    /// Ends all waits if there is no refresher any more.
    pub(super) fn refresher_dropped(&mut self) {
        if self.refresher.as_ref().is_none_or(UnboundedSender::is_closed) {
            drop(self.barrier.release_all());
        }
    }
}

impl<K, I> Clone for SharedCache<K, I> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Resource, I: Indexes<K> + Default> Default for SharedCache<K, I> {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    cache: Cache::default(),
                    barrier: Barrier::default(),
                    refresher: None,
                }),
                own_writes: Arc::default(),
                is_synced: AtomicBool::new(false),
                synced: Notify::new(),
            }),
        }
    }
}

impl<K, I> SharedCache<K, I> {
    pub(super) fn state(&self) -> Section<'_, State<K, I>> {
        Section::enter(&self.shared.state)
    }
}

impl<K: Resource, I: Indexes<K>> SharedCache<K, SharedIndexes<I>> {
    /// The indexes, for subscribers of another cache.
    #[must_use]
    pub fn indexes(&self) -> SharedIndexes<I> {
        self.read(|cache| cache.indexes().clone())
    }
}

impl<K: Resource, I: Indexes<K>> SharedCache<K, I> {
    /// Reads store and indexes at one instant. `read` must be short: the watch waits meanwhile.
    pub fn read<T>(&self, read: impl FnOnce(&Cache<K, I>) -> T) -> T {
        read(&self.state().cache)
    }

    /// The object under `key`.
    #[must_use]
    pub fn find(&self, key: &Key) -> Observed<Arc<K>> {
        self.read(|cache| cache.get(key).map(Arc::clone))
    }

    /// Calls `subscriber` with each change from now on. It must not wait, call the cache or use another cache;
    /// [`SharedIndexes`] are for what it needs of another one.
    pub fn subscribe(&self, subscriber: impl FnMut(&Change<'_, K>) + Send + 'static) {
        self.state().cache.subscribe(subscriber);
    }

    /// Enqueues the keys that `keys` derives from a change: for all objects in the cache, and for each later change
    /// that the key did not make itself. Changes from lists go to the low lane.
    pub fn enqueue_changes<Q, M, T>(&self, queue: &Queue<Q>, keys: M)
    where
        Q: Ord + Clone + Send + Sync + 'static,
        M: Fn(&Change<'_, K>) -> T + Send + 'static,
        T: IntoIterator<Item = Q>,
    {
        let mut state = self.state();
        state.cache.replay(|change| {
            for key in keys(change) {
                queue.add(key, Lane::Low);
            }
        });
        let (queue, own_writes) = (queue.clone(), Arc::clone(&self.shared.own_writes));
        state.cache.subscribe(move |change| {
            let mut own_writes = own_writes.lock();
            let lane = if own_writes.is_listing() { Lane::Low } else { Lane::High };
            for key in keys(change) {
                if !own_writes.is_own_write(&queue, &key) {
                    queue.add(key, lane);
                }
            }
        });
    }

    /// Whether controllers need not wait for the first list.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.shared.is_synced.load(Ordering::Acquire)
    }

    /// Waits until the first list is complete, or an optional kind is not watched.
    pub async fn synced(&self) {
        // Created before the check, so that it does not miss a notification after it.
        let synced = self.shared.synced.notified();
        if !self.is_synced() {
            synced.await;
        }
    }

    /// A write without a source, or a live read, returned this object. See [`Cache::wrote`].
    ///
    /// # Errors
    /// As [`Cache::wrote`].
    pub fn wrote(&self, object: K) -> Result<(), MissingMetadata> {
        let identity = Identity::of(&object)?;
        let mut state = self.state();
        state.cache.wrote(object)?;
        drop(state.barrier.observed(&identity.key, &identity.version));
        Ok(())
    }

    /// A delete without a source removed this object. See [`Cache::deleted`].
    pub fn deleted(&self, last: &Identity) {
        self.state().cache.deleted(last);
    }

    /// Ends the waits for `object` at `version`.
    pub(crate) fn end_wait(&self, object: &Key, version: &ResourceVersion) {
        drop(self.state().barrier.observed(object, version));
    }

    /// A live list at `at` returned this for `key`.
    pub(crate) fn refreshed(
        &self,
        key: &Key,
        item: Option<Item<K>>,
        at: &ResourceVersion,
    ) -> Result<(), MissingMetadata> {
        let mut state = self.state();
        let Some(item) = item else {
            state.cache.refreshed_absent(key, at);
            return Ok(());
        };
        let identity = item.identity()?;
        state.cache.refreshed(item)?;
        drop(state.barrier.observed(&identity.key, &identity.version));
        Ok(())
    }

    /// Holds `source` until the cache has `written`, for a write whose response cannot enter the cache. If the watch
    /// does not deliver it in time, the object is read. Without a refresher nothing is held.
    pub fn hold(&self, source: &RequestSource, written: &Identity) {
        let mut state = self.state();
        if state.cache.shows(&written.key, &written.version) {
            return;
        }
        let (object, version) = (written.key.clone(), written.version.clone());
        if !state.notify_refresher(UncertainWrite::Late(object.clone(), version.clone())) {
            return;
        }
        let since = state.cache.version_of(written);
        self.own_writes(|own_writes| own_writes.await_event(source.clone(), written, since));
        state.barrier.hold(source.hold(), object, version);
    }

    /// The number of writes that the cache does not have yet.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state().barrier.len()
    }

    /// The watch delivered an added or modified object. See [`Cache::observed`].
    ///
    /// # Errors
    /// As [`Cache::observed`].
    pub fn observed(&self, item: Item<K>) -> Result<(), MissingMetadata> {
        let seen = item.identity()?;
        let mut state = self.state();
        let foreign = self.own_writes(|own_writes| own_writes.watched(&seen));
        let entered = state.cache.observed(item);
        self.own_writes(OwnWrites::end_delivery);
        drop(state.barrier.reached(&seen.version));
        foreign.iter().for_each(RequestSource::enqueue);
        entered
    }

    /// The watch delivered a deletion. See [`Cache::observed_deleted`].
    pub fn observed_deleted(&self, last: &Identity) {
        let mut state = self.state();
        self.own_writes(|own_writes| own_writes.gone(last));
        state.cache.observed_deleted(last);
        self.own_writes(OwnWrites::end_delivery);
        drop(state.barrier.reached(&last.version));
    }

    /// The watch delivered a bookmark. See [`Cache::observed_bookmark`].
    pub fn observed_bookmark(&self, version: ResourceVersion) {
        let mut state = self.state();
        self.own_writes(|own_writes| own_writes.passed(&version));
        drop(state.barrier.reached(&version));
        state.cache.observed_bookmark(version);
    }

    /// A complete list, read from a quorum, at `at`. See [`Cache::listed`].
    ///
    /// # Errors
    /// As [`Cache::listed`].
    pub fn listed(&self, items: Vec<Item<K>>, at: ResourceVersion) -> Result<(), MissingMetadata> {
        let mut state = self.state();
        let restored = state.cache.reached().is_some_and(|reached| *reached > at);
        let until = (!restored).then_some(&at);
        let missed = self.own_writes(|own_writes| own_writes.listed(until));
        let entered = state.cache.listed(items, at.clone());
        self.own_writes(OwnWrites::end_delivery);
        missed.iter().for_each(RequestSource::enqueue);
        entered?;
        drop(if restored {
            state.barrier.release_all()
        } else {
            state.barrier.reached(&at)
        });
        drop(state);
        self.shared.is_synced.store(true, Ordering::Release);
        self.shared.synced.notify_waiters();
        Ok(())
    }

    /// An optional kind is not listed: from now on no controller waits for its list in [`synced`](Self::synced). The first
    /// list ends this, and reports [`Change::Synced`].
    pub fn set_unwatched(&self, why: Unwatched) {
        self.state().cache.set_unwatched(why);
        self.shared.is_synced.store(true, Ordering::Release);
        self.shared.synced.notify_waiters();
    }

    pub(super) fn mark_uncertain(state: &State<K, I>, source: &RequestSource, object: &Key) {
        // Without a refresher the message is dropped, which releases the source.
        state.notify_refresher(UncertainWrite::Lost {
            object: object.clone(),
            _author: source.hold(),
        });
    }

    pub(super) fn answer(
        &self,
        state: &mut State<K, I>,
        source: &RequestSource,
        written: &Identity,
        enter: impl FnOnce(&mut Cache<K, I>) -> Result<(), MissingMetadata>,
    ) -> Result<(), MissingMetadata> {
        let passed = state.cache.reached().is_some_and(|reached| *reached >= written.version);
        let since = state.cache.version_of(written);
        self.own_writes(|own_writes| {
            own_writes.begin_response(source);
            if !passed {
                own_writes.await_event(source.clone(), written, since);
            }
        });
        let entered = enter(&mut state.cache);
        self.own_writes(OwnWrites::end_delivery);
        drop(state.barrier.observed(&written.key, &written.version));
        entered
    }

    pub(super) fn own_writes<T>(&self, change: impl FnOnce(&mut OwnWrites) -> T) -> T {
        change(&mut self.shared.own_writes.lock())
    }
}
