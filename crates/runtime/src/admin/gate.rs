//! Authentication and authorization of diagnostics, with a short cache of decisions.
//!
//! Callers with invalid tokens must not lock out the others: denials have a cache of their own, each address has a limit
//! of reviews, and a caller that was allowed before uses reviews that are set apart.

use std::collections::BTreeMap;
use std::net::IpAddr;
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
use tokio::time::timeout;

use super::review::{AccessDecision, Reviewer};
use crate::tls::ClientAddress;

/// How long an allowed caller is cached: a revoked token works that much longer.
const ALLOWED_TTL: Duration = Duration::from_secs(60);
/// How long a denied caller is cached: a role that was just granted works soon.
const DENIED_TTL: Duration = Duration::from_secs(10);
/// Cached decisions about allowed callers, and about others. Scrapers are few; more others indicate an attack.
const CACHE_SIZE: usize = 256;
/// Concurrent reviews, so that an attack does not overload the API server.
const REVIEWS: usize = 8;
/// Concurrent reviews for one address, so that an attacker leaves some of them to other callers.
const REVIEWS_OF_ONE: usize = 2;
/// Concurrent reviews of callers that were allowed before, which other callers do not use up.
const REVIEWS_OF_KNOWN: usize = 4;
/// How long a caller counts as one that was allowed before.
const KNOWN_TTL: Duration = Duration::from_hours(1);
/// The time that a caller waits for its turn.
const TURN: Duration = Duration::from_secs(5);

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
    allowed: Mutex<Decisions>,
    denied: Mutex<Decisions>,
    reviews: Semaphore,
    reviews_of_known: Semaphore,
    /// Reviews that run or wait, by address.
    by_address: Mutex<BTreeMap<Option<IpAddr>, usize>>,
}

/// Decisions with the times until which they are used, and removed.
type Decisions = BTreeMap<CacheKey, (AccessDecision, Monotonic, Monotonic)>;

impl Gate {
    /// A gate that calls `reviewer` and caches its decisions by `clock`.
    #[must_use]
    pub fn new(reviewer: Arc<dyn Reviewer>, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                reviewer,
                clock,
                allowed: Mutex::default(),
                denied: Mutex::default(),
                reviews: Semaphore::new(REVIEWS),
                reviews_of_known: Semaphore::new(REVIEWS_OF_KNOWN),
                by_address: Mutex::default(),
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
            None => match self.review(token, call, self.shared.is_known(&key)).await {
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

    async fn review(&self, token: &SecretString, call: &Caller, known: bool) -> Result<AccessDecision, Response> {
        let Some(_counted) = Counted::of(&self.shared, call.address, known) else {
            return Err(busy());
        };
        let reviews = if known {
            &self.shared.reviews_of_known
        } else {
            &self.shared.reviews
        };
        let Ok(Ok(_turn)) = timeout(TURN, reviews.acquire()).await else {
            return Err(busy());
        };
        let decision = self.shared.reviewer.review(token, &call.verb, &call.path).await;
        decision.map_err(|error| {
            tracing::warn!(%error, "caller of diagnostics not reviewed, so refused");
            let text = "whether you may could not be found out\n";
            (StatusCode::INTERNAL_SERVER_ERROR, text).into_response()
        })
    }
}

/// A review of an address, until it is dropped.
struct Counted<'a> {
    shared: &'a Shared,
    address: Option<IpAddr>,
}

impl<'a> Counted<'a> {
    /// `None` when the address has too many. Reviews of known callers have their own limit.
    fn of(shared: &'a Shared, address: Option<IpAddr>, known: bool) -> Option<Self> {
        let mut by_address = shared.by_address.lock();
        let count = by_address.entry(address).or_default();
        if *count >= REVIEWS_OF_ONE && !known {
            return None;
        }
        *count += 1;
        Some(Self { shared, address })
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut by_address = self.shared.by_address.lock();
        match by_address.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(by_address.remove(&self.address)),
        }
    }
}

/// What the decision depends on. Not the request: its body is not `Sync`.
struct Caller {
    address: Option<IpAddr>,
    token: Option<SecretString>,
    verb: String,
    path: String,
}

impl Caller {
    fn of(request: &Request) -> Self {
        let address = request.extensions().get::<ClientAddress>();
        Self {
            address: address.map(|ClientAddress(address)| *address),
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
        let find = |cache: &Mutex<Decisions>| {
            let cache = cache.lock();
            let (decision, used, _) = cache.get(key)?;
            (now < *used).then(|| decision.clone())
        };
        find(&self.allowed).or_else(|| find(&self.denied))
    }

    /// Whether the caller was allowed a while ago.
    fn is_known(&self, key: &CacheKey) -> bool {
        let now = self.clock.monotonic();
        self.allowed.lock().get(key).is_some_and(|(_, _, kept)| now < *kept)
    }

    fn cache_decision(&self, key: CacheKey, decision: AccessDecision) -> AccessDecision {
        let now = self.clock.monotonic();
        let (cache, used, kept) = match decision {
            AccessDecision::Allowed => (&self.allowed, ALLOWED_TTL, KNOWN_TTL),
            AccessDecision::Unauthenticated | AccessDecision::Denied { .. } => {
                self.allowed.lock().remove(&key);
                (&self.denied, DENIED_TTL, DENIED_TTL)
            }
        };
        let mut cache = cache.lock();
        cache.retain(|_, (_, _, kept)| now < *kept);
        if cache.len() >= CACHE_SIZE {
            let oldest = cache.iter().min_by_key(|(_, (_, used, _))| *used);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|oldest| cache.remove(&oldest));
        }
        cache.insert(key, (decision.clone(), now.after(used), now.after(kept)));
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

fn busy() -> Response {
    let status = StatusCode::SERVICE_UNAVAILABLE;
    (status, [(RETRY_AFTER, "1")], "too many callers\n").into_response()
}

fn unauthenticated() -> Response {
    let text = "send a token: Authorization: Bearer ...\n";
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], text).into_response()
}
