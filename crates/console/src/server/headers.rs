//! Headers of every answer.

use axum::body::Body;
use http::{HeaderName, HeaderValue, Response, StatusCode};

/// Nothing from elsewhere, nothing inline, no form, no frame; texts become elements only through the code of the pages.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

const ALL: [(&str, &str); 8] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// An answer.
pub(super) fn answer(status: StatusCode, content: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in ALL {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static(content));
    response
}

/// An answer in words.
pub(super) fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    answer(status, "text/plain; charset=utf-8", text)
}
