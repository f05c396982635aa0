//! What subscribers of a cache hear.

use kube_core::Resource;

use super::identity::Key;

/// What subscribers hear.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// An object is new or changed.
    Applied {
        /// As it was known before; also what it was before it became unreadable.
        old: Option<&'a K>,
        /// As it is.
        new: &'a K,
        /// Whether it could not be decoded until now.
        was_unreadable: bool,
    },
    /// An object exists in a form that cannot be decoded.
    Unreadable {
        /// Which.
        key: &'a Key,
        /// The last form that could be decoded.
        old: Option<&'a K>,
    },
    /// An object is gone.
    Deleted {
        /// Which.
        key: &'a Key,
        /// Its last form that could be decoded.
        old: Option<&'a K>,
        /// Whether it could not be decoded until now.
        was_unreadable: bool,
    },
    /// The first list is complete: from now on what is not here does not exist.
    Synced,
}

impl<K> Change<'_, K> {
    /// Whether an object that could not be decoded is in nobody's way any more.
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

    /// Whether the object changed in nothing that `same` looks at. After a cure it never is: whoever waited for that has
    /// to look again, even if the object is what it was before it became unreadable.
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
    /// The object as it is, or as it was last known where it cannot be read or is gone.
    #[must_use]
    pub const fn object(&self) -> Option<&K> {
        match self {
            Self::Applied { new, .. } => Some(new),
            Self::Unreadable { old, .. } | Self::Deleted { old, .. } => *old,
            Self::Synced => None,
        }
    }

    /// Which object it is about.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        match self {
            Self::Applied { new, .. } => Some(Key::of(*new)),
            Self::Unreadable { key, .. } | Self::Deleted { key, .. } => Some((*key).clone()),
            Self::Synced => None,
        }
    }
}
