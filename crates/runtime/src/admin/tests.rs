use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use chrono::DateTime;
use futures::future::BoxFuture;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use metal3_domain::clock::{Clock, ManualClock};
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use tower::{ServiceExt as _, service_fn};

use super::*;
use crate::client::{ClientFactory, Settings};
use crate::logs::{self, Format, Level};
use crate::metrics::Metrics;
use crate::tls::ClientAddress;

async fn ask(router: &Router, request: Request<Body>) -> (StatusCode, String) {
    let answer = router.clone().oneshot(request).await.unwrap();
    let code = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(router: &Router, path: &str) -> (StatusCode, String) {
    ask(router, Request::get(path).body(Body::empty()).unwrap()).await
}

fn with_token(method: &str, path: &str, authorization: &str, body: &str) -> Request<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", authorization);
    request.body(Body::from(body.to_owned())).unwrap()
}

#[tokio::test]
async fn a_probe_returns_the_result_of_each_check_and_a_note_does_not_fail_it() {
    let (alive, ready) = (Health::default(), Health::default());
    let listed = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&listed);
    ready.add("cache ippools", move || {
        CheckResult::failed_unless(seen.load(Ordering::Relaxed) > 0, "the first list is not complete")
    });
    ready.add("guard capm3", || {
        CheckResult::Note("controllers of capm3 are idle".to_owned())
    });
    let router = health(&alive, &ready);
    let (code, text) = get(&router, "/readyz").await;
    assert_eq!(code, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(
        text,
        "[-]cache ippools failed: the first list is not complete\n[~]guard capm3 ok: controllers of capm3 are idle\n\
         readyz check failed\n"
    );
    listed.store(1, Ordering::Relaxed);
    let (code, text) = get(&router, "/readyz").await;
    assert_eq!(code, StatusCode::OK);
    assert!(
        text.starts_with("[+]cache ippools ok\n") && text.ends_with("readyz check passed\n"),
        "{text}"
    );
    assert_eq!(
        get(&router, "/healthz").await,
        (StatusCode::OK, "healthz check passed\n".to_owned())
    );
}

#[tokio::test]
async fn a_check_can_be_requested_by_name_and_added_later() {
    let (alive, ready) = (Health::default(), Health::default());
    let router = health(&alive, &ready);
    assert_eq!(get(&router, "/healthz/watch").await.0, StatusCode::NOT_FOUND);
    alive.add("watch", || CheckResult::Passed);
    alive.add("other", || CheckResult::Failed("no".to_owned()));
    assert_eq!(get(&router, "/healthz/watch").await.0, StatusCode::OK);
    assert_eq!(
        get(&router, "/healthz/other").await.0,
        StatusCode::INTERNAL_SERVER_ERROR
    );
    assert_eq!(get(&router, "/readyz/watch").await.0, StatusCode::NOT_FOUND);
}

/// Accepts `good`, denies `weak`, fails for `broken`, and records each review.
#[derive(Debug, Default)]
struct TestReviewer {
    asked: Mutex<Vec<String>>,
}

impl Reviewer for TestReviewer {
    fn review<'a>(
        &'a self,
        token: &'a SecretString,
        verb: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, kube::Result<AccessDecision>> {
        Box::pin(async move {
            let token = token.expose_secret();
            self.asked.lock().push(format!("{token} {verb} {path}"));
            match token {
                "good" => Ok(AccessDecision::Allowed),
                "weak" => Ok(AccessDecision::Denied { user: "weak".into() }),
                "hung" => std::future::pending().await,
                "broken" => Err(kube::Error::LinesCodecMaxLineLengthExceeded),
                _ => Ok(AccessDecision::Unauthenticated),
            }
        })
    }
}

struct Admin {
    router: Router,
    judge: Arc<TestReviewer>,
    clock: Arc<ManualClock>,
    level: logs::Verbosity,
    // The level handle works only while its subscriber exists.
    _subscriber: Box<dyn std::any::Any>,
}

fn admin() -> Admin {
    let judge = Arc::new(TestReviewer::default());
    let clock = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH));
    let (subscriber, level) = logs::subscriber(Format::Text, Level::INFO, std::io::sink);
    let gate = Gate::new(judge.clone(), clock.clone());
    Admin {
        router: diagnostics(&Metrics::new(), &level, &gate),
        judge,
        clock,
        level,
        _subscriber: Box::new(subscriber),
    }
}

