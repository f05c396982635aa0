//! Memory of reviews with hostile bodies, measured by the allocator.
//!
//! In its own binary, because the allocator counts everything and its maximum is never reset.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use cap::Cap;
use http_body_util::BodyExt as _;
use metal3_domain::clock::SystemClock;
use metal3_runtime::metrics::Metrics;
use metal3_webhooks::related_objects::{NoRelatedObjects, RelatedObjects};
use metal3_webhooks::router::{CONVERSION_PATH, Callers, Instrumentation, router};
use metal3_webhooks::table::{SUITES, Suite, Task};
use serde_json::Value;
use tower::ServiceExt as _;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Tests run one after the other, because both would count.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What all reviews together may allocate. A container is limited to 512 MiB.
const LIMIT: usize = 320 << 20;
/// The longest admission and conversion reviews.
const ADMISSION: usize = 7 << 20;
const CONVERSION: usize = 16 << 20;

fn webhooks() -> Router {
    let none: Arc<dyn RelatedObjects> = Arc::new(NoRelatedObjects);
    let instrumentation = Instrumentation {
        metrics: Metrics::new().servers(),
        clock: Arc::new(SystemClock::start()),
    };
    router(
        &SUITES.map(|suite| (suite, Arc::clone(&none))),
        &instrumentation,
        &Callers::Any,
    )
}

fn path(task: Task, kind: &str) -> String {
    let mut hooks = SUITES.iter().flat_map(Suite::hooks);
    let hook = hooks
        .find(|hook| hook.task == task && hook.reviewer.kind == kind)
        .unwrap();
    hook.path()
}

/// `start`, as many copies of `item` as the length allows, and `end`.
fn filled(start: &str, item: &str, end: &str, length: usize) -> Vec<u8> {
    let count = (length - start.len() - end.len()) / item.len() - 1;
    [start, &item.repeat(count), item.trim_end_matches(','), end]
        .concat()
        .into_bytes()
}

