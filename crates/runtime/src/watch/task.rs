//! The task: list, watch, resume, and list again where resuming fails.

use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use kube::Client;
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;
use metal3_domain::clock::Clock;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::access::{Permits, verb};
use crate::cache::{Cache, CacheRefresher, Indexes, Item, SharedCache};
use crate::plan::Observed;
use crate::version::ResourceVersion;

use super::backoff::Backoff;
use super::decode::{self, DecodeError, Event, Page};
use super::error::WatchError;
use super::health::{Failing, SILENCE_LIMIT, WatchHealth};
use super::limits;
use super::refresh::Refresher;
use super::scope::{Form, Requests, Scope};

mod optional;

/// Objects in a page of a list: a few megabytes from the server's cache.
pub const PAGE_SIZE: u32 = 500;
/// How long a watch lasts before it is renewed. Bookmarks keep the connection busy. The server's own limit is 30 to 60
/// minutes.
pub const WATCH_DURATION: Duration = Duration::from_mins(30);
/// The timeout of the response headers, and of a whole page.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// After this many failures in a row the watch is reported as failing. If the server responds, the start version is the
/// problem, so a list begins.
const MAX_EMPTY_WATCHES: u32 = 3;
/// Lists in a row that are older than the cache. A lagging follower catches up within fewer; a restored server stays
/// behind, and its list is accepted.
const MAX_STALE_LISTS: u32 = 4;

/// The interval of lists, and of watches, of the server of a tenant.
const TENANT_INTERVAL: Duration = Duration::from_secs(5);

/// Objects in a page of a list of the server of a tenant.
const TENANT_PAGE_SIZE: u32 = 100;
/// The timeout of the body of a page of a tenant. Others wait for it.
const TENANT_PAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Keeps one cache up to date while it runs.
pub struct Watch<K, I = ()> {
    client: Client,
    cache: SharedCache<K, I>,
    /// Created with the watch, so that writes before its start are waited for, too.
    refresher: Option<CacheRefresher<K, I>>,
    requests: Arc<Requests>,
    health: WatchHealth,
    backoff: Backoff,
    /// Whether the next step is a list.
    relist: bool,
    behind: u32,
    /// For the API server of a tenant: the number of objects in a list, and in the cache.
    bound: Option<usize>,
    /// When the last watch and the last list of a tenant's server began.
    began: [Option<Instant>; 2],
    /// Held while a page is read and decoded.
    pages: Option<Arc<Semaphore>>,
    /// Whether the kind need not be installed, or permitted to this program.
    is_optional: bool,
    refusals: optional::Refusals,
}

impl<K: Resource, I: Indexes<PartialObjectMeta<K>>> Watch<PartialObjectMeta<K>, I> {
    /// A watch of metadata only, as role `R`.
    #[must_use]
    pub fn metadata<R: Permits<verb::List, K> + Permits<verb::Watch, K>>(
        client: Client,
        cache: SharedCache<PartialObjectMeta<K>, I>,
        kind: &K::DynamicType,
        scope: Scope,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::with(client, cache, kind, (scope, Form::Metadata), clock)
    }
}

impl<K: Resource, I: Indexes<K>> Watch<K, I> {
    /// A watch of whole objects, as role `R`. The client must not time out streaming responses, and should not retry.
    #[must_use]
    pub fn whole<R: Permits<verb::List, K> + Permits<verb::Watch, K>>(
        client: Client,
        cache: SharedCache<K, I>,
        kind: &K::DynamicType,
        scope: Scope,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self::with(client, cache, kind, (scope, Form::Whole), clock)
    }

    /// Seeds the jitter of the back-off, so that processes do not retry in step.
    #[must_use]
    pub fn spread_by(mut self, seed: u64) -> Self {
        self.backoff = Backoff::seeded(seed);
        self
    }

    /// A watch of a kind that need not be installed, or permitted to this program: no controller waits for it, and the process
    /// is alive without it.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// A watch of the API server of a tenant, which may send anything: with a limit of objects in the cache, and without
    /// the server's text in errors and logs. A permit of `pages` is held while the body of a page is read and decoded, which
    /// is the largest response.
    #[must_use]
    pub fn of_tenant(mut self, objects: usize, pages: Arc<Semaphore>) -> Self {
        self.bound = Some(objects);
        self.pages = Some(pages);
        self
    }

    /// The health of this watch.
    #[must_use]
    pub fn health(&self) -> WatchHealth {
        self.health.clone()
    }

