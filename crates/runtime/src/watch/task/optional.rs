//! Kinds that need not be installed, and that an administrator need not permit to this program.
//!
//! Such a kind holds nothing: no controller waits for its first list, and the process is alive without it. It is looked for
//! again now and then. A kind that is not served has no objects; those of a kind that may not be listed are unknown.

use std::time::Duration;

use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::cache::{Indexes, Unwatched};

use super::{Watch, WatchError};

/// The interval of attempts to list the kind.
const RETRY: Duration = Duration::from_mins(1);

/// So many equal answers one after the other are certain.
const REFUSALS: u32 = 3;

/// The last answers of the server to requests for an optional kind.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    why: Option<Unwatched>,
    count: u32,
}

impl Refusals {
    /// Counts an answer; `None`: no refusal of the kind.
    pub(super) fn add(&mut self, why: Option<Unwatched>) -> u32 {
        let is_equal = why.is_some() && why == self.why;
        self.count = if is_equal {
            self.count.saturating_add(1)
        } else {
            u32::from(why.is_some())
        };
        self.why = why;
        self.count
    }
}

impl<K: Resource + DeserializeOwned, I: Indexes<K>> Watch<K, I> {
    /// Why the optional kind is not watched, once that is certain: a server may refuse for a moment, while it starts, what it
    /// permits later, and a definition may be replaced.
    pub(super) fn unwatched(&mut self, error: &WatchError) -> Option<Unwatched> {
        let why = error.unwatched().filter(|_| self.is_optional);
        let count = self.refusals.add(why);
        let is_first = self.cache.read(|cache| cache.reached().is_none());
        let is_certain = why == Some(Unwatched::NotServed) && is_first;
        why.filter(|_| is_certain || count >= REFUSALS)
    }

    pub(super) async fn wait_until_watched(&mut self, why: Unwatched) {
        let kind = self.health.kind();
        if self.health.set_unwatched(why) {
            match why {
                Unwatched::NotServed => tracing::info!(kind, "not installed; it is watched once it is"),
                Unwatched::NotPermitted => tracing::warn!(
                    kind,
                    "this program may not list and watch it, so its objects are unknown, and what needs them waits; apply the roles \
                     of this release. It is watched once that is permitted"
                ),
            }
        }
        self.cache.set_unwatched(why);
        self.relist = true;
        tokio::time::sleep(RETRY).await;
    }
}
