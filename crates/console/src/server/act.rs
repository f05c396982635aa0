//! What a page does: a POST that no page of another site can send.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;

use super::access::Access;
use super::answer::is_name;
use super::headers::{answer as with_headers, plain};
use crate::acting::Acting;
use crate::actions::Wanted;
use crate::changes::document;

pub(super) const PATH: &str = "/api/act";
/// Two names, a UID and an action, in bytes.
const LONGEST: usize = 2 << 10;
/// The time in which the body arrives.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn answer(
    access: &Access,
    acting: &Arc<Acting>,
    headers: &HeaderMap,
    body: Incoming,
) -> Response<Body> {
    if !is_of_a_page(headers) || !access.may_act(headers) {
        return plain(
            StatusCode::FORBIDDEN,
            "Actions are sent by pages that were opened by the printed URL only.\n",
        );
    }
    let read = tokio::time::timeout(TIMEOUT, to_bytes(Body::new(body), LONGEST)).await;
    let wanted = match read {
        Ok(Ok(bytes)) => serde_json::from_slice::<Wanted>(&bytes).ok().filter(is_plain),
        Ok(Err(_)) => return plain(StatusCode::PAYLOAD_TOO_LARGE, "The action is too long.\n"),
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "The action did not arrive.\n"),
    };
    match wanted {
        Some(wanted) => match acting.act_to_the_end(wanted).await {
            Some(done) => with_headers(StatusCode::OK, "application/json", document(&done)),
            None => plain(StatusCode::INTERNAL_SERVER_ERROR, "The action could not be done.\n"),
        },
        None => plain(
            StatusCode::BAD_REQUEST,
            "An action has a namespace, a name, a uid and an action.\n",
        ),
    }
}

/// Other sites can send neither this type without a question that is not answered, nor the origin of the console.
fn is_of_a_page(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(ORIGIN).map(|origin| origin.strip_prefix("http://").unwrap_or_default());
    let host = text(http::header::HOST).unwrap_or_default();
    let is_own = origin.is_some_and(|origin| origin.eq_ignore_ascii_case(host));
    text(CONTENT_TYPE) == Some("application/json") && is_own
}

fn is_plain(wanted: &Wanted) -> bool {
    let names = [&wanted.namespace, &wanted.name, &wanted.action];
    names.iter().all(|name| !name.is_empty() && is_name(name)) && is_name(&wanted.uid)
}
