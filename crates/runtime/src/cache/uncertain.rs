//! Writes that a cache does not have and may never get from its watch.

use crate::queue::Hold;
use crate::version::ResourceVersion;

use super::identity::Key;

/// A write whose effect the cache does not have.
pub(crate) enum UncertainWrite {
    /// The outcome of the write is unknown, or it was rejected because the cached object was out of date. Its source
    /// waits until this value is dropped.
    Lost {
        /// The object.
        object: Key,
        /// Releases the source when it is dropped.
        _author: Hold,
    },
    /// The response could not enter the cache. The barrier holds the source until the cache has this version.
    Late(Key, ResourceVersion),
}
