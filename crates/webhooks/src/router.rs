//! The routes: one for each hook of the [`table`](crate::table), and `/convert`.
//!
//! The handlers check callers, receive bodies and write responses; the limits of memory and time in `limits` apply
//! to all of them together. Listening and TLS are left to the server.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use metal3_domain::clock::Clock;
use metal3_runtime::metrics::ServerMetrics;
use metal3_runtime::tls::{ClientAddress, ClientName};
use tokio::time::{Instant, timeout_at};

use crate::limits::{Limits, Rejection, Reviewed, Size};
use crate::related_objects::RelatedObjects;
use crate::review::{self, InvalidReview, Pending, conversion};
use crate::table::{Hook, Suite, Task};

/// Path of conversion reviews.
pub const CONVERSION_PATH: &str = "/convert";

/// An update contains the object twice, and the API server accepts objects of up to 3 MiB; the rest is for the
/// envelope.
const ADMISSION_LIMIT: usize = 7 << 20;
/// A list may be converted in one request.
const CONVERSION_LIMIT: usize = 16 << 20;
/// Depth of an item of `request.objects`.
const ITEM_DEPTH: u32 = 3;

/// An object of the older version contains itself once more, as text in an annotation. The typed forms are smaller than the
/// values that are counted. Everything that can be stored must fit, because one object that is not converted makes lists of
/// its kind fail.
const CONVERSION: Size = Size {
    body: CONVERSION_LIMIT,
    item_depth: Some(ITEM_DEPTH),
    copies: 4,
    answer: 6,
};

/// The size of the reviews of a hook: a mutation with defaults writes the object before and after, and compares.
fn size(hook: &Hook) -> Size {
    Size {
        body: ADMISSION_LIMIT,
        item_depth: None,
        copies: match hook.task {
            Task::Mutate if hook.has_defaults() => 4,
            Task::Mutate | Task::Validate => 2,
        },
        answer: 0,
    }
}

/// The time for the decision about a right of the user.
const QUESTION_TIME: Duration = Duration::from_secs(5);

/// Metrics of the requests.
#[derive(Clone, Debug)]
pub struct Instrumentation {
    /// The metrics.
    pub metrics: ServerMetrics,
    /// The clock for durations.
    pub clock: Arc<dyn Clock>,
}

/// Who may send admission reviews. Conversion reviews are accepted from every caller: the API server has no setting for
/// a client certificate in these requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Callers {
    /// Every caller.
    #[default]
    Any,
    /// Callers with a client certificate that the server has verified.
    Certified {
        /// Accepted common names; empty for every one.
        names: BTreeSet<String>,
    },
}

impl Callers {
    fn accept(&self, client: Option<&ClientName>) -> bool {
        match (self, client) {
            (Self::Any, _) => true,
            (Self::Certified { names }, Some(ClientName(name))) => names.is_empty() || names.contains(name),
            (Self::Certified { .. }, None) => false,
        }
    }
}

/// The routes of these suites, each with its access to other objects.
pub fn router(
    suites: &[(Suite, Arc<dyn RelatedObjects>)],
    instrumentation: &Instrumentation,
    callers: &Callers,
) -> Router {
    let (mut admission, limits) = (Router::new(), Limits::default());
    for (suite, related_objects) in suites {
        for hook in suite.hooks().into_iter().chain(suite.former_hooks()) {
            let path = hook.path();
            let state = RouteState {
                hook,
                related_objects: Arc::clone(related_objects),
                endpoint: Endpoint::new(&path, instrumentation, &limits),
            };
            admission = admission.route(&path, post(admit).with_state(state));
        }
    }
    let conversion = post(convert).with_state(Endpoint::new(CONVERSION_PATH, instrumentation, &limits));
    admission
        .layer(from_fn_with_state(callers.clone(), authenticate))
        .merge(Router::new().route(CONVERSION_PATH, conversion))
}

async fn authenticate(State(callers): State<Callers>, request: Request, next: Next) -> Response {
    if callers.accept(request.extensions().get::<ClientName>()) {
        return next.run(request).await;
    }
    let text = "send a client certificate that --webhook-client-ca-file and --webhook-client-names accept\n";
    (StatusCode::UNAUTHORIZED, text).into_response()
}

/// The state of a route.
#[derive(Clone)]
struct RouteState {
    hook: Hook,
    related_objects: Arc<dyn RelatedObjects>,
    endpoint: Endpoint,
}

async fn admit(State(state): State<RouteState>, request: Request) -> Response {
    let RouteState {
        hook,
        related_objects,
        endpoint,
    } = state;
    let objects = Arc::clone(&related_objects);
    let review = move |body: &[u8], _: usize| review::admit(&hook, body, &*objects);
    let ask = async move |pending: Box<Pending>, deadline: Instant| {
        let until = deadline.min(Instant::now() + QUESTION_TIME);
        let late = |_| Err("the API server did not answer in time".to_owned());
        let decision = timeout_at(until, related_objects.may(&pending.question)).await;
        let decision = decision.unwrap_or_else(late);
        pending.answer(&decision)
    };
    endpoint.answer(request, size(&hook), review, ask).await
}

