//! Tombstones: own deletes, until the watch can deliver nothing more about them.
//!
//! Without a tombstone a late watch event would bring the deleted object back. A name may have several.
//!
//! Invariant: a tombstone stays as long as the watch can deliver an event of its object. For an object outside the
//! watch's scope it is removed once the watch has passed the deletion.

use std::collections::{BTreeMap, BTreeSet};

use crate::version::ResourceVersion;

use super::identity::{Identity, Key};

/// After this many bookmarks without the deletion the object is outside the watch's scope. If the watch is merely late,
/// it delivers the object and then, in order, its deletion.
const MAX_BOOKMARKS: u8 = 3;

struct Tombstone {
    uid: String,
    /// The newest version known before the deletion.
    last_version: ResourceVersion,
    /// How many bookmarks passed `last_version`.
    bookmarks: u8,
}

/// The tombstones of one cache.
#[derive(Default)]
pub(super) struct Tombstones {
    tombstones: BTreeMap<Key, Vec<Tombstone>>,
}

impl Tombstones {
    /// The number of tombstones.
    pub(super) fn len(&self) -> usize {
        self.tombstones.values().map(Vec::len).sum()
    }

    /// The object of this UID was deleted; its newest version was `last_version`.
    pub(super) fn record_delete(&mut self, key: Key, uid: String, last_version: ResourceVersion) {
        let tombstones = self.tombstones.entry(key).or_default();
        tombstones.retain(|tombstone| tombstone.uid != uid);
        tombstones.push(Tombstone {
            uid,
            last_version,
            bookmarks: 0,
        });
    }

    /// Whether this version existed before a known deletion: it has the same UID, or the same name and an older
    /// version.
    pub(super) fn covers(&self, identity: &Identity) -> bool {
        let mut tombstones = self.tombstones.get(&identity.key).into_iter().flatten();
        tombstones.any(|tombstone| tombstone.uid == identity.uid || tombstone.last_version >= identity.version)
    }

    /// The watch delivered the deletion.
    pub(super) fn confirm(&mut self, last: &Identity) {
        if let Some(tombstones) = self.tombstones.get_mut(&last.key) {
            tombstones.retain(|tombstone| tombstone.uid != last.uid);
            if tombstones.is_empty() {
                self.tombstones.remove(&last.key);
            }
        }
    }

    /// The watch delivered a bookmark at `version`.
    pub(super) fn passed(&mut self, version: &ResourceVersion) {
        self.retain(|tombstone| {
            tombstone.bookmarks = tombstone
                .bookmarks
                .saturating_add(u8::from(tombstone.last_version <= *version));
            tombstone.bookmarks < MAX_BOOKMARKS
        });
    }

    /// A list at `at` contains the objects with these UIDs.
    pub(super) fn listed(&mut self, uids: &BTreeSet<&str>, at: &ResourceVersion) {
        self.retain(|tombstone| uids.contains(tombstone.uid.as_str()) || tombstone.last_version > *at);
    }

    /// The server was restored from a backup.
    pub(super) fn clear(&mut self) {
        self.tombstones.clear();
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut Tombstone) -> bool) {
        self.tombstones.retain(|_, tombstones| {
            tombstones.retain_mut(&mut keep);
            !tombstones.is_empty()
        });
    }
}
