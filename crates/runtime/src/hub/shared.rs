//! The hub between tasks: a lock around [`Hub`], the barrier of the writes that it does not show yet, and the news for
//! the queues.
//!
//! Store, indexes, barrier and delivery are one critical section. It does not list or watch, and it never waits inside
//! the section: [`SharedHub::synced`] waits outside.
//!
//! A write of which nobody knows what became, or that was refused because our view is old, is a [`Doubt`]: its author
//! is not given out before the one who fills the hub has read the object afresh.
//!
//! Every wait ends: the watch shows what is waited for; or the [`Keeper`] of the hub, who hears of each wait, reads the
//! object; or he cannot, and says so after a time; or there is no keeper any more. Where there is none, nobody waits.
//!
//! What a pass writes in its own name ([`SharedHub::wrote_by`], [`Writing`](super::Writing)) does not wake its own key: a plan that
//! has to look again after a write says so itself.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kube_core::Resource;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use crate::queue::{Author, Hold, Lane, Queue};
use crate::version::ResourceVersion;

use super::barrier::Barrier;
use super::change::Change;
use super::echoes::Echoes;
use super::identity::{Identity, Item, Key, Nameless};
use super::index::{Indexes, SharedIndexes};
use super::keeper::{Doubt, Keeper};
use super::section::Section;
use super::store::{Hub, Lookup};
use super::writing::Writing;

/// What a hub knows of a key, to keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<K> {
    /// The object.
    Live(Arc<K>),
    /// It exists and cannot be decoded.
    Unreadable {
        /// What is wrong with it.
        why: String,
    },
    /// It does not exist.
    Absent,
    /// The first list is not complete, so nobody can say.
    Unknown,
}

impl<K> From<Lookup<'_, K>> for Found<K> {
    fn from(lookup: Lookup<'_, K>) -> Self {
        match lookup {
            Lookup::Live(object) => Self::Live(Arc::clone(object)),
            Lookup::Unreadable { why } => Self::Unreadable { why: why.to_owned() },
            Lookup::Absent => Self::Absent,
            Lookup::Unknown => Self::Unknown,
        }
    }
}

/// A handle to the hub of one kind; clones share it.
pub struct SharedHub<K, I = ()> {
    shared: Arc<Shared<K, I>>,
}

struct Shared<K, I> {
    state: Mutex<State<K, I>>,
    /// Taken inside the lock around the state only: by subscribers, who must not take that one.
    echoes: Arc<Mutex<Echoes>>,
    is_synced: AtomicBool,
    /// It wakes those who wait in the order in which they came: a channel that is watched wakes them in random order.
    synced: Notify,
}

pub(super) struct State<K, I> {
    pub(super) hub: Hub<K, I>,
    barrier: Barrier<Hold>,
    /// Who reads doubted objects afresh. Without one nobody would end a wait, so none begins.
    keeper: Option<UnboundedSender<Doubt>>,
}

impl<K, I> State<K, I> {
    /// Tells the keeper, if there is one.
    fn tell(&self, doubt: Doubt) -> bool {
        let keeper = self.keeper.as_ref();
        keeper.is_some_and(|keeper| keeper.send(doubt).is_ok())
    }

    /// From now on `keeper` hears of doubts.
    pub(super) fn keep(&mut self, keeper: UnboundedSender<Doubt>) {
        self.keeper = Some(keeper);
    }

    /// Lets everybody go if there is no keeper any more.
    pub(super) fn unkept(&mut self) {
        if self.keeper.as_ref().is_none_or(UnboundedSender::is_closed) {
            drop(self.barrier.give_up());
        }
    }
}

impl<K, I> Clone for SharedHub<K, I> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K, I: fmt::Debug> fmt::Debug for SharedHub<K, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedHub")
            .field("synced", &self.shared.is_synced.load(Ordering::Acquire))
            .finish_non_exhaustive()
    }
}

impl<K: Resource, I: Indexes<K> + Default> Default for SharedHub<K, I> {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    hub: Hub::default(),
                    barrier: Barrier::default(),
                    keeper: None,
                }),
                echoes: Arc::default(),
                is_synced: AtomicBool::new(false),
                synced: Notify::new(),
            }),
        }
    }
}

impl<K, I> SharedHub<K, I> {
    pub(super) fn state(&self) -> Section<'_, State<K, I>> {
        Section::enter(&self.shared.state)
    }
}

