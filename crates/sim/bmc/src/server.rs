//! TLS listeners on loopback: one for each BMC, and one for agents and control.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header},
    response::IntoResponse,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, time::timeout};
use tower::ServiceExt as _;

use crate::{
    lab::{Host, Lab},
    redfish::{Answer, Bmc, Reply, Request as RedfishRequest, Verb},
    tls::Identity,
};

const HANDSHAKE: Duration = Duration::from_secs(10);
const LARGEST_BODY: usize = 64 << 20;
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// A response extension that drops the connection instead.
#[derive(Debug, Clone, Copy)]
pub struct HangUp;

#[derive(Debug, thiserror::Error)]
#[error("the machine hung up")]
struct HungUp;

/// Serves `router` on `address` until the lab stops.
///
/// # Errors
/// When the address is in use.
pub async fn listen(lab: &Arc<Lab>, identity: &Identity, address: SocketAddr, router: Router) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}; if another lab does, choose another --port"))?;
    let (tasks, stop, acceptor) = (lab.tasks.clone(), lab.stop.clone(), identity.acceptor.clone());
    lab.tasks.spawn(async move {
        loop {
            let socket = tokio::select! {
                () = stop.cancelled() => return,
                accepted = listener.accept() => match accepted {
                    Ok((socket, _)) => socket,
                    Err(_) => continue,
                },
            };
            let (router, acceptor, stop) = (router.clone(), acceptor.clone(), stop.clone());
            tasks.spawn(async move {
                let Ok(Ok(stream)) = timeout(HANDSHAKE, acceptor.accept(socket)).await else {
                    return;
                };
                let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                    answer(router.clone(), request.map(Body::new))
                });
                let connection =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::select! {
                    () = stop.cancelled() => {}
                    // A disconnected client is no error.
                    _ = connection => {}
                }
            });
        }
    });
    Ok(())
}

async fn answer(router: Router, request: Request) -> Result<Response<Body>, HungUp> {
    let Ok(response) = router.oneshot(request).await;
    if response.extensions().get::<HangUp>().is_some() {
        Err(HungUp)
    } else {
        Ok(response)
    }
}

/// Serves each BMC at its own address.
///
/// # Errors
/// When an address is in use.
pub async fn serve_bmcs(lab: &Arc<Lab>, identity: &Identity, network: Ipv4Addr, port: u16) -> anyhow::Result<()> {
    for host in lab.hosts.values() {
        let router = Router::new()
            .fallback(bmc)
            .with_state((Arc::clone(lab), Arc::clone(host)));
        let address = SocketAddr::from((host.number.bmc_address(network), port));
        listen(lab, identity, address, router).await?;
    }
    Ok(())
}

async fn bmc(State((lab, host)): State<(Arc<Lab>, Arc<Host>)>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_BODY).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let body = if body.is_empty() {
        Ok(serde_json::Value::Null)
    } else {
        serde_json::from_slice(&body)
    };
    let Ok(body) = body else {
        return respond(Answer::error(400, "the body is not JSON"));
    };
    let reply = {
        let mut guard = host.lock();
        let state = &mut *guard;
        let request_to_bmc = RedfishRequest {
            verb: verb(&parts.method),
            path: parts.uri.path(),
            authorization: text(&parts.headers, &header::AUTHORIZATION),
            token: text(&parts.headers, &TOKEN),
            body: &body,
        };
        let mut bmc = Bmc {
            credentials: &lab.credentials,
            sessions: &mut state.sessions,
            machine: &mut state.machine,
            power_delay: lab.timing.power,
        };
        bmc.reply(&request_to_bmc, lab.now())
    };
    host.touch();
    match reply {
        Reply::HangUp => hang_up(),
        Reply::Answer(delay, answer) => {
            tokio::time::sleep(delay).await;
            respond(answer)
        }
    }
}

/// The response that drops the connection.
#[must_use]
pub fn hang_up() -> Response<Body> {
    let mut response = StatusCode::SERVICE_UNAVAILABLE.into_response();
    response.extensions_mut().insert(HangUp);
    response
}

fn verb(method: &Method) -> Verb {
    match *method {
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Post,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::Other,
    }
}

/// A header as text; `None` when it is not text.
#[must_use]
pub fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn respond(answer: Answer) -> Response<Body> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match answer.body {
        Some(body) => (status, axum::Json(body)).into_response(),
        None => status.into_response(),
    };
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Basic realm=\"BMC\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    let headers = response.headers_mut();
    if let Some(Ok(location)) = answer.location.map(|text| text.parse()) {
        headers.insert(header::LOCATION, location);
    }
    if let Some(Ok(token)) = answer.token.map(|text| text.parse()) {
        headers.insert(TOKEN, token);
    }
    response
}
