//! Counts the requests of a program to the API server, by verb and kind.
//!
//! A list with one name counts as a read of one object: that is a fresh read after a conflict. Requests that fail with
//! a conflict are counted separately.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request, StatusCode};
use kube::client::Body;
use metal3_sim_cluster::{ClientService, Cluster};
use parking_lot::Mutex;
use tower::Service;

/// The request counts. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct RequestCounts(Arc<Mutex<BTreeMap<(Kind, String), u64>>>);

/// A class of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Write,
    Read,
    /// Lists of all objects of a kind.
    List,
}

impl RequestCounts {
    fn enter(&self, kind: Kind, what: String) {
        let mut counts = self.0.lock();
        let count = counts.entry((kind, what)).or_default();
        *count = count.saturating_add(1);
    }

    /// Returns and resets the counts.
    pub(crate) fn take(&self) -> BTreeMap<(Kind, String), u64> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Counts the requests of one client.
#[derive(Clone)]
struct CountingService {
    door: ClientService,
    user: &'static str,
    counts: RequestCounts,
}

/// A client whose requests are counted.
pub(crate) fn client(cluster: &Cluster, user: &'static str, counts: &RequestCounts) -> kube::Client {
    let tap = CountingService {
        door: cluster.service(user),
        user,
        counts: counts.clone(),
    };
    kube::Client::new(tap, "default")
}

/// Kind and subresource of a path, and whether it names an object.
fn resource(path: &str) -> (String, bool) {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let root = if parts.first() == Some(&"apis") { 3 } else { 2 };
    let mut rest = parts.into_iter().skip(root).peekable();
    if rest.peek() == Some(&"namespaces") {
        rest = rest.collect::<Vec<_>>().into_iter().skip(2).peekable();
    }
    let plural = rest.next().unwrap_or_default().to_owned();
    let is_named = rest.next().is_some();
    let whole = rest.next().map_or(plural.clone(), |part| format!("{plural}/{part}"));
    (whole, is_named)
}

/// The class of a request; `None` for watches and Events.
fn what(request: &Request<Body>) -> Option<(Kind, String)> {
    let (method, query) = (request.method(), request.uri().query().unwrap_or_default());
    let (resource, is_named) = resource(request.uri().path());
    if resource == "events" || query.contains("watch=") {
        return None;
    }
    let of_one = is_named || query.contains("metadata.name");
    let (kind, verb) = match *method {
        Method::GET if of_one => (Kind::Read, "get"),
        Method::GET if query.contains("Selector=") => (Kind::Read, "list some of"),
        Method::GET => (Kind::List, "list"),
        Method::POST => (Kind::Write, "create"),
        Method::DELETE => (Kind::Write, "delete"),
        _ => (Kind::Write, "patch"),
    };
    Some((kind, format!("{verb} {resource}")))
}

impl Service<Request<Body>> for CountingService {
    type Response = <ClientService as Service<Request<Body>>>::Response;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (Self { mut door, user, counts }, what) = (self.clone(), what(&request));
        Box::pin(async move {
            let answer = door.call(request).await?;
            if let Some((kind, what)) = what {
                let refused = if answer.status() == StatusCode::CONFLICT {
                    ", refused"
                } else {
                    ""
                };
                counts.enter(kind, format!("{user}: {what}{refused}"));
            }
            Ok(answer)
        })
    }
}
