//! The server under test: raw requests and responses.

use std::time::Duration;

use futures::StreamExt as _;
use futures::io::AsyncBufReadExt as _;
use futures::stream::BoxStream;
use kube::Client;
use serde_json::{Value, json};

use super::claims;
use super::outcome::{CheckResult, Violation, expect};

/// The timeout of asynchronous changes on a real server.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The user agent, whose part before the slash is the default field manager.
const AGENT: &str = "conformance/1";

/// A server and a namespace on it.
#[derive(Clone)]
pub struct Subject {
    client: Client,
    namespace: String,
    /// The client configuration of the suite's conversion webhook.
    webhook: Value,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Status code.
    pub code: u16,
    /// Body, or its text.
    pub body: Value,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

impl Reply {
    /// The value at a JSON pointer; null when missing.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Value {
        self.body.pointer(pointer).cloned().unwrap_or_default()
    }

    /// The same as text.
    #[must_use]
    pub fn text(&self, pointer: &str) -> String {
        self.at(pointer).as_str().unwrap_or_default().to_owned()
    }

    /// Compares the status code, and the value at a JSON pointer.
    pub(super) fn expect(&self, what: &str, code: u16, pointer: &str, value: impl Into<Value>) -> CheckResult {
        expect(what, (self.code, self.at(pointer)), (code, value.into()))
    }

    /// Compares the value at a JSON pointer.
    pub(super) fn holds(&self, what: &str, pointer: &str, value: impl Into<Value>) -> CheckResult {
        expect(what, self.at(pointer), value.into())
    }

    /// Names of the items of a list.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let items = self.body.get("items").and_then(Value::as_array);
        let name = |item: &Value| {
            item.pointer("/metadata/name")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        items.into_iter().flatten().filter_map(name).collect()
    }
}

fn failed(error: impl std::fmt::Display) -> Violation {
    Violation(format!("the request failed: {error}"))
}

