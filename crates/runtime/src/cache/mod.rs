//! The cache of the objects of one kind, with indexes that are always consistent with it.
//!
//! A watch and the responses to the program's own writes fill it. Subscribers receive each change with the old and the
//! new object. [`Cache`] is the pure part: it does not list, watch, wait or lock. [`SharedCache`] is the lock around
//! it, so that store, indexes and subscribers are one critical section.
//!
//! Invariants:
//! - An object never returns to an older version, and a deleted one never returns: late watch events about the own
//!   writes change nothing. The exception is a list that is older than the watch: the server was restored from a
//!   backup, and the list is right.
//! - Unknown is not absent: an object that cannot be decoded is unreadable, and before the first list no object is
//!   absent. Nor is one of an optional kind that this program may not list.
//! - Subscribers must not wait, must not call the cache, and must not use another cache.

mod barrier;
mod cache_write;
mod change;
mod identity;
mod index;
mod own_writes;
mod prune;
mod refresher;
mod section;
mod shared;
mod store;
mod tombstones;
mod uncertain;
mod unwatched;

pub use barrier::Barrier;
pub use cache_write::{AnswerContent, CacheWrite};
pub use change::Change;
pub use identity::{Identity, Item, Key, MissingMetadata};
pub use index::{Index, Indexes, SharedIndexes};
pub(crate) use prune::prune;
pub(crate) use refresher::CacheRefresher;
pub use shared::SharedCache;
pub use store::Cache;
pub(crate) use uncertain::UncertainWrite;
pub use unwatched::Unwatched;

#[cfg(test)]
mod tests;
