//! The layer of every request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::Limited;
use kube::client::Body;
use metal3_domain::clock::Clock;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tower::{BoxError, Service, ServiceExt as _};

use super::ClientFactory;
use super::answer::{AnyBody, Bounded, ResponseTimeout, is_error, with_wait, without_text};
use super::rate_limit::RateLimiter;
use super::write_gate::WriteGate;
use crate::metrics::RequestMetrics;

/// A service with the limits of a client.
#[derive(Debug, Clone)]
pub(super) struct Bounds<S> {
    service: S,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    host: String,
    user_agent: HeaderValue,
    timeout: Duration,
    longest_response: usize,
    is_for_tenants: bool,
    slots: Arc<Semaphore>,
    rate_limit: Option<Mutex<RateLimiter>>,
    clock: Arc<dyn Clock>,
    metrics: RequestMetrics,
    write_gate: Option<WriteGate>,
}

impl<S> Bounds<S> {
    pub(super) fn new(service: S, host: &str, factory: &ClientFactory) -> Self {
        let settings = &factory.settings;
        let shared = Shared {
            host: host.to_owned(),
            user_agent: settings.user_agent.clone(),
            timeout: settings.timeout,
            longest_response: settings.longest_response.unwrap_or(usize::MAX),
            is_for_tenants: settings.is_for_tenants,
            slots: Arc::new(Semaphore::new(settings.in_flight.max(1))),
            rate_limit: settings
                .rate_limit
                .map(|rate_limit| Mutex::new(RateLimiter::new(rate_limit))),
            clock: Arc::clone(&factory.clock),
            metrics: factory.metrics.clone(),
            write_gate: factory.write_gate.clone(),
        };
        Self {
            service,
            shared: Arc::new(shared),
        }
    }
}

impl Shared {
    async fn wait_for_rate_limit(&self) {
        let Some(rate_limit) = &self.rate_limit else {
            return;
        };
        let wait = rate_limit.lock().wait(self.clock.monotonic());
        tokio::time::sleep(wait).await;
    }
}

impl<S> Bounds<S> {
    async fn send<B>(self, mut request: Request<Body>) -> Result<Response<AnyBody>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let shared = self.shared;
        request
            .headers_mut()
            .entry(USER_AGENT)
            .or_insert_with(|| shared.user_agent.clone());
        let watch = is_watch(request.uri());
        let method = request.method().clone();
        shared.wait_for_rate_limit().await;
        let slot = if watch {
            None
        } else {
            Some(Arc::clone(&shared.slots).acquire_owned().await?)
        };
        if let Some(write_gate) = &shared.write_gate {
            write_gate.check(&method)?;
        }
        let within = shared.timeout;
        // The timeout starts when the request is sent: the wait for a slot is bounded by the requests before it.
        let deadline = Instant::now() + within;
        let answer = async { self.service.oneshot(request).await.map_err(Into::into) };
        let answer = if watch {
            answer.await
        } else {
            let late = |_| Err(ResponseTimeout { within }.into());
            timeout_at(deadline, answer).await.unwrap_or_else(late)
        };
        let host = shared.host.as_str();
        match &answer {
            Ok(answer) => shared.metrics.answered(answer.status(), method.as_str(), host),
            Err(_) => shared.metrics.unanswered(method.as_str(), host),
        }
        let answer = answer?;
        if shared.is_for_tenants && is_error(&answer) {
            return Ok(without_text(answer));
        }
        if watch && answer.status().is_success() {
            return with_wait(answer).await;
        }
        let longest = shared.longest_response;
        with_wait(answer.map(|body| Bounded::new(Limited::new(body, longest), deadline, within, slot))).await
    }
}

/// Whether the response is an endless stream.
fn is_watch(uri: &Uri) -> bool {
    let parameters = uri.query().unwrap_or_default().split('&');
    parameters
        .into_iter()
        .any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

impl<S, B> Service<Request<Body>> for Bounds<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnyBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Always ready: requests wait in their own futures, so that they do not delay a watch behind them.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
