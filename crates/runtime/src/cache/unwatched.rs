//! Why an optional kind is not watched, and what that says about its objects.

use kube_core::Resource;

use crate::plan::{Observed, UnknownReason};

use super::index::Indexes;
use super::store::Cache;

/// Why the server does not let this program watch an optional kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwatched {
    /// The server does not serve the kind, so no object of it exists.
    NotServed,
    /// This program may not list the kind. Its objects may exist.
    NotPermitted,
}

impl Unwatched {
    /// What is known of an object that is not cached. `is_listed`: whether a list of its kind was complete once.
    pub(super) const fn observed<T>(unwatched: Option<Self>, is_listed: bool) -> Observed<T> {
        match unwatched {
            Some(Self::NotServed) => Observed::Absent,
            Some(Self::NotPermitted) => Observed::Unknown(UnknownReason::NotPermitted),
            None if is_listed => Observed::Absent,
            None => Observed::Unknown(UnknownReason::NotListed),
        }
    }
}

impl<K: Resource, I: Indexes<K>> Cache<K, I> {
    /// Whether this program may list the kind. Otherwise an empty index or list of objects proves nothing.
    #[must_use]
    pub const fn is_permitted(&self) -> bool {
        !matches!(self.unwatched, Some(Unwatched::NotPermitted))
    }

    /// Whether the server serves the kind, as far as is known. Its objects may come back with it.
    #[must_use]
    pub const fn is_served(&self) -> bool {
        !matches!(self.unwatched, Some(Unwatched::NotServed))
    }

    /// An optional kind is not listed. What an earlier list returned stays, for the next one.
    pub(super) const fn set_unwatched(&mut self, why: Unwatched) {
        self.unwatched = Some(why);
    }
}