#[tokio::test]
async fn denied_caller_gets_the_reason_and_no_content() {
    let admin = admin();
    // Header; status code and a part of the body.
    let rows = [
        ("Bearer good", StatusCode::OK, "# EOF"),
        ("bearer  good ", StatusCode::OK, "# EOF"),
        ("Bearer weak", StatusCode::FORBIDDEN, "weak may not get /metrics"),
        ("Bearer stranger", StatusCode::UNAUTHORIZED, "send a token"),
        ("Bearer ", StatusCode::UNAUTHORIZED, "send a token"),
        ("Basic Z29vZA==", StatusCode::UNAUTHORIZED, "send a token"),
        ("good", StatusCode::UNAUTHORIZED, "send a token"),
        (
            "Bearer broken",
            StatusCode::INTERNAL_SERVER_ERROR,
            "could not be found out",
        ),
    ];
    for (header, code, part) in rows {
        let (seen, text) = ask(&admin.router, with_token("GET", "/metrics", header, "")).await;
        assert_eq!(seen, code, "{header}");
        assert!(text.contains(part), "{header}: {text}");
        assert_eq!(text.contains("process_"), code == StatusCode::OK, "{header}");
    }
    assert_eq!(get(&admin.router, "/metrics").await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_decision_is_cached_for_its_time_and_its_request_only() {
    let admin = admin();
    let asked = || admin.judge.asked.lock().len();
    let call = |header: &'static str, path: &'static str| ask(&admin.router, with_token("GET", path, header, ""));
    for _ in 0..5 {
        call("Bearer good", "/metrics").await;
        call("Bearer weak", "/metrics").await;
    }
    assert_eq!(asked(), 2);
    call("Bearer good", "/debug/flags/v").await;
    assert_eq!(asked(), 3, "another path is another key");
    admin.clock.advance(Duration::from_secs(11));
    call("Bearer good", "/metrics").await;
    assert_eq!(asked(), 3);
    call("Bearer weak", "/metrics").await;
    assert_eq!(asked(), 4, "a denial is cached for a shorter time");
    admin.clock.advance(Duration::from_secs(50));
    call("Bearer good", "/metrics").await;
    assert_eq!(asked(), 5);
    call("Bearer broken", "/metrics").await;
    call("Bearer broken", "/metrics").await;
    assert_eq!(asked(), 7, "a failed review is not cached");
}

/// Sends a request from this address.
async fn call_from(router: &Router, address: u8, token: &str) -> StatusCode {
    let mut request = with_token("GET", "/metrics", &format!("Bearer {token}"), "");
    request
        .extensions_mut()
        .insert(ClientAddress([192, 0, 2, address].into()));
    ask(router, request).await.0
}

/// Starts reviews that never end, and returns once they run.
async fn hang(admin: &Admin, addresses: std::ops::Range<u8>) -> tokio::task::JoinSet<StatusCode> {
    let mut tasks = tokio::task::JoinSet::new();
    let wanted = admin.judge.asked.lock().len() + 2 * addresses.len();
    for address in addresses.flat_map(|address| [address; 2]) {
        let router = admin.router.clone();
        tasks.spawn(async move { call_from(&router, address, "hung").await });
    }
    while admin.judge.asked.lock().len() < wanted {
        tokio::task::yield_now().await;
    }
    tasks
}

#[tokio::test]
async fn unknown_callers_do_not_lock_out_a_caller_that_was_allowed_before() {
    let admin = admin();
    assert_eq!(call_from(&admin.router, 1, "good").await, StatusCode::OK);
    // More than both caches hold.
    for number in 0..1000 {
        let status = call_from(&admin.router, 2, &format!("stranger-{number}")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let asked = || admin.judge.asked.lock().len();
    assert_eq!(
        (call_from(&admin.router, 1, "good").await, asked()),
        (StatusCode::OK, 1001),
        "still cached"
    );
    // Reviews of every kind hang, those of the caller's own address too, and the decision is outdated.
    let hung = hang(&admin, 1..5).await;
    admin.clock.advance(Duration::from_secs(61));
    assert_eq!(call_from(&admin.router, 1, "good").await, StatusCode::OK);
    drop(hung);
}

#[tokio::test(start_paused = true)]
async fn an_address_with_many_reviews_leaves_some_to_others() {
    let admin = admin();
    let hung = hang(&admin, 1..2).await;
    assert_eq!(
        call_from(&admin.router, 1, "other").await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(call_from(&admin.router, 2, "good").await, StatusCode::OK);
    let more = hang(&admin, 2..5).await;
    assert_eq!(
        call_from(&admin.router, 6, "new").await,
        StatusCode::SERVICE_UNAVAILABLE,
        "after its turn"
    );
    drop((hung, more));
    while call_from(&admin.router, 6, "new").await != StatusCode::UNAUTHORIZED {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_log_level_is_shown_and_set_by_name_or_number() {
    let admin = admin();
    let put = |body: &'static str| ask(&admin.router, with_token("PUT", "/debug/flags/v", "Bearer good", body));
    for (body, level) in [
        ("debug", Level::DEBUG),
        ("0\n", Level::INFO),
        ("10", Level::TRACE),
        ("error", Level::ERROR),
    ] {
        assert_eq!(put(body).await.0, StatusCode::OK, "{body}");
        assert_eq!(admin.level.get(), level);
        let (_, shown) = ask(&admin.router, with_token("GET", "/debug/flags/v", "Bearer good", "")).await;
        assert_eq!(shown, format!("{level}\n"));
    }
    for body in ["loud", "", "99"] {
        let (code, text) = put(body).await;
        assert_eq!(code, StatusCode::BAD_REQUEST, "{body}");
        assert!(text.contains("verbosity from 0 to 10"), "{text}");
    }
    let long = "debug                                                              ";
    assert_eq!(put(long).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(admin.level.get(), Level::ERROR, "nothing changed");
    let questions = admin.judge.asked.lock().clone();
    assert!(
        questions.contains(&"good put /debug/flags/v".to_owned()),
        "{questions:?}"
    );
}

#[tokio::test]
async fn the_log_level_requires_authentication() {
    let admin = admin();
    let request = with_token("PUT", "/debug/flags/v", "Bearer weak", "trace");
    assert_eq!(ask(&admin.router, request).await.0, StatusCode::FORBIDDEN);
    assert_eq!(admin.level.get(), Level::INFO);
}

#[tokio::test]
async fn insecure_diagnostics_serve_only_metrics() {
    let router = insecure_diagnostics(&Metrics::new());
    let answer = router
        .clone()
        .oneshot(Request::get("/metrics").body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.headers()["content-type"], crate::metrics::CONTENT_TYPE);
    assert_eq!(get(&router, "/debug/flags/v").await.0, StatusCode::NOT_FOUND);
}

crate::role! {
    /// The role of the gate.
    struct Gating {
        TokenReview: Create;
        SubjectAccessReview: Create;
    }
}

/// A reviewer over an API server that answers reviews with these statuses.
fn cluster(token: Value, access: Value) -> (ClusterReviewer, Arc<Mutex<BTreeMap<String, Value>>>) {
    let sent = Arc::new(Mutex::new(BTreeMap::new()));
    let seen = Arc::clone(&sent);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let (seen, token, access) = (Arc::clone(&seen), token.clone(), access.clone());
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            seen.lock().insert(path.clone(), review["spec"].clone());
            review["status"] = if path.ends_with("/tokenreviews") { token } else { access };
            let body = Full::from(review.to_string());
            Ok::<_, Infallible>(Response::builder().status(201).body(body).unwrap())
        }
    });
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(DateTime::UNIX_EPOCH));
    let connector = ClientFactory::new(Settings::new("m", "v"), clock, Metrics::new().requests());
    (ClusterReviewer::new::<Gating>(&connector.over(service, "sim")), sent)
}

#[tokio::test]
async fn a_caller_is_reviewed_by_the_api_server() {
    let known = json!({"authenticated": true, "user": {
        "username": "system:serviceaccount:monitoring:prometheus", "uid": "u1", "groups": ["g"], "extra": {"k": ["v"]},
    }});
    let denied = AccessDecision::Denied {
        user: "system:serviceaccount:monitoring:prometheus".into(),
    };
    // Statuses of the two reviews; then the decision.
    let rows = [
        (known.clone(), json!({"allowed": true}), AccessDecision::Allowed),
        (known.clone(), json!({"allowed": false}), denied.clone()),
        (known.clone(), json!({"allowed": true, "denied": true}), denied.clone()),
        (known.clone(), Value::Null, denied),
        (
            json!({"authenticated": false}),
            json!({"allowed": true}),
            AccessDecision::Unauthenticated,
        ),
        (
            json!({"user": {"username": "a"}}),
            json!({"allowed": true}),
            AccessDecision::Unauthenticated,
        ),
        (
            json!({"authenticated": true}),
            json!({"allowed": true}),
            AccessDecision::Unauthenticated,
        ),
        (Value::Null, json!({"allowed": true}), AccessDecision::Unauthenticated),
    ];
    for (token, access, expected) in rows {
        let (reviewer, sent) = cluster(token.clone(), access.clone());
        let decision = reviewer
            .review(&SecretString::from("t0ken"), "get", "/metrics")
            .await
            .unwrap();
        assert_eq!(decision, expected, "{token} {access}");
        let sent = sent.lock();
        assert_eq!(sent["/apis/authentication.k8s.io/v1/tokenreviews"]["token"], "t0ken");
        if let Some(asked) = sent.get("/apis/authorization.k8s.io/v1/subjectaccessreviews") {
            let user = &token["user"];
            assert_eq!((&asked["user"], &asked["groups"]), (&user["username"], &user["groups"]));
            assert_eq!(asked["extra"], user["extra"]);
            assert_eq!(
                asked["nonResourceAttributes"],
                json!({"path": "/metrics", "verb": "get"})
            );
        }
    }
}
