//! The routes: one for each hook of the [`table`](crate::table), and `/convert`.
//!
//! The handlers read bodies, write responses and catch panics of rules. Listening and TLS are left to the server.

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

use crate::related_objects::{NoRelatedObjects, RelatedObjects};
use crate::review::{self, InvalidReview, Reviewed, conversion};
use crate::table::{Hook, Suite};

/// Path of conversion reviews.
pub const CONVERSION_PATH: &str = "/convert";

/// An update contains the object twice, and the API server accepts objects of up to 3 MiB; the rest is for the
/// envelope.
const ADMISSION_LIMIT: usize = 7 << 20;
/// A list may be converted in one request.
const CONVERSION_LIMIT: usize = 16 << 20;

/// Metrics of the requests.
#[derive(Clone, Debug)]
pub struct Instrumentation {
    /// The metrics.
    pub metrics: ServerMetrics,
    /// The clock for durations.
    pub clock: Arc<dyn Clock>,
}

/// The routes of these suites, each with its access to other objects.
pub fn router(suites: &[(Suite, Arc<dyn RelatedObjects>)], instrumentation: &Instrumentation) -> Router {
    let mut admission = Router::new();
    for (suite, related_objects) in suites {
        for hook in suite.hooks() {
            let path = hook.path();
            let state = RouteState {
                hook,
                related_objects: Arc::clone(related_objects),
                endpoint: Endpoint::new(&path, instrumentation),
            };
            admission = admission.route(&path, post(admit).with_state(state));
        }
    }
    let conversion = post(convert).with_state(Endpoint::new(CONVERSION_PATH, instrumentation));
    let conversion = Router::new()
        .route(CONVERSION_PATH, conversion)
        .layer(DefaultBodyLimit::max(CONVERSION_LIMIT));
    admission
        .layer(DefaultBodyLimit::max(ADMISSION_LIMIT))
        .merge(conversion)
}

/// The state of a route.
#[derive(Clone)]
struct RouteState {
    hook: Hook,
    related_objects: Arc<dyn RelatedObjects>,
    endpoint: Endpoint,
}

async fn admit(State(state): State<RouteState>, body: Bytes) -> Response {
    let RouteState {
        hook,
        related_objects,
        endpoint,
    } = state;
    let review = || review::admit(&hook, &body, &*related_objects);
    endpoint.answer(review, &*related_objects).await
}

async fn convert(State(endpoint): State<Endpoint>, body: Bytes) -> Response {
    let review = || conversion::convert(&body).map(Reviewed::Answered);
    endpoint.answer(review, &NoRelatedObjects).await
}

/// A path with its metrics.
#[derive(Clone)]
struct Endpoint {
    path: &'static str,
    instrumentation: Instrumentation,
}

impl Endpoint {
    /// The path is leaked, because it is a metric label.
    fn new(path: &str, instrumentation: &Instrumentation) -> Self {
        Self {
            path: path.to_owned().leak(),
            instrumentation: instrumentation.clone(),
        }
    }

    /// Runs a review and builds the response. A panic must not end the connection, which other requests share.
    async fn answer(
        &self,
        review: impl FnOnce() -> Result<Reviewed, InvalidReview>,
        related_objects: &dyn RelatedObjects,
    ) -> Response {
        let (path, begun) = (self.path, self.instrumentation.clock.monotonic());
        let request = self.instrumentation.metrics.begin(path);
        let reviewed = match catch_unwind(AssertUnwindSafe(review)) {
            Ok(Ok(Reviewed::Asks(pending))) => {
                let decision = related_objects.may(&pending.question).await;
                Ok(Ok(pending.answer(&decision)))
            }
            Ok(Ok(Reviewed::Answered(review))) => Ok(Ok(review)),
            Ok(Err(problem)) => Ok(Err(problem)),
            Err(_) => Err(()),
        };
        let response = match reviewed {
            Ok(Ok(review)) => ([(header::CONTENT_TYPE, "application/json")], review.to_string()).into_response(),
            Ok(Err(problem)) => {
                tracing::warn!(path, %problem, "invalid review");
                (StatusCode::BAD_REQUEST, problem.to_string()).into_response()
            }
            Err(()) => {
                self.instrumentation.metrics.panicked();
                tracing::error!(path, "a rule panicked; the request is rejected");
                (StatusCode::INTERNAL_SERVER_ERROR, DEFECT).into_response()
            }
        };
        let took = self.instrumentation.clock.monotonic().since(begun);
        request.end(response.status().as_u16(), took);
        response
    }
}

const DEFECT: &str = "a rule failed on this object, which is a defect of the provider; report it with the object";
