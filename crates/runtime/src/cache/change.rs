//! Changes of a cache, as its subscribers receive them.

use kube_core::Resource;

use super::identity::Key;

/// A change of one object, or the end of the first list.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// An object was added or modified.
    Applied {
        /// Its last decoded form before this change.
        old: Option<&'a K>,
        /// Its form now.
        new: &'a K,
        /// Whether it was unreadable before.
        was_unreadable: bool,
    },
    /// An object exists and cannot be decoded.
    Unreadable {
        /// Its key.
        key: &'a Key,
        /// Its last decoded form.
        old: Option<&'a K>,
    },
    /// An object was deleted.
    Deleted {
        /// Its key.
        key: &'a Key,
        /// Its last decoded form.
        old: Option<&'a K>,
        /// Whether it was unreadable before.
        was_unreadable: bool,
    },
    /// The first list is complete: an object that is not in the cache does not exist.
    Synced,
}

impl<K> Change<'_, K> {
    /// Whether an unreadable object became readable or was deleted.
    #[must_use]
    pub const fn became_readable(&self) -> bool {
        matches!(
            self,
            Self::Applied {
                was_unreadable: true,
                ..
            } | Self::Deleted {
                was_unreadable: true,
                ..
            }
        )
    }

    /// Whether `same` finds no difference. Always false for an object that was unreadable: keys that waited for it have
    /// to reconcile, even if it equals its last decoded form.
    pub fn is_same(&self, same: impl FnOnce(&K, &K) -> bool) -> bool {
        match self {
            Self::Applied {
                old: Some(old),
                new,
                was_unreadable: false,
            } => same(old, new),
            Self::Applied { .. } | Self::Unreadable { .. } | Self::Deleted { .. } | Self::Synced => false,
        }
    }
}

impl<K: Resource> Change<'_, K> {
    /// The object, or its last decoded form if it is unreadable or deleted.
    #[must_use]
    pub const fn object(&self) -> Option<&K> {
        match self {
            Self::Applied { new, .. } => Some(new),
            Self::Unreadable { old, .. } | Self::Deleted { old, .. } => *old,
            Self::Synced => None,
        }
    }

    /// The key of the object.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        match self {
            Self::Applied { new, .. } => Some(Key::of(*new)),
            Self::Unreadable { key, .. } | Self::Deleted { key, .. } => Some((*key).clone()),
            Self::Synced => None,
        }
    }
}

pub(super) type Subscriber<K> = Box<dyn FnMut(&Change<'_, K>) + Send>;

pub(super) fn notify<K>(subscribers: &mut [Subscriber<K>], change: &Change<'_, K>) {
    for subscriber in subscribers {
        subscriber(change);
    }
}
