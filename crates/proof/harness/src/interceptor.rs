//! Transport between a program and the server: records and checks every write, and injects the fault of the run.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyStream, StreamBody};
use kube::client::Body;
use metal3_sim_cluster::{ClientService, Cluster};
use metal3_sim_faults::{Plan, Random, Rule};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, sleep_until};
use tower::Service;

use crate::fault::{DELAY, WriteFault};
use crate::run::Checker;

/// Longest random delay of a request, and of a watch event.
const REQUEST: Duration = Duration::from_millis(400);
const EVENT: Duration = Duration::from_secs(2);

/// State shared by the interceptors of one run.
#[derive(Debug)]
pub(crate) struct WriteLog {
    /// The writes so far.
    pub(crate) effects: Vec<String>,
    /// The number of the faulty write, counted from 1, and its fault.
    pub(crate) fault: Option<(usize, WriteFault)>,
    /// Whether the fault was injected.
    pub(crate) injected: bool,
    /// Violations, with the number of the preceding write.
    pub(crate) violations: Vec<String>,
    pub(crate) checks: usize,
    /// Watch events are held back until then.
    stale_until: Option<Instant>,
    /// Limit of writes; the program is blocked after that many.
    max_writes: usize,
}

impl WriteLog {
    pub(crate) fn new(fault: Option<(usize, WriteFault)>, max_writes: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            effects: Vec::new(),
            fault,
            injected: false,
            violations: Vec::new(),
            checks: 0,
            stale_until: None,
            max_writes,
        }))
    }

    /// Whether the limit is reached.
    fn is_full(&mut self) -> bool {
        let is_full = self.effects.len() >= self.max_writes;
        if is_full && self.violations.is_empty() {
            self.violations.push("it never stops writing".to_owned());
        }
        is_full
    }

    /// Records a write and returns its fault.
    fn effect(&mut self, what: String) -> Option<WriteFault> {
        self.effects.push(what);
        let (at, fault) = self.fault?;
        if at != self.effects.len() {
            return None;
        }
        self.injected = true;
        if fault == WriteFault::StaleCache {
            self.stale_until = Some(Instant::now() + DELAY);
        }
        Some(fault)
    }
}

/// The service of the client of a program.
#[derive(Clone)]
pub(crate) struct Interceptor {
    pub(crate) service: ClientService,
    pub(crate) cluster: Cluster,
    pub(crate) log: Arc<Mutex<WriteLog>>,
    pub(crate) checker: Checker,
    /// Source of the delays of an interleaving; `None` for no delays.
    pub(crate) delays: Option<Arc<Mutex<Random>>>,
}

impl Interceptor {
    async fn call_server(mut self, request: Request<Body>) -> io::Result<Response<Frames>> {
        if let Some(delay) = self.random_delay(REQUEST) {
            sleep(delay).await;
        }
        let effect = effect(&request);
        let is_effect = effect.is_some();
        if is_effect && self.log.lock().is_full() {
            return pending().await;
        }
        if let Some(effect) = effect {
            let fault = self.log.lock().effect(effect);
            if let Some(fault) = fault.and_then(WriteFault::fault) {
                // Applies to the next request, which is this one: no await in between.
                self.cluster.inject(Plan::none().with(Rule::at(1, fault)));
            }
        }
        let response = self.service.call(request).await;
        if is_effect {
            let found = self.checker.violations().await;
            let mut log = self.log.lock();
            log.checks = log.checks.saturating_add(1);
            let after = log.effects.last().cloned().unwrap_or_default();
            let number = log.effects.len();
            let found = found
                .into_iter()
                .map(|what| format!("after write {number} ({after}): {what}"));
            log.violations.extend(found);
        }
        if let Some(delay) = self.random_delay(REQUEST) {
            sleep(delay).await;
        }
        let interceptor = self;
        response.map(|response| response.map(|body| interceptor.frames(body)))
    }

    fn random_delay(&self, longest: Duration) -> Option<Duration> {
        let mut random = self.delays.as_ref()?.lock();
        let millis = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        Some(Duration::from_millis(random.below(millis)))
    }

    /// Body frames, delayed while caches are stale.
    fn frames<B>(self, body: B) -> Frames
    where
        B: http_body::Body<Data = Bytes, Error = io::Error> + Send + 'static,
    {
        let frames = BodyStream::new(body).then(move |frame| {
            let (until, delay) = (self.log.lock().stale_until, self.random_delay(EVENT));
            async move {
                if let Some(until) = until {
                    sleep_until(until).await;
                }
                if let Some(delay) = delay {
                    sleep(delay).await;
                }
                frame
            }
        });
        StreamBody::new(Box::pin(frames))
    }
}

type Frames = StreamBody<Pin<Box<dyn futures::Stream<Item = io::Result<Frame<Bytes>>> + Send>>>;

/// Method and path of a write that can affect decisions. Events and leases do not.
fn effect(request: &Request<Body>) -> Option<String> {
    let (method, path) = (request.method(), request.uri().path());
    let writes = [Method::POST, Method::PATCH, Method::PUT, Method::DELETE].contains(method);
    let noise = path.split('/').any(|part| part == "events" || part == "leases");
    (writes && !noise).then(|| format!("{method} {path}"))
}

impl Service<Request<Body>> for Interceptor {
    type Response = Response<Frames>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Frames>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().call_server(request))
    }
}
