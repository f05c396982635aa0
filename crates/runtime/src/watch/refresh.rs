//! Objects of which a write left nobody sure what the server holds are read afresh, one request each.
//!
//! Without this the source of a lost write would look again while the cache shows the state before it, and write once
//! more: a conflict with itself.
//!
//! Invariant: every doubt ends, and none waits for another: by an answer; by a refusal that would come again; or after
//! [`LONGEST`]. Then its source goes on with what the cache shows. What protects objects from that are preconditions and
//! names that follow from the object, as they do from a process that has just started.

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

/// The longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(30);
/// How late a watch may be before the object is read instead: seldom more than a second, while it is well.
const GRACE: Duration = Duration::from_secs(5);
/// The longest a doubt lives after that: an API server that is restarted is back within less.
const LONGEST: Duration = Duration::from_mins(2);
/// Reads under way at once.
const AT_ONCE: usize = 8;

/// Reads the doubted objects of one cache.
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

    /// Ends all doubts that the refresher hears of, for ever.
    pub(super) async fn settle_all(&self, mut refresher: CacheRefresher<K, I>) {
        let (mut open, mut seed) = (FuturesUnordered::new(), self.seed);
        // Somebody else keeps the cache once nothing comes any more; what is open is still ended here.
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

    /// Until there is an answer, or cannot be one.
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
