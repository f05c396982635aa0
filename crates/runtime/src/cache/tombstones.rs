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
const QUIET: u8 = 3;

#[derive(Debug)]
struct Tombstone {
    uid: String,
    /// The newest version known before the deletion.
    lived: ResourceVersion,
    /// How many bookmarks passed `lived`.
    quiet: u8,
}

/// The tombstones of one cache.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    dead: BTreeMap<Key, Vec<Tombstone>>,
}

impl Tombstones {
    /// The number of tombstones.
    pub(super) fn len(&self) -> usize {
        self.dead.values().map(Vec::len).sum()
    }

    /// The object of this UID was deleted; its newest version was `lived`.
    pub(super) fn record_delete(&mut self, key: Key, uid: String, lived: ResourceVersion) {
        let dead = self.dead.entry(key).or_default();
        dead.retain(|tombstone| tombstone.uid != uid);
        dead.push(Tombstone { uid, lived, quiet: 0 });
    }

    /// Whether this version existed before a known deletion: it has the same UID, or the same name and an older
    /// version.
    pub(super) fn cover(&self, identity: &Identity) -> bool {
        let mut dead = self.dead.get(&identity.key).into_iter().flatten();
        dead.any(|tombstone| tombstone.uid == identity.uid || tombstone.lived >= identity.version)
    }

    /// The watch delivered the deletion.
    pub(super) fn confirm(&mut self, last: &Identity) {
        if let Some(dead) = self.dead.get_mut(&last.key) {
            dead.retain(|tombstone| tombstone.uid != last.uid);
            if dead.is_empty() {
                self.dead.remove(&last.key);
            }
        }
    }

    /// The watch delivered a bookmark at `version`.
    pub(super) fn passed(&mut self, version: &ResourceVersion) {
        self.retain(|tombstone| {
            tombstone.quiet = tombstone.quiet.saturating_add(u8::from(tombstone.lived <= *version));
            tombstone.quiet < QUIET
        });
    }

    /// A list at `at` contains the objects with these UIDs.
    pub(super) fn listed(&mut self, uids: &BTreeSet<&str>, at: &ResourceVersion) {
        self.retain(|tombstone| uids.contains(tombstone.uid.as_str()) || tombstone.lived > *at);
    }

    /// The server was restored from a backup.
    pub(super) fn clear(&mut self) {
        self.dead.clear();
    }

    fn retain(&mut self, mut keep: impl FnMut(&mut Tombstone) -> bool) {
        self.dead.retain(|_, dead| {
            dead.retain_mut(&mut keep);
            !dead.is_empty()
        });
    }
}
