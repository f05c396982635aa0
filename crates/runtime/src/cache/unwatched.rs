//! Why an optional kind is not watched, and what that says about its objects.

use crate::plan::{Observed, UnknownReason};

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
