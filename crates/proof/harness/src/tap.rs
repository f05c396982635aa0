//! The way from a program to the server: every write is counted and judged here, and struck where the case says so.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use kube::client::Body;
use metal3_sim_faults::{Plan, Random, Rule};
use metal3_sim_cluster::{Cluster, ClientService};
use tokio::time::{Instant, sleep, sleep_until};
use tower::Service;

use crate::blow::{Blow, LATE};
use crate::case::Judge;

/// The longest wait that a seed puts before a request, and before an event of a watch.
const REQUEST: Duration = Duration::from_millis(400);
const EVENT: Duration = Duration::from_secs(2);

/// What the taps of one case share.
#[derive(Debug)]
pub(crate) struct Book {
    /// The writes so far.
    pub(crate) effects: Vec<String>,
    /// The write to strike, counted from 1, and how.
    pub(crate) blow: Option<(usize, Blow)>,
    /// Whether it struck.
    pub(crate) struck: bool,
    /// What was found wrong, with the number of the write after which it was.
    pub(crate) violations: Vec<String>,
    pub(crate) checks: usize,
    /// Watches tell nothing before this.
    stale_until: Option<Instant>,
    /// Who makes so many writes goes on for ever.
    most: usize,
}

impl Book {
    pub(crate) fn new(blow: Option<(usize, Blow)>, most: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            effects: Vec::new(),
            blow,
            struck: false,
            violations: Vec::new(),
            checks: 0,
            stale_until: None,
            most,
        }))
    }

    /// Whether nothing more is let through.
    fn full(&mut self) -> bool {
        let full = self.effects.len() >= self.most;
        if full && self.violations.is_empty() {
            self.violations.push("it goes on writing for ever".to_owned());
        }
        full
    }

    /// Writes down one more effect; says how it is struck.
    fn effect(&mut self, what: String) -> Option<Blow> {
        self.effects.push(what);
        let (at, blow) = self.blow?;
        if at != self.effects.len() {
            return None;
        }
        self.struck = true;
        if blow == Blow::StaleCache {
            self.stale_until = Some(Instant::now() + LATE);
        }
        Some(blow)
    }
}

pub(crate) fn open(book: &Mutex<Book>) -> std::sync::MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The service under a program's client.
#[derive(Clone)]
pub(crate) struct Tap {
    pub(crate) door: ClientService,
    pub(crate) cluster: Cluster,
    pub(crate) book: Arc<Mutex<Book>>,
    pub(crate) judge: Judge,
    /// Draws the delays of an interleaving; without it there are none.
    pub(crate) delays: Option<Arc<Mutex<Random>>>,
}

impl Tap {
    async fn answer(mut self, request: Request<Body>) -> io::Result<Response<Frames>> {
        if let Some(wait) = self.draw(REQUEST) {
            sleep(wait).await;
        }
        let effect = effect(&request);
        let is_effect = effect.is_some();
        if is_effect && open(&self.book).full() {
            return pending().await;
        }
        if let Some(effect) = effect {
            let blow = open(&self.book).effect(effect);
            if let Some(fault) = blow.and_then(Blow::fault) {
                // Strikes the very next request, which is this one: nothing runs in between.
                self.cluster.inject(Plan::none().with(Rule::at(1, fault)));
            }
        }
        let answer = self.door.call(request).await;
        if is_effect {
            let found = self.judge.violations().await;
            let mut book = open(&self.book);
            book.checks = book.checks.saturating_add(1);
            let after = book.effects.last().cloned().unwrap_or_default();
            let number = book.effects.len();
            let found = found
                .into_iter()
                .map(|what| format!("after write {number} ({after}): {what}"));
            book.violations.extend(found);
        }
        if let Some(wait) = self.draw(REQUEST) {
            sleep(wait).await;
        }
        let tap = self;
        answer.map(|answer| answer.map(|body| tap.frames(body)))
    }

    fn draw(&self, longest: Duration) -> Option<Duration> {
        let mut random = self.delays.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        let millis = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        Some(Duration::from_millis(random.below(millis)))
    }

    /// The body, piece by piece, each no earlier than the caches may know it.
    fn frames<B>(self, body: B) -> Frames
    where
        B: http_body::Body<Data = Bytes, Error = io::Error> + Send + 'static,
    {
        let frames = BodyStream::new(body).then(move |frame| {
            let (until, wait) = (open(&self.book).stale_until, self.draw(EVENT));
            async move {
                if let Some(until) = until {
                    sleep_until(until).await;
                }
                if let Some(wait) = wait {
                    sleep(wait).await;
                }
                frame
            }
        });
        StreamBody::new(Box::pin(frames))
    }
}

type Frames = StreamBody<Pin<Box<dyn futures::Stream<Item = io::Result<Frame<Bytes>>> + Send>>>;

/// What a request does, if it changes something that somebody decides by. Events and leases do not.
fn effect(request: &Request<Body>) -> Option<String> {
    let (method, path) = (request.method(), request.uri().path());
    let writes = [Method::POST, Method::PATCH, Method::PUT, Method::DELETE].contains(method);
    let noise = path.split('/').any(|part| part == "events" || part == "leases");
    (writes && !noise).then(|| format!("{method} {path}"))
}

impl Service<Request<Body>> for Tap {
    type Response = Response<Frames>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Frames>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}