async fn convert(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let review = |body: &[u8], longest: usize| conversion::convert(body, longest).map(Reviewed::Answered);
    let never = async |never: Infallible, _: Instant| match never {};
    endpoint.answer(request, CONVERSION, review, never).await
}

/// A path with its metrics.
#[derive(Clone)]
struct Endpoint {
    path: &'static str,
    instrumentation: Instrumentation,
    limits: Limits,
}

impl Endpoint {
    /// The path is leaked, because it is a metric label.
    fn new(path: &str, instrumentation: &Instrumentation, limits: &Limits) -> Self {
        Self {
            path: path.to_owned().leak(),
            instrumentation: instrumentation.clone(),
            limits: limits.clone(),
        }
    }

    /// Runs a review and builds the response. A panic must not end the connection, which other requests share.
    async fn answer<Q, F, A>(
        &self,
        request: Request,
        size: Size,
        review: F,
        ask: impl FnOnce(Q, Instant) -> A,
    ) -> Response
    where
        Q: Send + 'static,
        F: FnOnce(&[u8], usize) -> Result<Reviewed<Q>, InvalidReview> + Send + 'static,
        A: Future<Output = Vec<Bytes>>,
    {
        let client = request.extensions().get::<ClientAddress>().map(|client| client.0);
        let body = (client, request.into_body());
        let (path, begun) = (self.path, self.instrumentation.clock.monotonic());
        let request = self.instrumentation.metrics.begin(path);
        let response = match self.limits.review(body, size, review, ask).await {
            Ok(Ok(answer)) => ([(header::CONTENT_TYPE, "application/json")], Body::new(answer)).into_response(),
            Ok(Err(problem)) => {
                tracing::warn!(path, %problem, "invalid review");
                (StatusCode::BAD_REQUEST, problem.to_string()).into_response()
            }
            Err(rejection) => {
                self.report(rejection);
                rejection.response().into_response()
            }
        };
        let took = self.instrumentation.clock.monotonic().since(begun);
        request.end(response.status().as_u16(), took);
        response
    }

    fn report(&self, rejection: Rejection) {
        let path = self.path;
        if rejection == Rejection::Panicked {
            self.instrumentation.metrics.panicked();
            tracing::error!(path, "a rule panicked; the request is rejected");
        } else {
            tracing::warn!(path, ?rejection, "review rejected without an answer");
        }
    }
}

#[cfg(test)]
mod tests {
    use metal3_domain::clock::SystemClock;
    use metal3_runtime::metrics::Metrics;
    use tower::ServiceExt as _;

    use super::*;
    use crate::related_objects::NoRelatedObjects;
    use crate::table::SUITES;

    #[test]
    fn callers_are_accepted_by_their_certificate() {
        let certified = |names: &[&str]| Callers::Certified {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let table = [
            (Callers::Any, None, true),
            (Callers::Any, Some("other"), true),
            (certified(&[]), None, false),
            (certified(&[]), Some("other"), true),
            (certified(&["api", "api-2"]), Some("api-2"), true),
            (certified(&["api", "api-2"]), Some("other"), false),
            (certified(&["api"]), Some(""), false),
            (certified(&["api"]), None, false),
        ];
        for (callers, name, accepted) in table {
            let client = name.map(|name| ClientName(name.to_owned()));
            assert_eq!(callers.accept(client.as_ref()), accepted, "{callers:?} {name:?}");
        }
    }

    /// The status of the response to an empty request of a client with a certificate of this name.
    async fn status(callers: &Callers, path: &str, client: Option<&str>) -> StatusCode {
        let instrumentation = Instrumentation {
            metrics: Metrics::new().servers(),
            clock: Arc::new(SystemClock::start()),
        };
        let related_objects: Arc<dyn RelatedObjects> = Arc::new(NoRelatedObjects);
        let suites = SUITES.map(|suite| (suite, Arc::clone(&related_objects)));
        let mut request = Request::post(path).body(Body::empty()).unwrap();
        if let Some(name) = client {
            request.extensions_mut().insert(ClientName(name.to_owned()));
        }
        let router = router(&suites, &instrumentation, callers);
        router.oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn review_of_a_caller_that_is_not_accepted_is_not_read() {
        let certified = Callers::Certified {
            names: ["api".to_owned()].into(),
        };
        let hooks = || SUITES.iter().flat_map(Suite::hooks);
        assert!(hooks().count() > 20);
        for path in hooks().map(|hook| hook.path()) {
            for (callers, client, expected) in [
                (&certified, None, StatusCode::UNAUTHORIZED),
                (&certified, Some("other"), StatusCode::UNAUTHORIZED),
                // An empty body is no review.
                (&certified, Some("api"), StatusCode::BAD_REQUEST),
                (&Callers::Any, None, StatusCode::BAD_REQUEST),
            ] {
                assert_eq!(status(callers, &path, client).await, expected, "{path} {client:?}");
            }
        }
    }
}