const REQUEST: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","name":"p",
"operation":"CREATE","resource":{"group":"ipam.metal3.io","version":"v1alpha1","resource":"ippools"},
"object":{"apiVersion":"ipam.metal3.io/v1alpha1","kind":"IPPool","metadata":{"name":"p","namespace":"metal"},
"spec":{"namePrefix":"p","#;

/// A control character that JSON may contain as it is.
const DELETE: &str = "\u{7f}";

/// A valid review with a long text in front of this part.
fn with_long(part: &str) -> Vec<u8> {
    let long = format!("{}{part}", DELETE.repeat(6 << 20));
    assert!(REQUEST.contains(part));
    format!("{}\"pools\":[{{}}]}}}}}}}}", REQUEST.replacen(part, &long, 1)).into_bytes()
}

fn admission(member: &str, item: &str, length: usize) -> Vec<u8> {
    filled(&format!("{REQUEST}\"{member}\":["), item, "]}}}}", length)
}

fn conversion(member: &str, item: &str, length: usize) -> Vec<u8> {
    let start = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u",
"desiredAPIVersion":"infrastructure.cluster.x-k8s.io/v1beta2","{member}":["#
    );
    filled(&start, item, "]}}", length)
}

/// Posts the same body several times at once, and returns the first response.
async fn post(webhooks: &Router, path: &str, body: Vec<u8>, times: usize) -> (StatusCode, Vec<u8>) {
    let send = || async {
        let request = Request::post(path).body(Body::from(body.clone())).unwrap();
        let response = webhooks.clone().oneshot(request).await.unwrap();
        (
            response.status(),
            response.into_body().collect().await.unwrap().to_bytes().to_vec(),
        )
    };
    let sending: Vec<_> = (0..times).map(|_| send()).collect();
    futures::future::join_all(sending).await.remove(0)
}

/// Messages quote texts, and write such a character as six.
fn long_texts(pool: &str) -> Vec<(&'static str, &str, Vec<u8>)> {
    vec![
        (
            "a text in place of a review",
            CONVERSION_PATH,
            format!("\"{}\"", DELETE.repeat(15 << 20)).into_bytes(),
        ),
        (
            "a text in place of a request",
            CONVERSION_PATH,
            format!("{{\"request\":\"{}\"}}", DELETE.repeat(15 << 20)).into_bytes(),
        ),
        (
            "a text in place of objects",
            CONVERSION_PATH,
            String::from_utf8(conversion("objects", "0,", 1 << 10))
                .unwrap()
                .replace("[0", &format!("\"{}\",\"x\":[0", DELETE.repeat(15 << 20)))
                .into_bytes(),
        ),
        ("a text in place of pools", pool, {
            format!("{REQUEST}\"pools\":\"{}\"}}}}}}}}", DELETE.repeat(6 << 20)).into_bytes()
        }),
        ("a long operation", pool, with_long("CREATE")),
        ("a long name", pool, with_long("p\",\n")),
        ("a long uid", pool, with_long("u\",\"name")),
        ("a long plural", pool, with_long("ippools\"")),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bodies_take_bounded_memory() {
    let _turn = TURN.lock().await;
    let webhooks = webhooks();
    let (pool, defaults) = (path(Task::Validate, "IPPool"), path(Task::Mutate, "Metal3Cluster"));
    let bodies = [
        ("findings", &*pool, admission("dnsServers", r#""","#, 3 << 20)),
        ("objects of a pool", &pool, admission("pools", r#"{"":0},"#, ADMISSION)),
        ("empty objects", &pool, admission("pools", "{},", ADMISSION)),
        ("unknown objects", &defaults, admission("x", r#"{"":0},"#, ADMISSION)),
        ("lists", &pool, admission("x", "[0],", ADMISSION)),
        ("short texts", &pool, admission("x", r#""a","#, ADMISSION)),
        (
            "objects to convert",
            CONVERSION_PATH,
            conversion("objects", r#"{"":0},"#, CONVERSION),
        ),
        (
            "unknown objects to convert",
            CONVERSION_PATH,
            conversion("more", r#"{"":0},"#, CONVERSION),
        ),
        (
            "numbers to convert",
            CONVERSION_PATH,
            conversion("objects", "0,", CONVERSION),
        ),
    ];
    for (name, path, body) in bodies.into_iter().chain(long_texts(&pool)) {
        for times in [1, 4] {
            let before = ALLOCATOR.allocated() + body.len() * times;
            let (status, answer) = post(&webhooks, path, body.clone(), times).await;
            let peak = ALLOCATOR.max_allocated().saturating_sub(before);
            assert!(peak < LIMIT, "{name} {times}: {} MiB, {status}", peak >> 20);
            assert!(answer.len() < 1 << 20, "{name}: {} bytes answered", answer.len());
            let answer = String::from_utf8_lossy(&answer).into_owned();
            let is_refused = status != StatusCode::OK
                || answer.contains("\"allowed\":false")
                || answer.contains("\"status\":\"Failure\"");
            assert!(is_refused, "{name}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_objects_of_users_are_reviewed() {
    let _turn = TURN.lock().await;
    let webhooks = webhooks();
    let body = admission("pools", r#"{"subnet":"192.0.2.0/24"},"#, 1 << 20);
    let (status, answer) = post(&webhooks, &path(Task::Validate, "IPPool"), body, 1).await;
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(
        (status, &answer["response"]["allowed"]),
        (StatusCode::OK, &Value::Bool(true))
    );

    let machine = r#"{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta1","kind":"Metal3Machine","metadata":{"name":
"m","namespace":"metal","labels":{"a":"b","c":"d","e":"f"}},"spec":{"image":{"url":"http://192.0.2.1/i","checksum":"c"},
"hostSelector":{"matchExpressions":[{"key":"a","operator":"in","values":["a","b","c"]}]},"providerID":"metal3://x"}},"#;
    let (status, answer) = post(&webhooks, CONVERSION_PATH, conversion("objects", machine, 1 << 20), 1).await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&answer));
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["response"]["result"]["status"], "Success");
    assert!(answer["response"]["convertedObjects"].as_array().unwrap().len() > 2_000);
}

/// Everything that etcd stores must be accepted, or lists of its kind fail for all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_stored_objects_are_reviewed_and_converted() {
    let _turn = TURN.lock().await;
    let webhooks = webhooks();
    let pool = String::from_utf8(admission("pools", r#"{"subnet":"192.0.2.0/24"},"#, 1 << 20)).unwrap();
    let (head, object) = pool.split_once("\"object\":").unwrap();
    let object = object.strip_suffix("}}").unwrap();
    let head = head.replace("CREATE", "UPDATE");
    let update = format!("{head}\"object\":{object},\"oldObject\":{object}}}}}");
    for task in [Task::Mutate, Task::Validate] {
        let before = ALLOCATOR.allocated() + update.len();
        let (status, answer) = post(&webhooks, &path(task, "IPPool"), update.clone().into_bytes(), 1).await;
        let peak = ALLOCATOR.max_allocated().saturating_sub(before);
        let text = String::from_utf8_lossy(&answer).into_owned();
        assert!(text.contains("\"allowed\":true"), "{task:?} {status} {text}");
        assert!(peak < LIMIT, "{} MiB", peak >> 20);
    }

    let head = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u","desiredAPIVersion":
"infrastructure.cluster.x-k8s.io/v1beta1","objects":[{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":
"Metal3DataTemplate","metadata":{"name":"d","namespace":"metal""#;
    let mut strings = format!("{head}}},\"spec\":{{\"metaData\":{{\"strings\":[");
    for number in 0..(3 << 19) / 29 {
        strings.push_str(&format!("{{\"key\":\"k{number:05}\",\"value\":\"b\"}},"));
    }
    let strings = format!("{}]}}}}}}]}}}}", strings.trim_end_matches(','));
    let (mut labels, mut fields) = (String::new(), String::new());
    for number in 0..(3 << 19) / 25 {
        labels.push_str(&format!("\"l{number:05}\":\"\","));
        fields.push_str(&format!("\"f:l{number:05}\":{{}},"));
    }
    let labelled = format!(
        "{head},\"labels\":{{{}}},\"managedFields\":[{{\"manager\":\"m\",\"fieldsV1\":{{\"f:metadata\":{{\"f:labels\":{{{}}}}}}}}}]}},\"spec\":{{}}}}]}}}}",
        labels.trim_end_matches(','),
        fields.trim_end_matches(','),
    );
    for body in [strings, labelled] {
        assert!(body.len() > 1_500_000, "{}", body.len());
        let before = ALLOCATOR.allocated() + body.len();
        let (status, answer) = post(&webhooks, CONVERSION_PATH, body.into_bytes(), 1).await;
        let peak = ALLOCATOR.max_allocated().saturating_sub(before);
        let start = String::from_utf8_lossy(&answer).chars().take(500).collect::<String>();
        assert!(start.contains("\"status\":\"Success\""), "{status} {start}");
        assert!(peak < LIMIT, "{} MiB", peak >> 20);
    }
}
