//! Authentication and authorization of diagnostics, with a short cache of decisions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use metal3_domain::clock::{Clock, Monotonic};
use parking_lot::Mutex;
use ring::digest::{Context, SHA256};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;

use super::review::{AccessDecision, Reviewer};

/// How long an allowed caller is cached: a revoked token works that much longer.
const ALLOWED_TTL: Duration = Duration::from_secs(60);
/// How long a denied caller is cached: a role that was just granted works soon.
const DENIED_TTL: Duration = Duration::from_secs(10);
/// Cached decisions. Scrapers are few; more indicates an attack.
const CACHE_SIZE: usize = 256;
/// Concurrent reviews, so that an attack does not overload the API server.
const REVIEWS: usize = 8;

/// Identifies a request: a digest, so that no token is stored.
type CacheKey = Vec<u8>;

/// Decides about callers; clones share the cache.
#[derive(Debug, Clone)]
pub struct Gate {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    reviewer: Arc<dyn Reviewer>,
    clock: Arc<dyn Clock>,
    cache: Mutex<BTreeMap<CacheKey, (AccessDecision, Monotonic)>>,
    reviews: Semaphore,
}

impl Gate {
    /// A gate that calls `reviewer` and caches its decisions by `clock`.
    #[must_use]
    pub fn new(reviewer: Arc<dyn Reviewer>, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                reviewer,
                clock,
                cache: Mutex::default(),
                reviews: Semaphore::new(REVIEWS),
            }),
        }
    }

    /// The error response; `None` when the caller is allowed.
    async fn refusal(&self, call: &Caller) -> Option<Response> {
        let Some(token) = &call.token else {
            return Some(unauthenticated());
        };
        let key = call.digest(token);
        let decision = match self.shared.cached(&key) {
            Some(decision) => decision,
            None => match self.review(token, call).await {
                Ok(decision) => self.shared.cache_decision(key, decision),
                Err(refusal) => return Some(refusal),
            },
        };
        match decision {
            AccessDecision::Allowed => None,
            AccessDecision::Unauthenticated => Some(unauthenticated()),
            AccessDecision::Denied { user } => {
                let Caller { verb, path, .. } = call;
                let text = format!("{user} may not {verb} {path}: grant the verb on that nonResourceURL\n");
                Some((StatusCode::FORBIDDEN, text).into_response())
            }
        }
    }

    async fn review(&self, token: &SecretString, call: &Caller) -> Result<AccessDecision, Response> {
        let Ok(_turn) = self.shared.reviews.try_acquire() else {
            let busy = (
                StatusCode::SERVICE_UNAVAILABLE,
                [(RETRY_AFTER, "1")],
                "too many callers\n",
            );
            return Err(busy.into_response());
        };
        let decision = self.shared.reviewer.review(token, &call.verb, &call.path).await;
        decision.map_err(|error| {
            tracing::warn!(%error, "caller of diagnostics not reviewed, so refused");
            let text = "whether you may could not be found out\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        })
    }
}

/// What the decision depends on. Not the request: its body is not `Sync`.
struct Caller {
    token: Option<SecretString>,
    verb: String,
    path: String,
}

impl Caller {
    fn of(request: &Request) -> Self {
        Self {
            token: bearer(request),
            verb: request.method().as_str().to_ascii_lowercase(),
            path: request.uri().path().to_owned(),
        }
    }

    fn digest(&self, token: &SecretString) -> CacheKey {
        let mut context = Context::new(&SHA256);
        // None of the three contains a blank, or the token would not have been parsed.
        for part in [token.expose_secret(), " ", &self.verb, " ", &self.path] {
            context.update(part.as_bytes());
        }
        context.finish().as_ref().to_vec()
    }
}

impl Shared {
    fn cached(&self, key: &CacheKey) -> Option<AccessDecision> {
        let now = self.clock.monotonic();
        let cache = self.cache.lock();
        let (decision, until) = cache.get(key)?;
        (now < *until).then(|| decision.clone())
    }

    fn cache_decision(&self, key: CacheKey, decision: AccessDecision) -> AccessDecision {
        let now = self.clock.monotonic();
        let ttl = match decision {
            AccessDecision::Allowed => ALLOWED_TTL,
            AccessDecision::Unauthenticated | AccessDecision::Denied { .. } => DENIED_TTL,
        };
        let mut cache = self.cache.lock();
        cache.retain(|_, (_, until)| now < *until);
        if cache.len() >= CACHE_SIZE {
            cache.clear();
        }
        cache.insert(key, (decision.clone(), now.after(ttl)));
        decision
    }
}

/// The middleware.
pub(super) async fn authorize(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let call = Caller::of(&request);
    match gate.refusal(&call).await {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
}

fn bearer(request: &Request) -> Option<SecretString> {
    let header = request.headers().get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| SecretString::from(token))
}

fn unauthenticated() -> Response {
    let text = "send a token: Authorization: Bearer ...\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], text).into_response()
}
