//! Requests are sent only with logins of the first user.
//!
//! Programs and files of a kubeconfig give new tokens at any time, perhaps of another user. Each token is used for a question first:
//! who logs in with it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use tower::{BoxError, Service, ServiceExt as _};

use super::cause::Cause;
use super::owner::{Owner, Person};

/// The question.
const REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const QUESTION: &str = r#"{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}"#;
/// More bytes than an answer has.
const LONGEST: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(30);
/// Logins of one client that are known. Old ones are not used again.
const MOST: usize = 8;

/// A request was not sent, because its login is not known to be of the first user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotSent(pub(super) Cause);

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("send a request with the login of another user")
    }
}

impl std::error::Error for NotSent {}

/// A service that sends requests of one user only.
#[derive(Clone)]
pub struct Checked<S> {
    service: S,
    server: Arc<str>,
    owner: Arc<Owner>,
    known: Arc<Mutex<VecDeque<Login>>>,
    /// Held while the server is asked: one question for all that wait.
    asking: Arc<tokio::sync::Mutex<()>>,
}

/// The digest of the header with the login.
type Login = [u8; 32];

impl<S> fmt::Debug for Checked<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl<S> Checked<S> {
    /// Over a service for requests that have their login, for a server with this name.
    pub fn new(service: S, server: &str, owner: Arc<Owner>) -> Self {
        Self {
            service,
            server: server.into(),
            owner,
            known: Arc::default(),
            asking: Arc::default(),
        }
    }

    fn is_known(&self, login: &Login) -> bool {
        self.known.lock().contains(login)
    }
}

fn login(headers: &HeaderMap) -> Login {
    let header = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let digest = digest(&SHA256, header.unwrap_or_default());
    digest.as_ref().try_into().unwrap_or_default()
}

impl<S, B> Checked<S>
where
    S: Service<Request<kube::client::Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn send(self, request: Request<kube::client::Body>) -> Result<Response<Body>, BoxError> {
        // It has its login, so that no program keeps it waiting: what follows is time of the API server.
        self.owner.sent.fetch_add(1, Ordering::Relaxed);
        let login = login(request.headers());
        if !self.is_known(&login) {
            let _turn = self.asking.lock().await;
            if !self.is_known(&login)
                && let Some(refused) = self.ask(request.headers()).await?
            {
                return Ok(refused);
            }
            let mut known = self.known.lock();
            if !known.contains(&login) {
                known.push_back(login);
            }
            if known.len() > MOST {
                known.pop_front();
            }
        }
        self.pass(request).await
    }

    async fn pass(&self, request: Request<kube::client::Body>) -> Result<Response<Body>, BoxError> {
        let answer = self.service.clone().oneshot(request).await.map_err(Into::into)?;
        Ok(answer.map(Body::new))
    }

    /// Asks who logs in with these headers. An answer that says nothing about it is that to the request.
    async fn ask(&self, headers: &HeaderMap) -> Result<Option<Response<Body>>, BoxError> {
        let mut request = Request::post(REVIEW).body(kube::client::Body::from(QUESTION.as_bytes().to_vec()))?;
        let own = request.headers_mut();
        own.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let is_login = |name: &str| name == AUTHORIZATION.as_str() || name.starts_with("impersonate-");
        for (name, value) in headers.iter().filter(|(name, _)| is_login(name.as_str())) {
            own.append(name.clone(), value.clone());
        }
        let answer = tokio::time::timeout(PATIENCE, self.pass(request)).await??;
        let person = match answer.status() {
            status if status.is_success() => {
                let body = tokio::time::timeout(PATIENCE, to_bytes(answer.into_body(), LONGEST)).await??;
                serde_json::from_slice::<SelfSubjectReview>(&body)
                    .ok()
                    .and_then(Person::of)
            }
            // Older servers, and those that do not let all users ask.
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => None,
            _ => return Ok(Some(answer)),
        };
        self.owner.admit(&self.server, person).map_err(NotSent)?;
        Ok(None)
    }
}

impl<S, B> Service<Request<kube::client::Body>> for Checked<S>
where
    S: Service<Request<kube::client::Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