impl<K: Resource, I: Indexes<K>> SharedHub<K, SharedIndexes<I>> {
    /// The indexes, for those who are inside another hub.
    #[must_use]
    pub fn indexes(&self) -> SharedIndexes<I> {
        self.read(|hub| hub.indexes().clone())
    }
}

impl<K: Resource, I: Indexes<K>> SharedHub<K, I> {
    /// Looks at store and indexes at one instant. `look` must be short: the watch waits meanwhile.
    pub fn read<T>(&self, look: impl FnOnce(&Hub<K, I>) -> T) -> T {
        look(&self.state().hub)
    }

    /// What is known of `key`.
    #[must_use]
    pub fn find(&self, key: &Key) -> Found<K> {
        self.read(|hub| hub.get(key).into())
    }

    /// Calls `subscriber` with every change from now on, whoever caused it. It must not wait, must not call back, and must
    /// not look into another hub: [`SharedIndexes`] say what it may need to know of one.
    pub fn on(&self, subscriber: impl FnMut(&Change<'_, K>) + Send + 'static) {
        self.state().hub.on(subscriber);
    }

    /// Adds to `queue` the keys that `keys` names for a change: for what is known already, and for every change from
    /// now on that is not the doing of the key itself. Lists go to the low lane.
    pub fn feed<Q, M, T>(&self, queue: &Queue<Q>, keys: M)
    where
        Q: Ord + Clone + Send + Sync + 'static,
        M: Fn(&Change<'_, K>) -> T + Send + 'static,
        T: IntoIterator<Item = Q>,
    {
        let mut state = self.state();
        state.hub.tell(|change| {
            for key in keys(change) {
                queue.add(key, Lane::Low);
            }
        });
        let (queue, echoes) = (queue.clone(), Arc::clone(&self.shared.echoes));
        state.hub.on(move |change| {
            let mut echoes = echoes.lock().unwrap_or_else(PoisonError::into_inner);
            let lane = if echoes.listing() { Lane::Low } else { Lane::High };
            for key in keys(change) {
                if !echoes.own_doing(&queue, &key) {
                    queue.add(key, lane);
                }
            }
        });
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        // Made before the look, it hears of what comes after the look.
        let synced = self.shared.synced.notified();
        if !self.shared.is_synced.load(Ordering::Acquire) {
            synced.await;
        }
    }

    /// A write of nobody's in particular, or a live read, returned this object. See [`Hub::wrote`].
    ///
    /// # Errors
    /// As [`Hub::wrote`].
    pub fn wrote(&self, object: K) -> Result<(), Nameless> {
        let identity = Identity::of(&object)?;
        let mut state = self.state();
        state.hub.wrote(object)?;
        drop(state.barrier.shown(&identity.key, &identity.version));
        Ok(())
    }

    /// A write of `author` returned this object. See [`Hub::wrote`]. Where the name is known before the answer,
    /// [`SharedHub::writing`] is better: it knows the echo that comes before the answer, too.
    ///
    /// # Errors
    /// As [`Hub::wrote`].
    pub fn wrote_by(&self, author: &Author, object: K) -> Result<(), Nameless> {
        let identity = Identity::of(&object)?;
        let mut state = self.state();
        self.answer(&mut state, author, &identity, |hub| hub.wrote(object))
    }

    /// A delete of nobody's in particular removed this object. See [`Hub::deleted`].
    pub fn deleted(&self, last: &Identity) {
        self.state().hub.deleted(last);
    }

    /// `author` is about to send a write of `object`.
    #[must_use = "the answer belongs into it"]
    pub fn writing(&self, author: &Author, object: Key) -> Writing<K, I> {
        let _state = self.state();
        let id = self.echoes(|echoes| echoes.depart(author.clone(), object.clone()));
        Writing::new(self.clone(), author.clone(), object, id)
    }

    /// From now on whoever holds this hears of doubts, and has to end them.
    pub(crate) fn keeper(&self) -> Keeper<K, I> {
        Keeper::of(self.clone())
    }

    /// Whoever waits for `object` at `version` goes on, shown or not.
    pub(crate) fn let_go(&self, object: &Key, version: &ResourceVersion) {
        drop(self.state().barrier.shown(object, version));
    }

    /// A live read, of a list as it was at `at`, found this under `key`.
    pub(crate) fn learned(&self, key: &Key, item: Option<Item<K>>, at: &ResourceVersion) -> Result<(), Nameless> {
        let mut state = self.state();
        let Some(item) = item else {
            state.hub.learned_absent(key, at);
            return Ok(());
        };
        let identity = item.identity()?;
        state.hub.learned(item)?;
        drop(state.barrier.shown(&identity.key, &identity.version));
        Ok(())
    }

    /// Keeps `author` from being given out until the hub shows `written`: for a write whose answer cannot enter the
    /// hub. Where the watch does not bring it in time, the object is read; where nobody fills the hub, nobody waits.
    pub fn hold(&self, author: &Author, written: &Identity) {
        let mut state = self.state();
        if state.hub.shows(&written.key, &written.version) {
            return;
        }
        let (object, version) = (written.key.clone(), written.version.clone());
        if !state.tell(Doubt::Late(object.clone(), version.clone())) {
            return;
        }
        let since = state.hub.version_of(written);
        self.echoes(|echoes| echoes.expect(author.clone(), written, since));
        state.barrier.hold(author.hold(), object, version);
    }

    /// How many writes the hub does not show yet.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state().barrier.len()
    }

    /// The watch says that an object is new or changed. See [`Hub::observed`].
    ///
    /// # Errors
    /// As [`Hub::observed`].
    pub fn observed(&self, item: Item<K>) -> Result<(), Nameless> {
        let seen = item.identity()?;
        let mut state = self.state();
        let carried = self.echoes(|echoes| echoes.watched(&seen));
        let entered = state.hub.observed(item);
        self.echoes(Echoes::quiet);
        drop(state.barrier.reached(&seen.version));
        carried.iter().for_each(Author::wake);
        entered
    }

    /// The watch says that an object was deleted. See [`Hub::observed_gone`].
    pub fn observed_gone(&self, last: &Identity) {
        let mut state = self.state();
        self.echoes(|echoes| echoes.gone(last));
        state.hub.observed_gone(last);
        self.echoes(Echoes::quiet);
        drop(state.barrier.reached(&last.version));
    }

    /// The watch says that nothing else happened up to `version`.
    pub fn observed_nothing_until(&self, version: ResourceVersion) {
        let mut state = self.state();
        self.echoes(|echoes| echoes.passed(&version));
        drop(state.barrier.reached(&version));
        state.hub.observed_nothing_until(version);
    }

    /// A complete list, read from a quorum, as it was at `at`. See [`Hub::listed`].
    ///
    /// # Errors
    /// As [`Hub::listed`].
    pub fn listed(&self, items: Vec<Item<K>>, at: ResourceVersion) -> Result<(), Nameless> {
        let mut state = self.state();
        let put_back = state.hub.reached().is_some_and(|reached| *reached > at);
        let until = (!put_back).then_some(&at);
        let robbed = self.echoes(|echoes| echoes.listed(until));
        let entered = state.hub.listed(items, at.clone());
        self.echoes(Echoes::quiet);
        robbed.iter().for_each(Author::wake);
        entered?;
        drop(if put_back {
            state.barrier.give_up()
        } else {
            state.barrier.reached(&at)
        });
        drop(state);
        self.shared.is_synced.store(true, Ordering::Release);
        self.shared.synced.notify_waiters();
        Ok(())
    }

    pub(super) fn doubt(state: &State<K, I>, author: &Author, object: &Key) {
        // If nobody fills the hub, the doubt ends with the message.
        state.tell(Doubt::Lost {
            object: object.clone(),
            _author: author.hold(),
        });
    }

    pub(super) fn answer(
        &self,
        state: &mut State<K, I>,
        author: &Author,
        written: &Identity,
        enter: impl FnOnce(&mut Hub<K, I>) -> Result<(), Nameless>,
    ) -> Result<(), Nameless> {
        let passed = state.hub.reached().is_some_and(|reached| *reached >= written.version);
        let since = state.hub.version_of(written);
        self.echoes(|echoes| {
            echoes.answering(author);
            if !passed {
                echoes.expect(author.clone(), written, since);
            }
        });
        let entered = enter(&mut state.hub);
        self.echoes(Echoes::quiet);
        drop(state.barrier.shown(&written.key, &written.version));
        entered
    }

    pub(super) fn echoes<T>(&self, change: impl FnOnce(&mut Echoes) -> T) -> T {
        change(&mut self.shared.echoes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
