//! Store, indexes and subscribers as one structure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube_core::Resource;

use crate::plan::{Observed, UnknownReason};
use crate::version::ResourceVersion;

use super::change::{Change, Subscriber, notify};
use super::identity::{Identity, Item, Key, MissingMetadata};
use super::index::Indexes;
use super::prune::prune;
use super::tombstones::Tombstones;
use super::unwatched::Unwatched;

struct Entry<K> {
    uid: String,
    version: ResourceVersion,
    form: Form<K>,
}

enum Form<K> {
    Readable(Arc<K>),
    Unreadable { last: Option<Arc<K>>, why: String },
}

impl<K> Form<K> {
    const fn decoded(&self) -> Option<&Arc<K>> {
        match self {
            Self::Readable(object) => Some(object),
            Self::Unreadable { .. } => None,
        }
    }

    fn into_last(self) -> Option<Arc<K>> {
        match self {
            Self::Readable(object) => Some(object),
            Self::Unreadable { last, .. } => last,
        }
    }
}

impl<K> Entry<K> {
    /// The last decoded form; the indexes refer to it.
    fn readable(&self) -> Option<&K> {
        match &self.form {
            Form::Readable(object) => Some(object),
            Form::Unreadable { last, .. } => last.as_deref(),
        }
    }
}

/// The objects of one kind.
pub struct Cache<K, I = ()> {
    objects: BTreeMap<Key, Entry<K>>,
    /// The keys of unreadable objects: few, and read in each reconcile.
    unreadable: BTreeSet<Key>,
    /// Own deletes that the watch has not delivered yet.
    tombstones: Tombstones,
    indexes: I,
    subscribers: Vec<Subscriber<K>>,
    /// List and watch have delivered everything up to here. `None` before the first list.
    reached: Option<ResourceVersion>,
    /// Why an optional kind is not listed. The first list ends this.
    pub(super) unwatched: Option<Unwatched>,
}

impl<K, I: Default> Default for Cache<K, I> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            tombstones: Tombstones::default(),
            indexes: I::default(),
            subscribers: Vec::new(),
            reached: None,
            unwatched: None,
        }
    }
}

