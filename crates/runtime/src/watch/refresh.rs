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
use super::error::WatchError;
use super::limits;
use super::scope::Requests;

/// The response timeout.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How late a watch may be before the object is read instead. It is seldom later than a second.
const GRACE: Duration = Duration::from_secs(5);
/// How long a read is retried: an API server restart takes less.
const LONGEST: Duration = Duration::from_mins(2);
/// Concurrent reads.
const MAX_READS: usize = 8;

/// Reads the objects of the uncertain writes of one cache.
pub(super) struct Refresher<'a, K, I> {
    client: &'a Client,
    requests: &'a Requests,
    cache: &'a SharedCache<K, I>,
    seed: u64,
    permits: Semaphore,
}

impl<'a, K: Resource + DeserializeOwned, I: Indexes<K>> Refresher<'a, K, I> {
    pub(super) fn new(client: &'a Client, requests: &'a Requests, cache: &'a SharedCache<K, I>, seed: u64) -> Self {
        Self {
            client,
            requests,
            cache,
            seed,
            permits: Semaphore::new(MAX_READS),
        }
    }

    /// Resolves all uncertain writes; never returns.
    pub(super) async fn resolve_all(&self, mut refresher: CacheRefresher<K, I>) {
        let (mut open, mut seed) = (FuturesUnordered::new(), self.seed);
        // No more writes arrive once another refresher serves the cache; the open ones are still resolved here.
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                Some(()) = open.next() => {}
                write = refresher.next(), if is_open => match write {
                    Some(write) => {
                        seed = seed.wrapping_add(1);
                        open.push(self.resolve(write, seed));
                    }
                    None => is_open = false,
                },
                else => return std::future::pending().await,
            }
        }
    }

    async fn resolve(&self, write: UncertainWrite, seed: u64) {
        let object = match &write {
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
            tracing::warn!(kind = %self.requests.kind(), %object, "not read again in time: reconciling with the cached object");
        }
        if let UncertainWrite::Late(object, version) = &write {
            self.cache.end_wait(object, version);
        }
    }

    /// Reads until there is a response or a final error.
    async fn read(&self, object: &Key, seed: u64) {
        let mut backoff = Backoff::seeded(seed);
        while let Err(error) = self.read_once(object).await {
            let kind = self.requests.kind();
            if error.is_final() {
                tracing::warn!(kind, %object, %error, "cannot be read again: reconciling with the cached object");
                return;
            }
            tracing::debug!(kind, %object, %error, "not read again yet");
            sleep(backoff.fail().max(error.retry_after())).await;
        }
    }

    async fn read_once(&self, object: &Key) -> Result<(), WatchError> {
        let permit = self.permits.acquire().await;
        let request = self.requests.one(object).map_err(kube::Error::BuildRequest);
        let text = async { self.client.request_text(request?).await };
        let answer = timeout(RESPONSE_TIMEOUT, text)
            .await
            .map_err(|_| WatchError::Silent(RESPONSE_TIMEOUT))?;
        drop(permit);
        let page: Page<K> = decode::page(&answer.map_err(WatchError::of)?, 1)?;
        limits::check_page(&page)?;
        let found = page.items.into_iter().next();
        self.cache
            .refreshed(object, found, &page.at)
            .map_err(DecodeError::from)?;
        Ok(())
    }
}
