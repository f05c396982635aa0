//! Reads objects of uncertain writes again, one request each.
//!
//! Without this the key of a lost write would reconcile with the state before the write, and write again: a conflict
//! with itself.
//!
//! Invariant: every uncertain write is resolved independently: by a response, by a final error, or after [`LONGEST`].
//! Then its key reconciles with the cached object. Preconditions and deterministic names protect objects from a stale
//! view, as they do after a start.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use kube::Client;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::cache::{CacheRefresher, Indexes, Key, SharedCache, UncertainWrite};

use super::backoff::Backoff;
use super::decode::{self, DecodeError, Page};
use super::scope::Requests;
use super::task::WatchError;

/// The response timeout.
const ANSWER: Duration = Duration::from_secs(30);
/// How late a watch may be before the object is read instead. It is seldom later than a second.
const GRACE: Duration = Duration::from_secs(5);
/// How long a read is retried: an API server restart takes less.
const LONGEST: Duration = Duration::from_mins(2);
/// Concurrent reads.
const AT_ONCE: usize = 8;

/// Reads the objects of the uncertain writes of one cache.
pub(super) struct Reader<'a, K, I> {
    client: &'a Client,
    requests: &'a Requests,
    cache: &'a SharedCache<K, I>,
    seed: u64,
    turns: Semaphore,
}

impl<'a, K: Resource + DeserializeOwned, I: Indexes<K>> Reader<'a, K, I> {
    pub(super) fn new(client: &'a Client, requests: &'a Requests, cache: &'a SharedCache<K, I>, seed: u64) -> Self {
        Self {
            client,
            requests,
            cache,
            seed,
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Resolves all uncertain writes; never returns.
    pub(super) async fn settle_all(&self, mut refresher: CacheRefresher<K, I>) {
        let (mut open, mut seed) = (FuturesUnordered::new(), self.seed);
        // No more writes arrive once another refresher serves the cache; the open ones are still resolved here.
        let mut heard = true;
        loop {
            tokio::select! {
                biased;
                Some(()) = open.next() => {}
                doubt = refresher.next(), if heard => match doubt {
                    Some(doubt) => {
                        seed = seed.wrapping_add(1);
                        open.push(self.settle(doubt, seed));
                    }
                    None => heard = false,
                },
                else => return std::future::pending().await,
            }
        }
    }

    async fn settle(&self, doubt: UncertainWrite, seed: u64) {
        let object = match &doubt {
            UncertainWrite::Lost { object, .. } => object,
            UncertainWrite::Late(object, version) => {
                let shown = || self.cache.read(|cache| cache.shows(object, version));
                if self.requests.covers(object) {
                    sleep(GRACE).await;
                }
                if shown() {
                    return;
                }
                object
            }
        };
        if self.requests.covers(object) && timeout(LONGEST, self.read(object, seed)).await.is_err() {
            tracing::warn!(kind = %self.requests.kind(), %object, "not read afresh in time: going on with an old view");
        }
        if let UncertainWrite::Late(object, version) = &doubt {
            self.cache.let_go(object, version);
        }
    }

    /// Reads until there is a response or a final error.
    async fn read(&self, object: &Key, seed: u64) {
        let mut backoff = Backoff::seeded(seed);
        while let Err(trouble) = self.look(object).await {
            let kind = self.requests.kind();
            if trouble.is_final() {
                tracing::warn!(kind, %object, %trouble, "cannot be read afresh: going on with an old view");
                return;
            }
            tracing::debug!(kind, %object, %trouble, "not read afresh yet");
            sleep(backoff.fail().max(trouble.retry_after())).await;
        }
    }

    async fn look(&self, object: &Key) -> Result<(), WatchError> {
        let turn = self.turns.acquire().await;
        let request = self.requests.one(object).map_err(kube::Error::BuildRequest);
        let text = async { self.client.request_text(request?).await };
        let answer = timeout(ANSWER, text).await.map_err(|_| WatchError::Silent(ANSWER))?;
        drop(turn);
        let page: Page<K> = decode::page(&answer.map_err(WatchError::of)?)?;
        let found = page.items.into_iter().next();
        self.cache
            .refreshed(object, found, &page.at)
            .map_err(DecodeError::from)?;
        Ok(())
    }
}
