//! Responses with a deadline, and with the retry delay where callers expect it.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::BoxError;

/// A body of any type.
pub(super) type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// More than any error response contains.
const LONGEST_ERROR: usize = 1 << 20;

/// No complete response in time. Whether the request took effect is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("wait for the API server's answer: none, or not all of it, within {within:?}")]
pub struct ResponseTimeout {
    /// The timeout.
    pub within: Duration,
}

/// A body with a deadline, which releases its in-flight slot at the end.
pub(super) struct Bounded<B> {
    body: Pin<Box<B>>,
    deadline: Pin<Box<Sleep>>,
    within: Duration,
    /// Held while the body is read.
    _slot: Option<OwnedSemaphorePermit>,
}

impl<B> Bounded<B> {
    pub(super) fn new(body: B, deadline: Instant, within: Duration, slot: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            body: Box::pin(body),
            deadline: Box::pin(sleep_until(deadline)),
            within,
            _slot: slot,
        }
    }
}

impl<B> Body for Bounded<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = self.body.as_mut().poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Some(Err(ResponseTimeout { within: self.within }.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The response with a boxed body; if it has a `Retry-After` header, as a `Status` with that delay.
pub(super) async fn with_wait<B>(answer: Response<B>) -> Result<Response<AnyBody>, BoxError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Some(seconds) = wait_asked_for(&answer) else {
        return Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()));
    };
    let (mut head, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_ERROR).collect().await?.to_bytes();
    let status = status_with_wait(head.status, &body, seconds).to_string();
    head.headers.remove(CONTENT_LENGTH);
    head.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let body = Full::from(status).map_err(|never| match never {}).boxed_unsync();
    Ok(Response::from_parts(head, body))
}

/// Whether the server reports an error.
pub(super) fn is_error<B>(answer: &Response<B>) -> bool {
    answer.status().is_client_error() || answer.status().is_server_error()
}

/// The error of the server of a tenant: its code, and the delay that it asks for. The text is not read: decoded, it takes many
/// times its length, and nothing uses it.
pub(super) fn without_text<B>(answer: Response<B>) -> Response<AnyBody> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": answer.status().as_u16(),
        "details": { "retryAfterSeconds": wait_asked_for(&answer).unwrap_or_default() },
    });
    let body = Full::from(status.to_string())
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut head = answer.into_parts().0;
    head.headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    Response::from_parts(head, body)
}

/// In seconds: Kubernetes sends no dates here.
fn wait_asked_for<B>(answer: &Response<B>) -> Option<u32> {
    let header = answer.headers().get(RETRY_AFTER).filter(|_| is_error(answer))?;
    header.to_str().ok()?.trim().parse().ok()
}

fn status_with_wait(code: StatusCode, body: &[u8], seconds: u32) -> Value {
    let status_body = serde_json::from_slice::<Value>(body)
        .ok()
        .filter(|status_body| status_body.get("kind").and_then(Value::as_str) == Some("Status"));
    let mut status = status_body.unwrap_or_else(|| {
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": String::from_utf8_lossy(body).trim(),
            "reason": if code == StatusCode::TOO_MANY_REQUESTS { "TooManyRequests" } else { "ServiceUnavailable" },
            "code": code.as_u16(),
        })
    });
    let Some(members) = status.as_object_mut() else {
        return status;
    };
    let details = members.entry("details").or_insert_with(|| json!({}));
    if !details.is_object() {
        *details = json!({});
    }
    if let Some(details) = details.as_object_mut() {
        let known = details.get("retryAfterSeconds").and_then(Value::as_u64).unwrap_or(0);
        if known == 0 {
            details.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
    }
    status
}
