//! A plain Redfish client. It follows links, so that a claim does not depend on the paths of a service.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use metal3_sim_bmc::{identity::Number, profile::Profile};
use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::level::Bmc;

const TIMEOUT: Duration = Duration::from_secs(10);
const POWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than any power change.
const SETTLED: Duration = Duration::from_millis(250);

/// How a request logs in.
#[derive(Clone, Copy)]
pub(crate) enum Login<'a> {
    Right,
    None,
    As(&'a str, &'a str),
    Token(&'a str),
}

/// One Redfish service and the profile of its machine.
pub(crate) struct Service {
    bmc: Bmc,
    http: reqwest::Client,
    pub(crate) number: Number,
    pub(crate) profile: Profile,
    /// The address of a file server with `/one.iso` and `/two.iso`.
    pub(crate) files: String,
}

/// A response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// Null when it is not JSON.
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn expect(self, status: u16) -> anyhow::Result<Self> {
        let why = self.body.pointer("/error/message").and_then(Value::as_str);
        ensure!(
            self.status == status,
            "answered {} and not {status}: {}",
            self.status,
            why.unwrap_or("no reason given")
        );
        Ok(self)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Service {
    pub(crate) fn new(bmc: Bmc, number: Number, profile: Profile, files: String) -> anyhow::Result<Self> {
        let trusted = match &bmc.ca {
            Some(ca) => reqwest::Certificate::from_pem_bundle(&std::fs::read(ca)?)?,
            None => Vec::new(),
        };
        let http = reqwest::Client::builder()
            .tls_certs_only(trusted)
            .timeout(TIMEOUT)
            .no_proxy()
            .build()?;
        Ok(Self {
            bmc,
            http,
            number,
            profile,
            files,
        })
    }

    pub(crate) fn system_path(&self) -> &str {
        &self.bmc.system
    }

    pub(crate) fn login(&self) -> (&str, &str) {
        (&self.bmc.username, &self.bmc.password)
    }

    fn request(&self, method: Method, path: &str, login: Login<'_>) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.bmc.address));
        match login {
            Login::Right => request.basic_auth(&self.bmc.username, Some(&self.bmc.password)),
            Login::None => request,
            Login::As(user, password) => request.basic_auth(user, Some(password)),
            Login::Token(token) => request.header("X-Auth-Token", token),
        }
    }

    async fn answer(request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let answer = request.send().await?;
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body = serde_json::from_str(&answer.text().await?).unwrap_or(Value::Null);
        Ok(Answer { status, headers, body })
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        login: Login<'_>,
    ) -> anyhow::Result<Answer> {
        let mut request = self.request(method.clone(), path, login);
        if let Some(body) = body {
            request = request.json(body);
        }
        Self::answer(request).await.with_context(|| format!("{method} {path}"))
    }

    /// Sends a body with the content type of JSON that may be malformed.
    pub(crate) async fn post_text(&self, path: &str, body: &'static str) -> anyhow::Result<Answer> {
        let request = self.request(Method::POST, path, Login::Right);
        Self::answer(request.header("Content-Type", "application/json").body(body)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send(Method::POST, path, Some(body), Login::Right).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send(Method::PATCH, path, Some(body), Login::Right).await
    }

    pub(crate) async fn fetch(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(Method::GET, path, None, Login::Right).await
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let answer = self.fetch(path).await?;
        Ok(answer.expect(200).with_context(|| format!("GET {path}"))?.body)
    }

    pub(crate) async fn system(&self) -> anyhow::Result<Value> {
        self.get(&self.bmc.system).await
    }

    /// The members of a collection of the system.
    pub(crate) async fn part(&self, name: &str) -> anyhow::Result<Vec<Value>> {
        self.members(link(&self.system().await?, name)?).await
    }

    /// Reads each member of a collection.
    pub(crate) async fn members(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let collection = self.get(path).await?;
        let mut members = Vec::new();
        for address in addresses(&collection, "/Members")? {
            members.push(self.get(address).await?);
        }
        let counted = collection.get("Members@odata.count").and_then(Value::as_u64);
        ensure!(
            counted == u64::try_from(members.len()).ok(),
            "{path} counts {counted:?} members and lists {}",
            members.len()
        );
        Ok(members)
    }

    pub(crate) async fn reset(&self, kind: &str) -> anyhow::Result<Answer> {
        let system = self.system().await?;
        let target = action(&system, "#ComputerSystem.Reset")?;
        self.post(target, &json!({ "ResetType": kind })).await
    }

    pub(crate) async fn power(&self) -> anyhow::Result<String> {
        Ok(text(&self.system().await?, "/PowerState")?.to_owned())
    }

    /// Brings the machine into a power state. It sends the request even when the state is reached: a change of an earlier
    /// claim may be in progress, and the later request replaces it.
    pub(crate) async fn bring(&self, wanted: &str) -> anyhow::Result<()> {
        let kind = if wanted == "On" { "On" } else { "ForceOff" };
        self.reset(kind).await?.expect(204)?;
        self.wait_for(wanted).await
    }

    pub(crate) async fn wait_for(&self, wanted: &str) -> anyhow::Result<()> {
        let end = Instant::now() + POWER_TIMEOUT;
        loop {
            let power = self.power().await?;
            if power == wanted {
                return Ok(());
            }
            ensure!(Instant::now() < end, "PowerState is {power} and not {wanted}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for the power state after all changes have settled.
    pub(crate) async fn settle_in(&self, wanted: &str) -> anyhow::Result<()> {
        sleep(SETTLED).await;
        self.wait_for(wanted).await
    }
}

/// The address of a linked resource.
pub(crate) fn link<'a>(resource: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    text(resource, &format!("/{name}/@odata.id"))
}

/// The addresses in an array of links.
pub(crate) fn addresses<'a>(resource: &'a Value, pointer: &str) -> anyhow::Result<Vec<&'a str>> {
    let items = resource
        .pointer(pointer)
        .and_then(Value::as_array)
        .with_context(|| format!("no {pointer} in {resource}"))?;
    items.iter().map(|item| text(item, "/@odata.id")).collect()
}

pub(crate) fn action<'a>(resource: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    let target = resource
        .get("Actions")
        .and_then(|actions| actions.get(name)?.get("target"));
    target
        .and_then(Value::as_str)
        .with_context(|| format!("no action {name}"))
}

pub(crate) fn text<'a>(resource: &'a Value, pointer: &str) -> anyhow::Result<&'a str> {
    let found = resource.pointer(pointer).and_then(Value::as_str);
    found.with_context(|| format!("no text at {pointer} in {resource}"))
}

/// A number, also in quotes: Redfish clients accept both.
pub(crate) fn number(resource: &Value, pointer: &str) -> anyhow::Result<u64> {
    let found = resource.pointer(pointer);
    let read = found.and_then(|value| value.as_u64().or_else(|| value.as_str()?.parse().ok()));
    read.with_context(|| format!("no number at {pointer} in {resource}"))
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(found: T, wanted: T) -> anyhow::Result<()> {
    ensure!(found == wanted, "found {found:?}, expected {wanted:?}");
    Ok(())
}
