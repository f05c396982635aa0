//! Counts the lists and watches of a client.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use tower::Service;

/// Numbers of lists and watches; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestCounts {
    pub(crate) lists: Arc<AtomicU64>,
    pub(crate) watches: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Counted {
    inner: Client,
    asked: RequestCounts,
}

/// A client that counts its requests.
pub(crate) fn counted(inner: Client, asked: &RequestCounts) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let asked = asked.clone();
    Client::new(Counted { inner, asked }, namespace)
}

impl Service<Request<Body>> for Counted {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = kube::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<kube::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if request.method() == Method::GET {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let count = if is_watch {
                &self.asked.watches
            } else {
                &self.asked.lists
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        let inner = self.inner.clone();
        Box::pin(async move { inner.send(request).await })
    }
}