    fn with(
        client: Client,
        cache: SharedCache<K, I>,
        kind: &K::DynamicType,
        (scope, form): (Scope, Form),
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            client,
            refresher: Some(cache.refresher()),
            cache,
            requests: Arc::new(Requests::new::<K>(kind, scope, form)),
            health: WatchHealth::new(&K::kind(kind), clock),
            backoff: Backoff::seeded(0),
            relist: true,
            behind: 0,
            bound: None,
            began: [None; 2],
            pages: None,
            is_optional: false,
            refusals: optional::Refusals::default(),
        }
    }
}

impl<K: Resource + DeserializeOwned, I: Indexes<K>> Watch<K, I> {
    /// Lists and watches until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        let (client, requests, cache) = (self.client.clone(), Arc::clone(&self.requests), self.cache.clone());
        let refresher = self.refresher.take().unwrap_or_else(|| cache.refresher());
        let refresher_task = Refresher::new(&client, &requests, &cache, self.backoff.seed());
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.run_loop() => {}
            () = refresher_task.resolve_all(refresher) => {}
        }
    }

    async fn run_loop(&mut self) {
        self.health.started();
        loop {
            self.pace().await;
            let step = if self.relist {
                self.list().await
            } else {
                self.watch().await
            };
            let Err(error) = step else {
                self.refusals.add(None);
                continue;
            };
            match self.unwatched(&error) {
                Some(why) => self.wait_until_watched(why).await,
                None => self.recover(&error).await,
            }
        }
    }

    /// Bounds the work that the server of a tenant causes with streams that end at once.
    async fn pace(&mut self) {
        if self.bound.is_none() {
            return;
        }
        let [watch, list] = &mut self.began;
        let last = if self.relist { list } else { watch };
        if let Some(last) = *last {
            sleep_until(last + TENANT_INTERVAL).await;
        }
        *last = Some(Instant::now());
    }

    async fn recover(&mut self, error: &WatchError) {
        let wait = self.backoff.fail();
        let failures = self.backoff.failures();
        let why = self.text_of(error);
        tracing::warn!(kind = self.health.kind(), failures, error = why, "watch interrupted");
        self.health.record(Some(why.clone()), |stats| {
            stats.failures = stats.failures.saturating_add(1);
            let is_silent = matches!(error, WatchError::Silent(_));
            stats.frozen = stats.frozen.saturating_add(u64::from(is_silent));
        });
        if failures >= MAX_EMPTY_WATCHES {
            self.health.set_failing(Failing {
                verb: if self.relist { "list" } else { "watch" },
                class: error.class(),
                is_final: error.is_final(),
                why,
            });
        }
        let expired = matches!(error, WatchError::Expired);
        self.relist |= expired || (error.needs_relist() && failures >= MAX_EMPTY_WATCHES);
        if expired && failures == 1 {
            // An expired version is no problem of the server.
            return;
        }
        tokio::time::sleep(wait.max(error.retry_after())).await;
    }

    fn text_of(&self, error: &WatchError) -> String {
        match self.bound {
            Some(_) => error.without_text_of_server(),
            None => error.to_string(),
        }
    }

    async fn list(&mut self) -> Result<(), WatchError> {
        let (items, at) = match (self.bound, self.pages(Some(PAGE_SIZE)).await) {
            // The rest of the list expired: read it again, in one piece.
            (None, Err(WatchError::Expired)) => self.pages(None).await?,
            (_, read) => read?,
        };
        let seen = self.cache.read(|cache| cache.reached().cloned());
        if let Some(seen) = seen.filter(|seen| *seen > at && self.behind < MAX_STALE_LISTS) {
            self.behind = self.behind.saturating_add(1);
            return Err(WatchError::Behind { list: at, seen });
        }
        self.behind = 0;
        self.cache.listed(items, at).map_err(DecodeError::from)?;
        self.relist = false;
        // Not yet a success: lists after broken watches must not become more frequent.
        self.health
            .record_success(|stats| stats.lists = stats.lists.saturating_add(1));
        Ok(())
    }

    async fn pages(&self, size: Option<u32>) -> Result<(Vec<Item<K>>, ResourceVersion), WatchError> {
        let (mut items, mut rest, mut read) = (Vec::new(), None, 0_usize);
        loop {
            let page = match self.bound {
                Some(most) => {
                    limits::check_pages(read, most, TENANT_PAGE_SIZE)?;
                    self.page_of_tenant(rest, most.saturating_sub(items.len())).await?
                }
                None => {
                    let request = self.requests.list(size, rest).map_err(kube::Error::BuildRequest);
                    let text = async { self.client.request_text(request?).await };
                    let text = within(RESPONSE_TIMEOUT, text).await?.map_err(WatchError::of)?;
                    decode::page(&text, usize::MAX)?
                }
            };
            items.extend(page.items);
            (rest, read) = (page.rest, read.saturating_add(1));
            if rest.is_none() {
                return Ok((items, page.at));
            }
        }
    }

    /// A page of the server of a tenant, with at most this number of objects. Without a permit until the server answers: one
    /// that is cut off does not make the others wait.
    async fn page_of_tenant(&self, rest: Option<String>, most: usize) -> Result<Page<K>, WatchError> {
        let request = self.requests.list(Some(TENANT_PAGE_SIZE), rest);
        let stream = async {
            self.client
                .request_stream(request.map_err(kube::Error::BuildRequest)?)
                .await
        };
        let mut stream = std::pin::pin!(within(RESPONSE_TIMEOUT, stream).await?.map_err(WatchError::of)?);
        let _permit = match &self.pages {
            Some(pages) => pages.acquire().await.ok(),
            None => None,
        };
        let mut text = String::new();
        within(TENANT_PAGE_TIMEOUT, stream.read_to_string(&mut text)).await??;
        let page = decode::page(&text, most)?;
        limits::check_page(&page)?;
        Ok(page)
    }

    async fn watch(&mut self) -> Result<(), WatchError> {
        let Some(from) = self.cache.read(|cache| cache.reached().cloned()) else {
            self.relist = true;
            return Ok(());
        };
        let request = self
            .requests
            .watch(&from, WATCH_DURATION)
            .map_err(kube::Error::BuildRequest);
        let stream = async { self.client.request_stream(request?).await };
        self.health
            .record(None, |stats| stats.watches = stats.watches.saturating_add(1));
        let stream = within(RESPONSE_TIMEOUT, stream).await?.map_err(WatchError::of)?;
        self.health.accepted();
        self.follow(stream).await
    }

    async fn follow(&mut self, stream: impl AsyncBufRead) -> Result<(), WatchError> {
        let mut stream = std::pin::pin!(stream);
        let (mut line, mut events) = (Vec::new(), 0_usize);
        let longest = limits::longest_line(self.bound.is_some());
        loop {
            line.clear();
            let mut bounded = stream.as_mut().take(longest);
            within(SILENCE_LIMIT, bounded.read_until(b'\n', &mut line)).await??;
            if bounded.limit() == 0 {
                return Err(DecodeError::TooLarge("an event").into());
            }
            if line.trim_ascii().is_empty() {
                return if events > 0 { Ok(()) } else { Err(WatchError::Short) };
            }
            let event = decode::event(&line)?;
            if self.bound.is_some() {
                limits::check_event(&event)?;
            }
            if self.has_no_room_for(&event) {
                // The list replaces what the events added, or is too long itself.
                self.relist = true;
                return Ok(());
            }
            self.apply(event)?;
            self.backoff.succeed();
            events = events.saturating_add(1);
        }
    }

    /// Whether an event adds an object beyond those that are kept of the server of a tenant, whatever the number of watches.
    fn has_no_room_for(&self, event: &Event<K>) -> bool {
        let (Some(most), Event::Applied(item)) = (self.bound, event) else {
            return false;
        };
        let is_new = |cache: &Cache<K, I>| {
            item.identity()
                .is_ok_and(|one| matches!(cache.get(&one.key), Observed::Absent))
        };
        self.cache.read(|cache| cache.count() >= most && is_new(cache))
    }

    fn apply(&self, event: Event<K>) -> Result<(), WatchError> {
        match event {
            Event::Applied(item) => self.cache.observed(item).map_err(DecodeError::from)?,
            Event::Deleted(last) => self.cache.observed_deleted(&last),
            Event::Bookmark(until) => {
                self.cache.observed_bookmark(until);
                self.health
                    .record_success(|stats| stats.bookmarks = stats.bookmarks.saturating_add(1));
                return Ok(());
            }
            Event::Ended { code: 410, .. } => return Err(WatchError::Expired),
            Event::Ended { code, message } => return Err(WatchError::Ended { code, message }),
        }
        self.health
            .record_success(|stats| stats.events = stats.events.saturating_add(1));
        Ok(())
    }
}

async fn within<T>(longest: Duration, answer: impl Future<Output = T>) -> Result<T, WatchError> {
    timeout(longest, answer).await.map_err(|_| WatchError::Silent(longest))
}
