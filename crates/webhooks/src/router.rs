//! The routes: one for each question of the [`table`](crate::table), and `/convert`.
//!
//! It reads bodies, writes answers and survives a panic of a rule; what it answers is decided elsewhere. It does not
//! listen and knows no TLS: that is the server's it is put into.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use serde_json::Value;

use crate::neighbours::Neighbours;
use crate::review::{self, Unanswerable, conversion};
use crate::table::{Hook, Suite};

/// Where the API server sends objects to be converted.
pub const CONVERSION_PATH: &str = "/convert";

/// An update carries the object twice, and the API server takes objects of up to 3 MiB; the rest is the envelope.
const ADMISSION_LIMIT: usize = 7 << 20;
/// A list may be converted in one request.
const CONVERSION_LIMIT: usize = 16 << 20;

/// The routes of these suites.
pub fn router(suites: &[Suite], neighbours: Arc<dyn Neighbours>) -> Router {
    let mut admission = Router::new();
    for hook in suites.iter().flat_map(Suite::hooks) {
        let asked = Asked {
            hook,
            neighbours: Arc::clone(&neighbours),
        };
        admission = admission.route(&hook.path(), post(admit).with_state(asked));
    }
    let conversion = Router::new()
        .route(CONVERSION_PATH, post(convert))
        .layer(DefaultBodyLimit::max(CONVERSION_LIMIT));
    admission
        .layer(DefaultBodyLimit::max(ADMISSION_LIMIT))
        .merge(conversion)
}

/// What a route needs to answer.
#[derive(Clone)]
struct Asked {
    hook: Hook,
    neighbours: Arc<dyn Neighbours>,
}

async fn admit(State(Asked { hook, neighbours }): State<Asked>, body: Bytes) -> Response {
    answer(&hook.path(), || review::admit(&hook, &body, &*neighbours))
}

async fn convert(body: Bytes) -> Response {
    answer(CONVERSION_PATH, || conversion::convert(&body))
}

/// The answer as a response. Requests share a connection, so a panic must not end it.
fn answer(path: &str, review: impl FnOnce() -> Result<Value, Unanswerable>) -> Response {
    match catch_unwind(AssertUnwindSafe(review)) {
        Ok(Ok(review)) => ([(header::CONTENT_TYPE, "application/json")], review.to_string()).into_response(),
        Ok(Err(problem)) => {
            tracing::warn!(path, %problem, "a review could not be answered");
            (StatusCode::BAD_REQUEST, problem.to_string()).into_response()
        }
        Err(_) => {
            tracing::error!(path, "a rule panicked; the request is refused");
            let problem = "a rule failed on this object, which is a defect of the provider; report it with the object";
            (StatusCode::INTERNAL_SERVER_ERROR, problem).into_response()
        }
    }
}
