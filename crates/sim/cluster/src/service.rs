//! Passes one HTTP request to the state machine and injects the faults of the plan.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use metal3_sim_faults::{Call, Fault};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::store::{Answer, GROUPS_MEDIA_TYPE, Identity, Refusal, Request, Target};
use crate::stream::{Body, StreamFaults, events};

/// The media type of a text.
const PLAIN: &str = "text/plain; charset=utf-8";

type Response = ::http::Response<Body>;

/// A tower service that sends requests as one user.
#[derive(Clone)]
pub struct ClientService {
    cluster: Cluster,
    user: String,
}

impl Cluster {
    /// A client of this cluster with the user name `user`.
    #[must_use]
    pub fn client(&self, user: &str) -> kube::Client {
        kube::Client::new(self.service(user), "default")
    }

    /// The service under a client, for callers with their own layers.
    #[must_use]
    pub fn service(&self, user: &str) -> ClientService {
        ClientService {
            cluster: self.clone(),
            user: user.to_owned(),
        }
    }
}

impl ClientService {
    async fn answer(self, request: Request) -> io::Result<Response> {
        let (verb, resource) = name(&request);
        let fault = self.cluster.with(|state| {
            state.audit.count(&request.user, verb, &resource);
            let resource = resource.as_str();
            let is_faulted = state.faulted_users.is_empty() || state.faulted_users.contains(&request.user);
            is_faulted
                .then(|| state.faults.fault_for(&Call { verb, resource }))
                .flatten()
        });
        let lag = match fault {
            Some(Fault::CrashBefore) => {
                self.cluster.crash();
                return pending().await;
            }
            Some(Fault::Refused { code, retry_after }) => return Ok(refused(&Refusal::unavailable(code, retry_after))),
            Some(Fault::Conflict) => return Ok(refused(&conflict(&request, &resource))),
            Some(Fault::StaleRead { writes }) => writes,
            _ => 0,
        };
        let now = self.cluster.now();
        let answer = self
            .cluster
            .with(|state| state.store.handle_lagging(&request, now, lag));
        match fault {
            Some(Fault::CrashAfter) => {
                self.cluster.crash();
                return pending().await;
            }
            Some(Fault::ReplyLost) => {
                return Err(io::Error::new(
                    io::ErrorKind::ConnectionReset,
                    "connection reset before the answer",
                ));
            }
            Some(Fault::Delay(delay)) => tokio::time::sleep(delay).await,
            _ => {}
        }
        Ok(match answer {
            Ok(Answer::Document { code, body, warnings }) => document(code, &body, &warnings),
            Ok(Answer::Groups(groups)) => response(200, GROUPS_MEDIA_TYPE, text(groups.to_string())),
            Ok(Answer::Text("")) => response(200, "text/plain", text(String::new())),
            Ok(Answer::Text(plain)) => response(200, PLAIN, text(plain.to_owned())),
            Ok(Answer::Watch(watch)) => response(
                200,
                "application/json",
                events(self.cluster, *watch, StreamFaults::by(fault)),
            ),
            Err(refusal) => refused(&refusal),
        })
    }
}

/// Verb and resource of the counters; `nonresource` for other paths.
fn name(request: &Request) -> (&'static str, String) {
    let target = Target::parse(&request.path);
    let verb = target.as_ref().and_then(|target| request.verb(target).ok());
    let resource = match (&target, verb) {
        (Some(target), Some(_)) if target.subresource.is_empty() => target.resource.clone(),
        (Some(target), Some(_)) => format!("{}/{}", target.resource, target.subresource),
        _ => "nonresource".to_owned(),
    };
    (verb.map_or("other", crate::store::Verb::name), resource)
}

/// The conflict error of an update with an old version.
fn conflict(request: &Request, resource: &str) -> Refusal {
    let target = Target::parse(&request.path);
    let name = target.map(|target| target.name).unwrap_or_default();
    Refusal {
        code: 409,
        reason: "Conflict",
        message: format!(
            "Operation cannot be fulfilled on {resource} {name:?}: the object has been modified; please apply your \
             changes to the latest version and try again"
        ),
        details: Some(serde_json::json!({"name": name, "kind": resource})),
    }
}

