//! Kinds that need not be installed, and that an administrator need not permit to this program.
//!
//! Such a kind holds nothing: no controller waits for its first list, and the process is alive without it. It is looked for
//! again now and then. A kind that is not served has no objects; those of a kind that may not be listed are unknown.

use std::time::Duration;

use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::cache::{Indexes, Unwatched};

use super::{MAX_EMPTY_WATCHES, Watch, WatchError};

/// The interval of attempts to list the kind.
const RETRY: Duration = Duration::from_mins(1);

impl<K: Resource + DeserializeOwned, I: Indexes<K>> Watch<K, I> {
    /// Why the optional kind is not watched, once that is certain: a server may refuse for a moment, while it starts, what it
    /// permits later, and a definition may be replaced.
    pub(super) fn unwatched(&self, error: &WatchError) -> Option<Unwatched> {
        let why = error.unwatched().filter(|_| self.is_optional)?;
        let is_first = self.cache.read(|cache| cache.reached().is_none());
        let is_certain = why == Unwatched::NotServed && is_first;
        (is_certain || self.backoff.failures() >= MAX_EMPTY_WATCHES).then_some(why)
    }

    pub(super) async fn wait_until_watched(&mut self, why: Unwatched) {
        let kind = self.health.kind();
        if self.health.set_unwatched(why) {
            match why {
                Unwatched::NotServed => tracing::info!(kind, "not installed; it is watched once it is"),
                Unwatched::NotPermitted => tracing::warn!(
                    kind,
                    "this program may not list and watch it, so its objects have no effect; apply the roles of this release. \
                     It is watched once that is permitted"
                ),
            }
        }
        self.cache.set_unwatched(why);
        self.relist = true;
        tokio::time::sleep(RETRY).await;
    }
}