impl<K: Resource, I: Indexes<K>> Cache<K, I> {
    /// Calls `subscriber` with each change from now on.
    pub fn subscribe(&mut self, subscriber: impl FnMut(&Change<'_, K>) + Send + 'static) {
        self.subscribers.push(Box::new(subscriber));
    }

    /// Calls `listener` with the changes that lead from an empty cache to this one.
    pub fn replay(&self, mut listener: impl FnMut(&Change<'_, K>)) {
        for (key, known) in &self.objects {
            let old = None;
            match &known.form {
                Form::Readable(new) => listener(&Change::Applied {
                    old,
                    new,
                    was_unreadable: false,
                }),
                Form::Unreadable { .. } => listener(&Change::Unreadable { key, old }),
            }
        }
        if self.synced() {
            listener(&Change::Synced);
        }
    }

    /// All decoded objects, in the order of their keys.
    pub fn objects(&self) -> impl Iterator<Item = (&Key, &Arc<K>)> {
        self.objects
            .iter()
            .filter_map(|(key, known)| Some((key, known.form.decoded()?)))
    }

    /// The decoded objects of a namespace. It visits no others.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<K>> {
        let rest = self.objects.range(Key::first_in(namespace)..);
        let near = rest.take_while(move |(key, _)| key.namespace == namespace);
        near.filter_map(|(_, known)| known.form.decoded())
    }

    /// The object under `key`. While the kind may not be listed, also one that was seen before is unknown: it may have changed.
    #[must_use]
    pub fn get(&self, key: &Key) -> Observed<&Arc<K>> {
        if !self.is_permitted() {
            return Observed::Unknown(UnknownReason::NotPermitted);
        }
        match self.objects.get(key).map(|known| &known.form) {
            Some(Form::Readable(object)) => Observed::Present(object),
            Some(Form::Unreadable { why, .. }) => Observed::Unknown(UnknownReason::Unreadable(why.clone())),
            None => Unwatched::observed(self.unwatched, self.reached.is_some()),
        }
    }

    /// The indexes. They contain the last decoded form of each object, so an empty result proves nothing while
    /// [`Cache::unreadable`] is not empty.
    pub const fn indexes(&self) -> &I {
        &self.indexes
    }

    /// The keys of unreadable objects.
    pub fn unreadable(&self) -> impl Iterator<Item = &Key> {
        self.unreadable.iter()
    }

    /// The number of objects, decoded or not.
    #[must_use]
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// The number of own deletes that the watch has not delivered yet.
    #[must_use]
    pub fn unconfirmed_deletes(&self) -> usize {
        self.tombstones.len()
    }

    /// Whether the first list is complete, or the kind is not served.
    #[must_use]
    pub const fn synced(&self) -> bool {
        self.reached.is_some() || matches!(self.unwatched, Some(Unwatched::NotServed))
    }

    /// List and watch have delivered everything up to this version. `None` before the first list.
    #[must_use]
    pub const fn reached(&self) -> Option<&ResourceVersion> {
        self.reached.as_ref()
    }

    /// Whether the cache has `key` at `version` or newer.
    #[must_use]
    pub fn shows(&self, key: &Key, version: &ResourceVersion) -> bool {
        let seen = self.reached.as_ref().is_some_and(|reached| reached >= version);
        seen || self.objects.get(key).is_some_and(|known| known.version >= *version)
    }

    /// Whether the cache has exactly this version.
    pub(super) fn shows_exactly(&self, identity: &Identity) -> bool {
        let known = self.objects.get(&identity.key);
        known.is_some_and(|known| known.version == identity.version && known.uid == identity.uid)
    }

    /// The cached version of the object that was written.
    pub(super) fn version_of(&self, written: &Identity) -> Option<ResourceVersion> {
        let known = self
            .objects
            .get(&written.key)
            .filter(|known| known.uid == written.uid)?;
        Some(known.version.clone())
    }

    /// The watch delivered an added or modified object.
    ///
    /// # Errors
    /// When the object has no name, UID or comparable version.
    pub fn observed(&mut self, item: Item<K>) -> Result<(), MissingMetadata> {
        let identity = item.identity()?;
        let version = identity.version.clone();
        if self.is_newer(&identity) {
            self.insert(identity, item);
        }
        self.advance(version);
        Ok(())
    }

    /// The watch delivered a deletion; `last` has the version of the deletion.
    pub fn observed_deleted(&mut self, last: &Identity) {
        self.tombstones.confirm(last);
        // A newer object of that name, which the program created since, stays.
        if self
            .objects
            .get(&last.key)
            .is_some_and(|known| known.version <= last.version)
        {
            self.remove(&last.key);
        }
        self.advance(last.version.clone());
    }

    /// The watch delivered a bookmark: nothing else happened up to `version`.
    pub fn observed_bookmark(&mut self, version: ResourceVersion) {
        self.tombstones.passed(&version);
        self.advance(version);
    }

    /// A complete list, read from a quorum, at `at`.
    ///
    /// Own writes after `at` stay. The version distinguishes them from objects that were deleted before the list.
    ///
    /// # Errors
    /// When an object has no name, UID or comparable version. Nothing changes then.
    pub fn listed(&mut self, items: Vec<Item<K>>, at: ResourceVersion) -> Result<(), MissingMetadata> {
        let items: Vec<(Identity, Item<K>)> = items
            .into_iter()
            .map(|item| Ok((item.identity()?, item)))
            .collect::<Result<_, MissingMetadata>>()?;
        let first = self.reached.is_none();
        // A list older than the watch: the server was restored from a backup, and the cached versions have no meaning.
        let restored = self.reached.as_ref().is_some_and(|reached| *reached > at);
        if restored {
            self.tombstones.clear();
        }
        let uids: BTreeSet<&str> = items.iter().map(|(identity, _)| identity.uid.as_str()).collect();
        self.tombstones.listed(&uids, &at);
        let keys: BTreeSet<&Key> = items.iter().map(|(identity, _)| &identity.key).collect();
        let missing = |(key, known): (&Key, &Entry<K>)| {
            (!keys.contains(key) && (restored || known.version <= at)).then(|| key.clone())
        };
        let missing: Vec<Key> = self.objects.iter().filter_map(missing).collect();
        for key in &missing {
            self.remove(key);
        }
        for (identity, item) in items {
            let known = self.objects.get(&identity.key);
            let differs = known.is_none_or(|known| known.version != identity.version || known.uid != identity.uid);
            if (restored && differs) || self.is_newer(&identity) {
                self.insert(identity, item);
            }
        }
        self.reached = Some(at);
        self.unwatched = None;
        if first {
            notify(&mut self.subscribers, &Change::Synced);
        }
        Ok(())
    }

    /// An own write returned this object. It enters the cache if it is newer than the cached version.
    ///
    /// # Errors
    /// When the object has no name, UID or comparable version.
    pub fn wrote(&mut self, object: K) -> Result<(), MissingMetadata> {
        self.refreshed(Item::Object(object))
    }

    /// A live read returned this. It enters the cache if it is newer than the cached version.
    ///
    /// # Errors
    /// When the object has no name, UID or comparable version.
    pub fn refreshed(&mut self, item: Item<K>) -> Result<(), MissingMetadata> {
        let identity = item.identity()?;
        // The watch has delivered this version or its deletion already: the response is late.
        let passed = self
            .reached
            .as_ref()
            .is_some_and(|reached| *reached >= identity.version);
        if !passed && self.is_newer(&identity) {
            self.insert(identity, item);
        }
        Ok(())
    }

    /// A live read at `at` found no object under `key`.
    pub fn refreshed_absent(&mut self, key: &Key, at: &ResourceVersion) {
        let known = self.objects.get(key).filter(|known| known.version <= *at);
        if let Some(known) = known {
            let last = Identity {
                key: key.clone(),
                uid: known.uid.clone(),
                version: known.version.clone(),
            };
            self.deleted(&last);
        }
    }

    /// An own delete removed this object; `last` is its last known version. An object that finalizers still hold is
    /// [written](Cache::wrote) instead.
    pub fn deleted(&mut self, last: &Identity) {
        let known = self.objects.get(&last.key).filter(|known| known.uid == last.uid);
        let passed = self.reached.as_ref().is_some_and(|reached| *reached >= last.version);
        if known.is_none() && passed {
            // The watch delivered the deletion before the response.
            return;
        }
        let last_version = known
            .map_or(&last.version, |known| (&known.version).max(&last.version))
            .clone();
        let is_cached = known.is_some();
        self.tombstones
            .record_delete(last.key.clone(), last.uid.clone(), last_version);
        if is_cached {
            self.remove(&last.key);
        }
    }

    fn is_newer(&self, identity: &Identity) -> bool {
        let known = self.objects.get(&identity.key);
        !self.tombstones.covers(identity) && known.is_none_or(|known| known.version < identity.version)
    }

    fn insert(&mut self, identity: Identity, item: Item<K>) {
        let Identity { key, uid, version } = identity;
        // Another object of the same name: the old one was deleted, even if no event reported that.
        if self.objects.get(&key).is_some_and(|known| known.uid != uid) {
            self.remove(&key);
        }
        let before = self.objects.remove(&key).map(|known| known.form);
        let was_unreadable = matches!(before, Some(Form::Unreadable { .. }));
        let last = before.and_then(Form::into_last);
        let old = last.as_deref();
        match item {
            Item::Object(mut object) => {
                prune(&mut object);
                self.indexes.replace(&key, old, Some(&object));
                let new = Arc::new(object);
                let form = Form::Readable(Arc::clone(&new));
                self.unreadable.remove(&key);
                self.objects.insert(key, Entry { uid, version, form });
                notify(
                    &mut self.subscribers,
                    &Change::Applied {
                        old,
                        new: &new,
                        was_unreadable,
                    },
                );
            }
            Item::Unreadable { why, .. } => {
                let form = Form::Unreadable {
                    last: last.clone(),
                    why,
                };
                self.unreadable.insert(key.clone());
                self.objects.insert(key.clone(), Entry { uid, version, form });
                notify(&mut self.subscribers, &Change::Unreadable { key: &key, old });
            }
        }
    }

    fn remove(&mut self, key: &Key) {
        let Some(known) = self.objects.remove(key) else { return };
        self.unreadable.remove(key);
        let (old, was_unreadable) = (known.readable(), matches!(known.form, Form::Unreadable { .. }));
        self.indexes.replace(key, old, None);
        notify(
            &mut self.subscribers,
            &Change::Deleted {
                key,
                old,
                was_unreadable,
            },
        );
    }

    fn advance(&mut self, version: ResourceVersion) {
        // Before the first list there is no version to continue from.
        if let Some(reached) = &mut self.reached
            && *reached < version
        {
            *reached = version;
        }
    }
}
