//! The parts of an API server that kubectl needs in addition to objects: tables, and the OpenAPI document.
//!
//! Everything else goes through to the simulated API server as it is, and comes back as it is.

mod table;

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use futures::{StreamExt as _, TryStreamExt as _};
use metal3_api::crd::Definition;
use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Target, built_in_names};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use table::table;

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
    kinds: Vec<Definition>,
}

impl HttpServer {
    /// Listens on a loopback port, any free one for 0. All clients are administrators.
    pub(super) async fn open(
        cluster: &Cluster,
        clock: &Arc<dyn Clock>,
        kinds: Vec<Definition>,
        port: u16,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(State {
            cluster: cluster.clone(),
            clock: Arc::clone(clock),
            kinds,
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
    if let Some(document) = openapi(&state.kinds, request.uri().path()) {
        return json_of(&document);
    }
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let is_table = request.method() == "GET" && accept.is_some_and(|accept| accept.contains("as=Table"));
    let target = Target::parse(request.uri().path());
    let is_watch = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    if is_table {
        request.headers_mut().insert(ACCEPT, JSON);
    }
    let answer = state.cluster.service("admin").oneshot(request).await;
    let Ok(answer) = answer else {
        let mut broken = Response::new(Body::empty());
        *broken.status_mut() = StatusCode::BAD_GATEWAY;
        return broken;
    };
    match target.filter(|_| is_table && answer.status().is_success()) {
        None => answer.map(Body::new),
        Some(target) if is_watch => watched(state, target, answer.map(Body::new)),
        Some(target) => tabled(&state, &target, answer.map(Body::new)).await,
    }
}

impl State {
    fn table(&self, target: &Target, document: &Value) -> Value {
        let kind = self
            .kinds
            .iter()
            .find(|kind| kind.group == target.group && kind.plural == target.resource);
        table(kind, &target.version, document, self.clock.now())
    }
}

async fn tabled(state: &State, target: &Target, answer: Response<Body>) -> Response<Body> {
    let body = to_bytes(answer.into_body(), LONGEST).await.unwrap_or_default();
    let document: Value = serde_json::from_slice(&body).unwrap_or_default();
    json_of(&state.table(target, &document))
}

/// Converts each event of a watch to a table of its object.
fn watched(state: Arc<State>, target: Target, answer: Response<Body>) -> Response<Body> {
    let (mut head, body) = answer.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    let events = body.into_data_stream().map_ok(move |line| {
        let event: Option<Map<String, Value>> = serde_json::from_slice(&line).ok();
        let Some(mut event) = event.filter(|event| event.get("type") != Some(&json!("ERROR"))) else {
            return line;
        };
        if let Some(object) = event.get_mut("object") {
            *object = state.table(&target, object);
        }
        Bytes::from(format!("{}\n", Value::Object(event)))
    });
    Response::from_parts(head, Body::from_stream(events.boxed()))
}

fn json_of(document: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(document.to_string()));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// The place of the document of a version.
fn place_of(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

/// The part of the OpenAPI document that kubectl reads before a write: the server validates unknown fields.
fn openapi(kinds: &[Definition], path: &str) -> Option<Value> {
    let rest = path.strip_prefix("/openapi/v3")?;
    let built_in = built_in_names().map(|[group, kind, plural]| (group, "v1", kind, plural));
    let custom = kinds.iter().flat_map(|kind| {
        let versions = kind.versions.iter();
        versions.map(move |version| (kind.group, version.name, kind.kind, kind.plural))
    });
    let all = built_in.into_iter().chain(custom);
    let place = rest.trim_start_matches('/');
    if place.is_empty() {
        let paths: Map<String, Value> = all
            .map(|(group, version, ..)| {
                let place = place_of(group, version);
                let address = json!({ "serverRelativeURL": format!("/openapi/v3/{place}") });
                (place, address)
            })
            .collect();
        return Some(json!({ "paths": paths }));
    }
    let paths: Map<String, Value> = all
        .filter(|(group, version, ..)| place_of(group, version) == place)
        .map(|(group, version, kind, plural)| {
            let checks = json!([{ "name": "fieldValidation", "in": "query", "schema": { "type": "string" } }]);
            let operation = json!({
                "parameters": checks, "responses": {},
                "x-kubernetes-group-version-kind": { "group": group, "version": version, "kind": kind },
            });
            let path = format!("/{place}/namespaces/{{namespace}}/{plural}/{{name}}");
            (path, json!({ "patch": operation }))
        })
        .collect();
    Some(json!({
        "openapi": "3.0.0", "info": { "title": "Sandbox", "version": "v1" }, "paths": paths,
        "components": { "schemas": {} },
    }))
}

#[cfg(test)]
mod tests {
    use metal3_api::catalog;

    use super::*;

    #[test]
    fn each_kind_has_an_operation_whose_fields_the_server_validates() {
        let kinds = catalog::definitions();
        let places = openapi(&kinds, "/openapi/v3").unwrap();
        for (place, path, kind) in [
            ("api/v1", "/api/v1/namespaces/{namespace}/services/{name}", "Service"),
            (
                "apis/apps/v1",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
                "Deployment",
            ),
            (
                "apis/metal3.io/v1alpha1",
                "/apis/metal3.io/v1alpha1/namespaces/{namespace}/baremetalhosts/{name}",
                "BareMetalHost",
            ),
        ] {
            let address = format!("/openapi/v3/{place}");
            assert_eq!(places["paths"][place]["serverRelativeURL"], address);
            let operation = openapi(&kinds, &address).unwrap()["paths"][path]["patch"].clone();
            assert_eq!(operation["x-kubernetes-group-version-kind"]["kind"], kind);
            assert_eq!(operation["parameters"][0]["name"], "fieldValidation");
        }
        assert!(openapi(&kinds, "/api/v1").is_none());
    }
}
