//! Requests of other programs than kubectl: `request METHOD PATH [FORM]`, which prints the code, the media type and the document.
//!
//! The forms are the `Accept` headers of these programs: `table` and `row` those of k9s for a list and for one object, `metadata` and
//! `one-metadata` those of informers of metadata, `groups` that of the discovery of the Go client. Without one, a document is wanted as it is stored.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::script::{Call, REQUEST};

/// The longest wait for an answer, or for a line of a watch.
const LIMIT: Duration = Duration::from_secs(60);
/// What a program sends that takes any document.
const PLAIN: &str = "application/json, */*";
const FORMS: [(&str, &str); 5] = [
    (
        "table",
        "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    ),
    ("row", "application/json;as=Table;v=v1;g=meta.k8s.io, application/json"),
    (
        "metadata",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    ),
    (
        "one-metadata",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    ),
    (
        "groups",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
    ),
];
/// The first part of the name of the program, which managed fields have.
const AGENT: &str = "k9s/v0.50.0";

/// A server that takes requests, from threads outside of the runtime.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client,
    runtime: Handle,
}

impl Sender {
    /// A sender to the server of a kubeconfig.
    pub(crate) async fn of(kubeconfig: &Value) -> Result<Self> {
        let file: Kubeconfig = serde_json::from_value(kubeconfig.clone())?;
        let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        Ok(Self {
            client: Client::try_from(config)?,
            runtime: Handle::current(),
        })
    }

    /// Sends the request of a command line, and returns what is printed. `first` runs after the first line of a watch.
    pub(crate) fn run(&self, words: &[String], call: &Call, first: impl FnOnce() -> Result<()>) -> Result<String> {
        let answer = self.wait(self.client.send(request(words, call)?))??;
        let mut text = head(&answer);
        let mut lines = Lines::of(answer);
        if call.lines == 0 {
            text += &shown(&self.wait(lines.rest())??, call);
            return Ok(text);
        }
        text += &shown(&self.wait(lines.next())??, call);
        first()?;
        for _ in 1..call.lines {
            text += &shown(&self.wait(lines.next())??, call);
        }
        Ok(text)
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let limited = async { tokio::time::timeout(LIMIT, work).await };
        self.runtime.block_on(limited).context("the answer did not come")
    }
}

fn request(words: &[String], call: &Call) -> Result<Request<Body>> {
    let [_, method, path, form @ ..] = words else {
        anyhow::bail!("{REQUEST}: no method or path");
    };
    let accept = match form {
        [] => PLAIN,
        [form, ..] => FORMS
            .iter()
            .find(|(name, _)| name == form)
            .map(|(_, accept)| *accept)
            .with_context(|| format!("{form}: no form"))?,
    };
    let media = match method.as_str() {
        "PATCH" if call.strategic => "application/strategic-merge-patch+json",
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let mut request = Request::builder().method(method.as_str()).uri(path);
    request = request.header(ACCEPT, accept).header(USER_AGENT, AGENT);
    if call.input.is_empty() {
        return Ok(request.body(Body::empty())?);
    }
    let input: Value = serde_saphyr::from_str(&call.input)?;
    let body = input.to_string().into_bytes();
    Ok(request.header(CONTENT_TYPE, media).body(Body::from(body))?)
}

fn head(answer: &Response<Body>) -> String {
    let media = answer.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
    format!("{} {}\n", answer.status().as_u16(), media.unwrap_or("without a type"))
}

/// The body of an answer.
struct Lines {
    body: Body,
    read: Vec<u8>,
}

impl Lines {
    fn of(answer: Response<Body>) -> Self {
        Self {
            body: answer.into_body(),
            read: Vec::new(),
        }
    }

    /// Reads more; `false` at the end.
    async fn read(&mut self) -> Result<bool> {
        let Some(frame) = self.body.frame().await else {
            return Ok(false);
        };
        if let Ok(data) = frame?.into_data() {
            self.read.extend_from_slice(&data);
        }
        Ok(true)
    }

    async fn rest(&mut self) -> Result<String> {
        while self.read().await? {}
        Ok(String::from_utf8(std::mem::take(&mut self.read))?)
    }

    async fn next(&mut self) -> Result<String> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Ok(String::from_utf8(line)?);
            }
            ensure!(self.read().await?, "the answer ended");
        }
    }
}

/// A document as text, with members in the order of their names and without what the call leaves out.
fn shown(text: &str, call: &Call) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(document) => format!("{:#}\n", kept(&document, call)),
        Err(_) if text.is_empty() || text.ends_with('\n') => text.to_owned(),
        Err(_) => format!("{text}\n"),
    }
}

fn kept(value: &Value, call: &Call) -> Value {
    match value {
        Value::Object(members) => {
            let stay = members.iter().filter(|(name, _)| !call.without.contains(name));
            let member = |(name, value): (&String, &Value)| {
                let value = match (call.only.get(name), value) {
                    (Some(wanted), Value::Array(items)) => Value::Array(
                        items
                            .iter()
                            .filter(|item| is_one_of(item, wanted))
                            .map(|item| kept(item, call))
                            .collect(),
                    ),
                    _ => kept(value, call),
                };
                (name.clone(), value)
            };
            Value::Object(stay.map(member).collect())
        }
        Value::Array(items) => items.iter().map(|item| kept(item, call)).collect(),
        other => other.clone(),
    }
}

/// Whether an element of a list has one of these names: an object, its row in a table, a group, or a resource.
fn is_one_of(item: &Value, wanted: &[String]) -> bool {
    let places = ["/metadata/name", "/object/metadata/name", "/resource", "/name"];
    let names = places.iter().filter_map(|place| item.pointer(place)?.as_str());
    names.into_iter().any(|name| wanted.iter().any(|one| one == name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::script::{Script, words};

    fn call(text: &str) -> Call {
        Script::of(text).calls.remove(0)
    }

    #[test]
    fn a_request_has_the_header_of_its_form_and_the_body_of_its_input() {
        let sent = |text: &str| {
            let call = call(text);
            request(&words(&call.run).unwrap(), &call)
        };
        let header = |sent: &Request<Body>, name| sent.headers().get(name).unwrap().to_str().unwrap().to_owned();
        let table = sent("- run: request GET /api/v1/namespaces?limit=1 table\n").unwrap();
        assert_eq!(table.uri(), "/api/v1/namespaces?limit=1");
        assert!(header(&table, ACCEPT).starts_with("application/json;as=Table;v=v1"));
        let patch = sent("- run: request PATCH /a\n  strategic: true\n  input: '{ a: 1 }'\n").unwrap();
        assert_eq!(header(&patch, CONTENT_TYPE), "application/strategic-merge-patch+json");
        for refused in ["- run: request GET\n", "- run: request GET /a sideways\n"] {
            assert!(sent(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn lists_and_members_are_left_out_as_the_call_says() {
        let call = call("- run: request GET /a\n  only: { items: [b] }\n  without: [schema]\n");
        let text = json!({ "schema": 1, "items": [{ "metadata": { "name": "a" } }, { "metadata": { "name": "b" }, "schema": {} }] });
        let expected = json!({ "items": [{ "metadata": { "name": "b" } }] });
        assert_eq!(shown(&text.to_string(), &call), format!("{expected:#}\n"));
        assert_eq!(
            (shown("", &call), shown("ok", &call)),
            (String::new(), "ok\n".to_owned())
        );
    }
}
