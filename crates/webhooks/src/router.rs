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
use metal3_domain::clock::Clock;
use metal3_runtime::metrics::ServerMetrics;
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

/// What is seen of the requests.
#[derive(Clone, Debug)]
pub struct Witness {
    /// Where they are counted.
    pub metrics: ServerMetrics,
    /// What times them.
    pub clock: Arc<dyn Clock>,
}

/// The routes of these suites, each with what it may know of other objects.
pub fn router(suites: &[(Suite, Arc<dyn Neighbours>)], witness: &Witness) -> Router {
    let mut admission = Router::new();
    for (suite, neighbours) in suites {
        for hook in suite.hooks() {
            let path = hook.path();
            let asked = Asked {
                hook,
                neighbours: Arc::clone(neighbours),
                place: Place::new(&path, witness),
            };
            admission = admission.route(&path, post(admit).with_state(asked));
        }
    }
    let conversion = post(convert).with_state(Place::new(CONVERSION_PATH, witness));
    let conversion = Router::new()
        .route(CONVERSION_PATH, conversion)
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
    place: Place,
}

async fn admit(State(asked): State<Asked>, body: Bytes) -> Response {
    let Asked {
        hook,
        neighbours,
        place,
    } = asked;
    place.answer(|| review::admit(&hook, &body, &*neighbours))
}

async fn convert(State(place): State<Place>, body: Bytes) -> Response {
    place.answer(|| conversion::convert(&body))
}

/// Where a request arrived, and who sees it.
#[derive(Clone)]
struct Place {
    path: &'static str,
    witness: Witness,
}

impl Place {
    /// The path is a label of metrics for as long as the program lives.
    fn new(path: &str, witness: &Witness) -> Self {
        Self {
            path: path.to_owned().leak(),
            witness: witness.clone(),
        }
    }

    /// The answer as a response. Requests share a connection, so a panic must not end it.
    fn answer(&self, review: impl FnOnce() -> Result<Value, Unanswerable>) -> Response {
        let (path, begun) = (self.path, self.witness.clock.monotonic());
        let request = self.witness.metrics.begin(path);
        let response = match catch_unwind(AssertUnwindSafe(review)) {
            Ok(Ok(review)) => ([(header::CONTENT_TYPE, "application/json")], review.to_string()).into_response(),
            Ok(Err(problem)) => {
                tracing::warn!(path, %problem, "a review could not be answered");
                (StatusCode::BAD_REQUEST, problem.to_string()).into_response()
            }
            Err(_) => {
                self.witness.metrics.panicked();
                tracing::error!(path, "a rule panicked; the request is refused");
                (StatusCode::INTERNAL_SERVER_ERROR, DEFECT).into_response()
            }
        };
        let took = self.witness.clock.monotonic().since(begun);
        request.end(response.status().as_u16(), took);
        response
    }
}

const DEFECT: &str = "a rule failed on this object, which is a defect of the provider; report it with the object";
