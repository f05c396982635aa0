//! The part of an API server that kubectl needs in addition to objects: tables.
//!
//! Everything else goes through to the simulated API server as it is, and comes back as it is.

mod built_in;
mod cells;
mod table;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use futures::{StreamExt as _, TryStreamExt as _};
use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Target};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use table::{Columns, Included, table};

/// Where definitions are.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The largest response that is converted to a table.
const LONGEST: usize = 64 << 20;
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An HTTP server for kubectl. Dropping it closes the port.
#[derive(Debug)]
pub(super) struct HttpServer {
    url: String,
    _tasks: JoinSet<()>,
}

struct State {
    cluster: Cluster,
    clock: Arc<dyn Clock>,
}

impl HttpServer {
    /// Listens on a loopback port, any free one for 0. All clients are administrators, unless they impersonate another user.
    pub(super) async fn open(cluster: &Cluster, clock: &Arc<dyn Clock>, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(State {
            cluster: cluster.clone(),
            clock: Arc::clone(clock),
        });
        let router = Router::new().fallback(move |request: Request<Body>| answer(Arc::clone(&state), request));
        let mut tasks = JoinSet::new();
        // It ends with the process, or when the server is dropped.
        tasks.spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { url, _tasks: tasks })
    }

    /// Its address.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

async fn answer(state: Arc<State>, mut request: Request<Body>) -> Response<Body> {
    if !is_local(request.headers()) {
        return refused(StatusCode::MISDIRECTED_REQUEST);
    }
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let is_table = request.method() == "GET" && accept.is_some_and(|accept| accept.contains("as=Table"));
    let target = Target::parse(request.uri().path());
    let query = request.uri().query().unwrap_or_default();
    let is_watch = query.contains("watch=true") || query.contains("watch=1");
    let included = Included::of(query);
    if is_table {
        request.headers_mut().insert(ACCEPT, JSON);
    }
    let answer = state.cluster.service("admin").oneshot(request).await;
    let Ok(answer) = answer else {
        return refused(StatusCode::BAD_GATEWAY);
    };
    let Some(target) = target.filter(|_| is_table && answer.status().is_success()) else {
        return answer.map(Body::new);
    };
    let columns = state.columns(&target).await;
    match is_watch {
        true => watched(state, (columns, included), answer.map(Body::new)),
        false => tabled(&state, (&columns, included), answer.map(Body::new)).await,
    }
}

fn refused(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

/// Whether neither the name of the server nor the page that sends the request is of another machine. All clients are
/// administrators, and a browser lets each page send requests to loopback.
fn is_local(headers: &HeaderMap) -> bool {
    let is_loopback = |value: &HeaderValue| {
        let authority = value
            .to_str()
            .ok()
            .map(|text| text.split_once("://").map_or(text, |(_, rest)| rest));
        let host = authority.map(|text| text.rsplit_once(':').map_or(text, |(host, _)| host));
        host.is_some_and(|host| ["127.0.0.1", "localhost"].contains(&host))
    };
    [HOST, ORIGIN]
        .iter()
        .all(|name| headers.get_all(name).iter().all(is_loopback))
}

impl State {
    /// The columns of the objects of a request.
    async fn columns(&self, target: &Target) -> Columns {
        if target.subresource == "scale" {
            return Columns::BuiltIn(built_in::SCALE);
        }
        let definition = self.definition(target).await;
        Columns::of(definition.as_ref(), (&target.group, &target.version, &target.resource))
    }

    /// The stored definition of a custom kind.
    async fn definition(&self, target: &Target) -> Option<Value> {
        let path = format!("{DEFINITIONS}/{}.{}", target.resource, target.group);
        let request = Request::get(path).header(ACCEPT, JSON).body(Body::empty()).ok()?;
        let answer = self.cluster.service("admin").oneshot(request).await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let body = to_bytes(Body::new(answer.into_body()), LONGEST).await.ok()?;
        serde_json::from_slice(&body).ok()
    }
}

async fn tabled(state: &State, (columns, included): (&Columns, Included), answer: Response<Body>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    let body = to_bytes(body, LONGEST).await.unwrap_or_default();
    let document: Value = serde_json::from_slice(&body).unwrap_or_default();
    let table = table(columns, &document, state.clock.now(), included);
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, JSON);
    Response::from_parts(head, Body::from(table.to_string()))
}

/// Converts each event of a watch to a table of its object.
fn watched(state: Arc<State>, (columns, included): (Columns, Included), answer: Response<Body>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    let events = body.into_data_stream().map_ok(move |line| {
        let event: Option<Map<String, Value>> = serde_json::from_slice(&line).ok();
        let Some(mut event) = event.filter(|event| event.get("type") != Some(&json!("ERROR"))) else {
            return line;
        };
        if let Some(object) = event.get_mut("object") {
            *object = table(&columns, object, state.clock.now(), included);
        }
        Bytes::from(format!("{}\n", Value::Object(event)))
    });
    Response::from_parts(head, Body::from_stream(events.boxed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_and_pages_of_this_machine_are_answered() {
        for (host, origin, expected) in [
            ("127.0.0.1:8080", None, true),
            ("localhost", Some("http://localhost:3000"), true),
            ("sandbox.example:8080", None, false),
            ("127.0.0.1:8080", Some("http://page.example"), false),
            ("127.0.0.1:8080", Some("http://127.0.0.1.page.example:80"), false),
            ("127.0.0.1:8080", Some("null"), false),
        ] {
            let mut headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            headers.extend(origin.map(|origin| (ORIGIN, HeaderValue::from_static(origin))));
            assert_eq!(is_local(&headers), expected, "{host} {origin:?}");
        }
        assert!(is_local(&HeaderMap::new()));
    }
}
