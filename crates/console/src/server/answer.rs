//! The answer to a request.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_LENGTH, SET_COOKIE, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;

use super::access::Access;
use super::headers::{answer as with_headers, plain};
use super::{Pages, act, files, stream};
use crate::acting::Acting;
use crate::changes::{Changes, document};
use crate::{about, host};

/// A name of an object, and more than its namespace.
const LONGEST_NAME: usize = 253;

pub(super) async fn answer(pages: &Pages, request: &Parts, body: Incoming) -> Response<Body> {
    let Pages {
        access,
        changes,
        acting,
    } = pages;
    if !access.is_for_this_machine(&request.headers) {
        return plain(
            StatusCode::MISDIRECTED_REQUEST,
            "The console is asked for by its address only, and by no page of another site.\n",
        );
    }
    if request.method == Method::POST && request.uri.path() == act::PATH {
        return match access.is_known(&request.headers) {
            true => act::answer(access, acting, &request.headers, body).await,
            false => files::logged_out(),
        };
    }
    if ![Method::GET, Method::HEAD].contains(&request.method) {
        let mut refused = plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "Pages are read, and actions are sent to /api/act.\n",
        );
        refused
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let length = request.headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0");
    if length || request.headers.contains_key(TRANSFER_ENCODING) {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "Requests have no body.\n");
    }
    let path = request.uri.path();
    if path == "/login" {
        return log_in(access, request.uri.query());
    }
    // Browsers ask for it on pages that name no icon.
    if path == "/favicon.ico" {
        return files::icon();
    }
    if !access.is_known(&request.headers) {
        return files::logged_out();
    }
    match path {
        "/" => files::page(),
        "/api/stream" => stream::answer(changes),
        "/api/rights" => rights(acting, request.uri.query()).await,
        _ => match files::file(path) {
            Some(file) => file,
            None => documents(changes, path, request.uri.query()).await,
        },
    }
}

fn log_in(access: &Access, query: Option<&str>) -> Response<Body> {
    let token = value(query, "token").unwrap_or_default();
    let Ok(entry) = access.log_in(&token) else {
        return plain(StatusCode::INTERNAL_SERVER_ERROR, "The system has no random numbers.\n");
    };
    let cookie = entry
        .as_ref()
        .and_then(|entry| HeaderValue::from_str(&entry.cookie).ok());
    let (Some(entry), Some(cookie)) = (entry, cookie) else {
        return files::logged_out();
    };
    let mut page = files::logged_in(&entry.key);
    page.headers_mut().insert(SET_COOKIE, cookie);
    page
}

/// Whether the viewer may change a host.
async fn rights(acting: &Acting, query: Option<&str>) -> Response<Body> {
    match (value(query, "namespace"), value(query, "name")) {
        (Some(namespace), Some(name)) => {
            let rights = acting.rights(&namespace, &name).await;
            with_headers(StatusCode::OK, "application/json", document(&rights))
        }
        _ => plain(StatusCode::NOT_FOUND, "There is no such page.\n"),
    }
}

/// The documents are computed on threads that may take their time.
async fn documents(changes: &Arc<Changes>, path: &str, query: Option<&str>) -> Response<Body> {
    let (own, path, query) = (Arc::clone(changes), path.to_owned(), query.map(ToOwned::to_owned));
    let computed = tokio::task::spawn_blocking(move || computed(&own, &path, query.as_deref())).await;
    // Compared after it was computed: it may be of a user who no longer logs in.
    if changes.login.is_hidden() {
        return plain(
            StatusCode::CONFLICT,
            "Another user logs in now. Start the console again.\n",
        );
    }
    match computed {
        Ok(Some((document, is_old))) => {
            let mut found = with_headers(StatusCode::OK, "application/json", document);
            if is_old {
                found
                    .headers_mut()
                    .insert("x-changed-since", HeaderValue::from_static("true"));
            }
            found
        }
        Ok(None) => plain(StatusCode::NOT_FOUND, "There is no such page.\n"),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be computed.\n"),
    }
}

/// A document, and whether it is older than the last change.
fn computed(changes: &Changes, path: &str, query: Option<&str>) -> Option<(Bytes, bool)> {
    let of_object = || Some((value(query, "namespace")?, value(query, "name")?));
    let found = match path {
        "/api/fleet" => changes.fleet(),
        "/api/waits" => return Some(about::all_waits(changes)),
        "/api/clusters" => document(&about::clusters(&changes.shared)),
        "/api/pools" => document(&about::pools(changes)),
        "/api/cluster" => {
            let (namespace, name) = of_object()?;
            document(&about::cluster(changes, &namespace, &name))
        }
        "/api/host" => {
            let (namespace, name) = of_object()?;
            document(&host::document(
                &changes.shared,
                &namespace,
                &name,
                changes.clock.now().into(),
            ))
        }
        _ => return None,
    };
    Some((found, false))
}

/// A value of a query. Names of objects and tokens need no escapes.
fn value(query: Option<&str>, wanted: &str) -> Option<String> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value);
    found.next().filter(|value| is_name(value)).map(ToOwned::to_owned)
}

/// Whether a text may be the name of an object, a token or an action.
pub(super) fn is_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || [b'-', b'.'].contains(&byte);
    text.len() <= LONGEST_NAME && text.bytes().all(is_allowed)
}