impl Subject {
    pub(super) fn new(client: Client, namespace: &str, webhook: Value) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            webhook,
        }
    }

    /// The conversion of the suite's CRD.
    pub(super) fn conversion(&self) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {"clientConfig": self.webhook, "conversionReviewVersions": ["v1"]},
        })
    }

    pub(super) fn in_namespace(&self, namespace: &str) -> Self {
        Self::new(self.client.clone(), namespace, self.webhook.clone())
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The path of a widget, or of the collection for an empty name, with suffix.
    pub(super) fn widget(&self, rest: &str) -> String {
        let base = format!("/apis/{}/v1/namespaces/{}/widgets", claims::GROUP, self.namespace);
        if rest.is_empty() || rest.starts_with('?') {
            format!("{base}{rest}")
        } else {
            format!("{base}/{rest}")
        }
    }

    /// The path of a namespaced resource of the core group.
    pub(super) fn core(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// Sends a request with a body of a media type.
    ///
    /// # Errors
    /// When the server does not respond.
    pub async fn send(&self, method: &str, path: &str, types: (&str, &str), body: Vec<u8>) -> Result<Reply, Violation> {
        let request = ::http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", types.0)
            .header("user-agent", AGENT)
            .header("accept", types.1)
            .body(kube::client::Body::from(body))
            .map_err(failed)?;
        let response = self.client.send(request).await.map_err(failed)?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect_bytes().await.map_err(failed)?;
        let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
        let warnings = parts
            .headers
            .get_all("warning")
            .iter()
            .filter_map(|value| value.to_str().ok());
        Ok(Reply {
            code: parts.status.as_u16(),
            body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()),
            warnings: warnings.map(str::to_owned).collect(),
        })
    }

    const JSON: (&str, &str) = ("application/json", "application/json");

    pub(super) async fn get(&self, path: &str) -> Result<Reply, Violation> {
        self.send("GET", path, Self::JSON, Vec::new()).await
    }

    pub(super) async fn get_as(&self, path: &str, accept: &str) -> Result<Reply, Violation> {
        self.send("GET", path, ("application/json", accept), Vec::new()).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Reply, Violation> {
        self.send("POST", path, Self::JSON, body.to_string().into_bytes()).await
    }

    /// Creates an object of the core group.
    pub(super) async fn create(&self, resource: &str, body: Value) -> Result<Reply, Violation> {
        self.post(&self.core(resource), &body).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Reply, Violation> {
        self.send("PUT", path, Self::JSON, body.to_string().into_bytes()).await
    }

    pub(super) async fn merge(&self, path: &str, patch: &Value) -> Result<Reply, Violation> {
        let types = ("application/merge-patch+json", "application/json");
        self.send("PATCH", path, types, patch.to_string().into_bytes()).await
    }

    pub(super) async fn json_patch(&self, path: &str, patch: &Value) -> Result<Reply, Violation> {
        let types = ("application/json-patch+json", "application/json");
        self.send("PATCH", path, types, patch.to_string().into_bytes()).await
    }

    /// Applies a document as a field manager.
    pub(super) async fn apply(&self, path: &str, manager: &str, config: &Value) -> Result<Reply, Violation> {
        let types = ("application/apply-patch+yaml", "application/json");
        let separator = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{separator}fieldManager={manager}");
        self.send("PATCH", &path, types, config.to_string().into_bytes()).await
    }

    pub(super) async fn delete(&self, path: &str, options: &Value) -> Result<Reply, Violation> {
        let body = if options.is_null() {
            Vec::new()
        } else {
            options.to_string().into_bytes()
        };
        self.send("DELETE", path, Self::JSON, body).await
    }

    /// Creates a widget and returns the response.
    pub(super) async fn make(&self, name: &str) -> Result<Reply, Violation> {
        self.make_with(&claims::widget(name)).await
    }

    pub(super) async fn make_with(&self, widget: &Value) -> Result<Reply, Violation> {
        let reply = self.post(&self.widget(""), widget).await?;
        if reply.code == 201 {
            return Ok(reply);
        }
        Err(Violation(format!("creating a widget: {} {}", reply.code, reply.body)))
    }

    /// The first `count` events of a watch, fewer when the stream ends before.
    pub(super) async fn watch(&self, path: &str, accept: &str, count: usize) -> Result<Vec<Value>, Violation> {
        let mut stream = self.events(path, accept).await?.take(count);
        let mut events = Vec::new();
        let reading = async {
            while let Some(event) = stream.next().await {
                events.push(event);
            }
        };
        let in_time = tokio::time::timeout(TIMEOUT, reading).await;
        if in_time.is_err() {
            return Err(Violation(format!(
                "the watch sends no event; received so far: {events:?}"
            )));
        }
        Ok(events)
    }

    /// The events of a watch up to the first match, without timeout.
    pub(super) async fn watch_until(
        &self,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Vec<Value>, Violation> {
        let mut lines = self.events(path, "application/json").await?;
        let mut events = Vec::new();
        while let Some(event) = lines.next().await {
            let last = wanted(&event);
            events.push(event);
            if last {
                return Ok(events);
            }
        }
        Err(Violation(format!(
            "the watch ended early; its last event: {:?}",
            events.last()
        )))
    }

    async fn events(&self, path: &str, accept: &str) -> Result<BoxStream<'static, Value>, Violation> {
        let request = ::http::Request::builder()
            .uri(path)
            .header("accept", accept)
            .body(Vec::new())
            .map_err(failed)?;
        let stream = self.client.request_stream(request).await.map_err(failed)?;
        let event = |line: std::io::Result<String>| {
            futures::future::ready(line.ok().and_then(|line| serde_json::from_str(&line).ok()))
        };
        Ok(stream.lines().filter_map(event).boxed())
    }

    pub(super) async fn make_namespace(&self) -> CheckResult {
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let reply = self.post("/api/v1/namespaces", &body).await?;
        match reply.code {
            201 | 409 => Ok(()),
            code => Err(Violation(format!(
                "creating namespace {}: {code} {}",
                self.namespace, reply.body
            ))),
        }
    }

    pub(super) async fn install(&self, definition: &Value) -> CheckResult {
        let reply = self.post(claims::DEFINITIONS, definition).await?;
        if !matches!(reply.code, 201 | 409) {
            return Err(Violation(format!(
                "installing the suite's kind: {} {}",
                reply.code, reply.body
            )));
        }
        let text = |at: &str| definition.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = (text("/spec/group"), text("/spec/versions/0/name"));
        let path = format!("/apis/{group}/{version}/{}", text("/spec/names/plural"));
        self.until("the suite's kind is served", &path, 200).await
    }

    /// Removes the suite's kind. A real server waits for all objects, so their finalizers are removed first.
    pub(super) async fn remove(&self, name: &str) -> CheckResult {
        let every = self.get(&format!("/apis/{}/v1/widgets", claims::GROUP)).await?;
        for item in every.at("/items").as_array().into_iter().flatten() {
            let text = |at: &str| item.pointer(at).and_then(Value::as_str).unwrap_or_default();
            let place = self.in_namespace(text("/metadata/namespace"));
            let path = place.widget(text("/metadata/name"));
            place.merge(&path, &json!({"metadata": {"finalizers": null}})).await?;
        }
        let path = format!("{}/{name}", claims::DEFINITIONS);
        self.delete(&path, &Value::Null).await?;
        self.until("the suite's kind is removed", &path, 404).await
    }

    /// Polls until the response has this code.
    pub(super) async fn until(&self, what: &str, path: &str, code: u16) -> CheckResult {
        self.until_matches(what, || self.get(path), |reply| reply.code == code)
            .await
    }

    /// Polls until the response matches.
    pub(super) async fn until_matches<Request>(
        &self,
        what: &str,
        request: impl Fn() -> Request,
        matches: impl Fn(&Reply) -> bool,
    ) -> CheckResult
    where
        Request: Future<Output = Result<Reply, Violation>>,
    {
        let polling = async {
            while !matches(&request().await?) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Ok(())
        };
        match tokio::time::timeout(TIMEOUT, polling).await {
            Ok(done) => done,
            Err(_) => Err(Violation(format!("not within {TIMEOUT:?}: {what}"))),
        }
    }
}
