//! The cache: what we know of the objects of one kind, with indexes that never disagree with it.
//!
//! One watch feeds it, our own writes feed it too, and subscribers hear of each change with the old and the new
//! object. [`Cache`] is the pure part: it does not list, watch, wait or lock. [`SharedCache`] is the lock around it, so that
//! store, indexes and subscribers are one critical section.
//!
//! Invariants:
//! - An object never goes back to an older version, and a deleted one never returns: what the watch says late about
//!   our own writes changes nothing. A list that is older than the watch is the exception: then the server itself was
//!   put back in time, and the list is right.
//! - Unknown is not absent: an object that cannot be decoded is known as such, and before the first list nothing is
//!   absent.
//! - Subscribers must not wait, must not call back, and must not look into another cache.

mod barrier;
mod cache_write;
mod change;
mod identity;
mod index;
mod own_writes;
mod refresher;
mod section;
mod shared;
mod store;
mod tombstones;

pub use barrier::Barrier;
pub use cache_write::{AnswerContent, CacheWrite};
pub use change::Change;
pub use identity::{Identity, Item, Key, MissingMetadata};
pub use index::{Index, Indexes, SharedIndexes};
pub(crate) use refresher::{CacheRefresher, UncertainWrite};
pub use shared::SharedCache;
pub use store::Cache;
pub(crate) use store::prune;

#[cfg(test)]
mod tests;
