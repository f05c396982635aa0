//! Tombstones: what we deleted, until the watch has nothing more to say of it.
//!
//! Without them late news of what lived before would bring it back. One name may have died more than once.
//!
//! Invariant: what the watch can still bring is remembered; what it never had in sight is forgotten once it has passed.

use std::collections::{BTreeMap, BTreeSet};

use crate::version::ResourceVersion;

use super::identity::{Identity, Key};

/// A delete that the watch has not confirmed after so many bookmarks is of an object that it never had in sight. Should
/// the watch just be that late, then it brings the object back and, in order, its end.
const QUIET: u8 = 3;

#[derive(Debug)]
struct Tombstone {
    uid: String,
    /// The newest version that is known to have lived.
    lived: ResourceVersion,
    /// How often the watch has said, past `lived`, that nothing else happened.
    quiet: u8,
}

/// The tombstones of one cache.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    dead: BTreeMap<Key, Vec<Tombstone>>,
}

impl Tombstones {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.dead.values().map(Vec::len).sum()
    }

    /// The object of this UID is dead; its newest version was `lived`.
    pub(super) fn record_delete(&mut self, key: Key, uid: String, lived: ResourceVersion) {
        let dead = self.dead.entry(key).or_default();
        dead.retain(|tombstone| tombstone.uid != uid);
        dead.push(Tombstone { uid, lived, quiet: 0 });
    }

    /// Whether this version was before a death that we know of: what bears the name of one we deleted, and is older
    /// than it, was before it.
    pub(super) fn cover(&self, identity: &Identity) -> bool {
        let mut dead = self.dead.get(&identity.key).into_iter().flatten();
        dead.any(|tombstone| tombstone.uid == identity.uid || tombstone.lived >= identity.version)
    }

    /// The watch says that this object is gone.
    pub(super) fn confirm(&mut self, last: &Identity) {
        if let Some(dead) = self.dead.get_mut(&last.key) {
            dead.retain(|tombstone| tombstone.uid != last.uid);
            if dead.is_empty() {
                self.dead.remove(&last.key);
            }
        }
    }

    /// The watch has come to `version` and said nothing.
    pub(super) fn passed(&mut self, version: &ResourceVersion) {
        self.retain(|tombstone| {
            tombstone.quiet = tombstone.quiet.saturating_add(u8::from(tombstone.lived <= *version));
            tombstone.quiet < QUIET
        });
    }

    /// A list as it was at `at` holds the objects of these UIDs.
    pub(super) fn listed(&mut self, uids: &BTreeSet<&str>, at: &ResourceVersion) {
        self.retain(|tombstone| uids.contains(tombstone.uid.as_str()) || tombstone.lived > *at);
    }

    /// The server was put back in time.
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