fn refused(refusal: &Refusal) -> Response {
    if refusal.is_plain() {
        return response(refusal.code, PLAIN, text(format!("{}\n", refusal.message)));
    }
    let mut response = document(refusal.code, &refusal.status(), &[]);
    if let Some(seconds) = refusal.retry_after() {
        response
            .headers_mut()
            .insert(::http::header::RETRY_AFTER, seconds.into());
    }
    response
}

fn document(code: u16, body: &Value, warnings: &[String]) -> Response {
    let mut response = response(code, "application/json", text(body.to_string()));
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = format!("299 - \"{quoted}\"").parse() {
            response.headers_mut().append(::http::header::WARNING, value);
        }
    }
    response
}

fn text(text: String) -> Body {
    Full::from(text).map_err(|never| match never {}).boxed_unsync()
}

fn response(code: u16, media_type: &'static str, body: Body) -> Response {
    let mut response = ::http::Response::new(body);
    *response.status_mut() = ::http::StatusCode::from_u16(code).unwrap_or(::http::StatusCode::INTERNAL_SERVER_ERROR);
    let media_type = ::http::HeaderValue::from_static(media_type);
    response.headers_mut().insert(::http::header::CONTENT_TYPE, media_type);
    response
}

fn request(parts: &::http::request::Parts, body: &Bytes, user: &str) -> Result<Request, Refusal> {
    let header = |name: ::http::HeaderName| {
        let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (user, identity) = match impersonated(&parts.headers)? {
        Some((user, identity)) => (user, Some(identity)),
        None => (user.to_owned(), None),
    };
    Ok(Request {
        method: parts.method.as_str().to_owned(),
        path: decoded(parts.uri.path(), false),
        query: query(parts.uri.query().unwrap_or_default()),
        content_type: header(::http::header::CONTENT_TYPE),
        accept: header(::http::header::ACCEPT),
        agent: header(::http::header::USER_AGENT),
        user,
        identity,
        body: body.to_vec(),
    })
}

/// Who a client impersonates.
fn impersonated(headers: &::http::HeaderMap) -> Result<Option<(String, Identity)>, Refusal> {
    const EXTRA: &str = "impersonate-extra-";
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let (user, groups, uid) = (
        first("impersonate-user"),
        all("impersonate-group"),
        first("impersonate-uid"),
    );
    let names = headers
        .keys()
        .filter_map(|name| Some((name.as_str().strip_prefix(EXTRA)?, name.as_str())));
    let extra: BTreeMap<&str, Vec<String>> = names.map(|(short, name)| (short, all(name))).collect();
    match (user.is_empty(), groups.is_empty() && uid.is_empty() && extra.is_empty()) {
        (true, true) => Ok(None),
        (true, false) => Err(Refusal::without_user(&groups, &uid, &extra)),
        (false, _) if !extra.is_empty() => Err(Refusal::unsupported("extra values of an impersonated user")),
        (false, _) => Ok(Some((user.clone(), Identity::of(&user, groups, uid)))),
    }
}

fn query(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name, true), decoded(value, true))
        })
        .collect()
}

/// Decodes percent encoding. An invalid escape stays as it is.
fn decoded(text: &str, plus: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escape = match after {
            [high, low, ..] if *first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        if let Some((high, low)) = escape {
            bytes.push(high.wrapping_mul(16).wrapping_add(low));
            rest = after.get(2..).unwrap_or_default();
        } else {
            bytes.push(if plus && *first == b'+' { b' ' } else { *first });
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

impl<B> tower::Service<::http::Request<B>> for ClientService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, wire: ::http::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (parts, body) = wire.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            match request(&parts, &body, &service.user) {
                Ok(request) => service.answer(request).await,
                Err(refusal) => Ok(refused(&refusal)),
            }
        })
    }
}
