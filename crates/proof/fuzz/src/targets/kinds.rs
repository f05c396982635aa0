//! Objects of the API: decoding, schemas, conversion and reviews.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt as _;
use metal3_api::catalog;
use metal3_api::crd::Definition;
use metal3_api::infrastructure::conversion::{Version, convert};
use metal3_domain::clock::SystemClock;
use metal3_runtime::metrics::Metrics;
use metal3_schema::Schema;
use metal3_sim_faults::Random;
use metal3_webhooks::related_objects::{NoRelatedObjects, RelatedObjects};
use metal3_webhooks::router::{CONVERSION_PATH, Callers, Instrumentation, router};
use metal3_webhooks::table::{SUITES, Suite};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

use crate::chance::below;
use crate::document;
use crate::target::{Answer, Parse, Target, answers_alike, prints_what_it_reads};

/// Depth of generated documents.
const DEPTH: u8 = 7;

/// A version of a kind with its schema.
struct Kind {
    api_version: String,
    kind: &'static str,
    plural: &'static str,
    written: Value,
    schema: Option<Schema>,
    reencode: fn(&Value) -> serde_json::Result<Value>,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| catalog::definitions().iter().flat_map(versions).collect());

fn versions(definition: &Definition) -> Vec<Kind> {
    let kinds = definition.versions.iter().map(|version| {
        let written = (version.schema)();
        Kind {
            api_version: format!("{}/{}", definition.group, version.name),
            kind: definition.kind,
            plural: definition.plural,
            schema: Schema::parse(&written).ok(),
            written,
            reencode: version.reencode,
        }
    });
    kinds.collect()
}

fn kind_of(document: &Value) -> Option<&'static Kind> {
    let member = |name: &str| document.get(name).and_then(Value::as_str);
    let (api_version, kind) = (member("apiVersion")?, member("kind")?);
    KINDS
        .iter()
        .find(|known| known.api_version == api_version && known.kind == kind)
}

const WORDS: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "annotations",
    "labels",
    "conditions",
    "a",
    "192.0.2.10",
    "infrastructure.cluster.x-k8s.io/v1beta1",
    "infrastructure.cluster.x-k8s.io/v1beta2",
    "ipam.metal3.io/v1alpha1",
    "metal3.io/v1alpha1",
    "template",
    "cluster.x-k8s.io/conversion-data",
    "5m",
    "2026-01-31T12:00:00Z",
];

static TARGETS: [Target; 5] = [
    Target::json("kind-decode", WORDS, decode, prints_what_it_reads, DEEP).drawn(any_kind),
    Target::json(
        "kind-schema",
        WORDS,
        schema,
        valid_objects_decode,
        &["valid", "BareMetalHost", "rootDeviceHints", "raid"],
    )
    .drawn(any_kind),
    Target::json(
        "conversion",
        WORDS,
        converted,
        conversion_settles,
        &["Metal3DataTemplate", "fromHostInterface", "routes"],
    )
    .drawn(infrastructure),
    Target::json(
        "conversion-review",
        WORDS,
        review_conversion,
        review_names_its_request,
        &["Success", "networkData", "fromHostInterface"],
    )
    .drawn(conversion_review),
    Target::json(
        "admission-review",
        WORDS,
        review_admission,
        review_names_its_request,
        &["\"patch\":\"", "\"allowed\":false", "\"reason\":\"Invalid\""],
    )
    .drawn(admission_review),
];

pub(super) fn targets() -> Vec<Target> {
    TARGETS.to_vec()
}

const DEEP: &[&str] = &["HostFirmwareSettings", "conditions", "settings"];

fn named(kind: &Kind, random: &mut Random) -> Value {
    let mut document = document::draw(&kind.written, random, DEPTH);
    if let Value::Object(members) = &mut document {
        members.insert("apiVersion".into(), kind.api_version.as_str().into());
        members.insert("kind".into(), kind.kind.into());
        members.insert("metadata".into(), json!({ "name": "a", "namespace": "b", "uid": "c" }));
    }
    document
}

fn any_kind(random: &mut Random) -> Value {
    let at = below(random, KINDS.len());
    KINDS.get(at).map_or(Value::Null, |kind| named(kind, random))
}

fn infrastructure(random: &mut Random) -> Value {
    let kinds: Vec<&Kind> = KINDS
        .iter()
        .filter(|kind| kind.api_version.starts_with("infrastructure"))
        .collect();
    random.pick(&kinds).map_or(Value::Null, |kind| named(kind, random))
}

fn parsed(input: &[u8]) -> Result<Value, Answer> {
    serde_json::from_slice(input).map_err(|error| Answer::Rejected(error.to_string()))
}

fn decode(input: &[u8]) -> Answer {
    let document = match parsed(input) {
        Ok(document) => document,
        Err(rejected) => return rejected,
    };
    match kind_of(&document) {
        Some(kind) => Answer::of((kind.reencode)(&document), |document| document.to_string()),
        None => Answer::Rejected("no kind".to_owned()),
    }
}

/// The object as the API server stores it, when its schema accepts it.
fn schema(input: &[u8]) -> Answer {
    let mut document = match parsed(input) {
        Ok(document) => document,
        Err(rejected) => return rejected,
    };
    let Some(schema) = kind_of(&document).and_then(|kind| kind.schema.as_ref()) else {
        return Answer::Rejected("no kind".to_owned());
    };
    // The API server checks metadata by rules of its own.
    if let Value::Object(members) = &mut document {
        members.insert("metadata".into(), json!({ "name": "a" }));
    }
    schema.prune(&mut document);
    schema.default(&mut document);
    match schema.validate(&document).first() {
        None => Answer::Accepted(format!("valid {document}")),
        Some(error) => Answer::Rejected(error.to_string()),
    }
}

/// What the schema accepts is decoded, and storing it again changes nothing.
fn valid_objects_decode(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let Some(stored) = answer.accepted().and_then(|text| text.strip_prefix("valid ")) else {
        return answers_alike(input, answer, parse);
    };
    if parse(stored.as_bytes()) != *answer {
        return Err(format!("stored again it is {:?}", parse(stored.as_bytes())));
    }
    let document: Value = serde_json::from_str(stored).map_err(|error| error.to_string())?;
    let kind = kind_of(&document).ok_or("the kind is lost")?;
    if !has_its_types(&kind.written, &document) {
        return Ok(());
    }
    (kind.reencode)(&document)
        .map(|_| ())
        .map_err(|error| format!("valid, and not decoded: {error}"))
}

/// Whether the values have the types that the schema writes. The API server looks at no type of a list where a
/// text has a format, and at no size of an `int32`. It stores such objects; they are cached as unreadable.
fn has_its_types(schema: &Value, value: &Value) -> bool {
    let written = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    match value {
        Value::Array(items) => {
            let of_items = schema.get("items").unwrap_or(&Value::Null);
            written("type") != "string" && items.iter().all(|item| has_its_types(of_items, item))
        }
        Value::Object(members) => members.iter().all(|(name, member)| {
            let property = schema.get("properties").and_then(|properties| properties.get(name));
            let of_member = property.or_else(|| schema.get("additionalProperties"));
            has_its_types(of_member.unwrap_or(&Value::Null), member)
        }),
        Value::Number(number) if written("format") == "int32" => {
            number.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
        }
        _ => true,
    }
}

fn converted(input: &[u8]) -> Answer {
    let document = match parsed(input) {
        Ok(document) => document,
        Err(rejected) => return rejected,
    };
    // The API server converts no other objects.
    if !document.get("metadata").is_some_and(Value::is_object) {
        return Answer::Rejected("no metadata".to_owned());
    }
    let from = document
        .get("apiVersion")
        .and_then(Value::as_str)
        .and_then(Version::from_api_version);
    let to = match from {
        Some(Version::V1Beta1) => Version::V1Beta2,
        _ => Version::V1Beta1,
    };
    Answer::of(convert(&document, to), |document| document.to_string())
}

/// After one conversion there and back, another changes nothing.
fn conversion_settles(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let Some(there) = answer.accepted() else {
        return answers_alike(input, answer, parse);
    };
    let back = parse(there.as_bytes());
    let Some(back) = back.accepted() else {
        return Err(format!("it does not convert back: {back:?}"));
    };
    let again = parse(back.as_bytes());
    if again.accepted().map(spec_and_status) != Some(spec_and_status(there)) {
        return Err(format!("{there} is {again:?} after another round"));
    }
    Ok(())
}

fn spec_and_status(text: &str) -> Option<(Value, Value)> {
    let mut document: Value = serde_json::from_str(text).ok()?;
    let mut take = |name: &str| document.get_mut(name).map(Value::take).unwrap_or_default();
    Some((take("spec"), take("status")))
}

fn conversion_review(random: &mut Random) -> Value {
    let version = *random.pick(&["v1beta1", "v1beta2"]).unwrap_or(&"v1beta1");
    let objects: Vec<Value> = (0..=random.below(2)).map(|_| infrastructure(random)).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {
            "uid": "u", "desiredAPIVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "objects": objects,
        },
    })
}

fn admission_review(random: &mut Random) -> Value {
    let object = any_kind(random);
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or_default();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let resource = KINDS.iter().find(|known| known.kind == kind).map(|known| known.plural);
    let operation = *random.pick(&["CREATE", "UPDATE", "DELETE"]).unwrap_or(&"CREATE");
    let old = match operation {
        "CREATE" => Value::Null,
        _ => object.clone(),
    };
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": operation, "name": "a", "namespace": "b",
            "kind": { "group": group, "version": version, "kind": kind },
            "resource": { "group": group, "version": version, "resource": resource },
            "userInfo": { "username": "user" }, "object": object, "oldObject": old,
        },
    })
}

static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let related_objects: Arc<dyn RelatedObjects> = Arc::new(NoRelatedObjects);
    let suites = SUITES.map(|suite| (suite, Arc::clone(&related_objects)));
    let instrumentation = Instrumentation {
        metrics: Metrics::new().servers(),
        clock: Arc::new(SystemClock::start()),
    };
    router(&suites, &instrumentation, &Callers::Any)
});

static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| Builder::new_current_thread().enable_all().build().ok());

/// Posts a body; the answer is the status and the body.
fn post(path: &str, body: &[u8]) -> Result<(u16, String), String> {
    let runtime = RUNTIME.as_ref().ok_or("no runtime")?;
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_vec()));
    let request = request.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let response = ROUTER
            .clone()
            .oneshot(request)
            .await
            .map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        Ok((status, String::from_utf8_lossy(&body.to_bytes()).into_owned()))
    })
}

fn reviewed(answer: Result<(u16, String), String>) -> Answer {
    match answer {
        Ok((200, body)) => Answer::Accepted(format!("200 {body}")),
        Ok((status, body)) => Answer::Rejected(format!("{status} {body}")),
        Err(error) => Answer::Rejected(error),
    }
}

fn review_conversion(input: &[u8]) -> Answer {
    reviewed(post(CONVERSION_PATH, input))
}

/// The body goes to the hooks of the kind that it names, and to one hook when it names none.
fn review_admission(input: &[u8]) -> Answer {
    let review: Value = serde_json::from_slice(input).unwrap_or_default();
    let kind = review.pointer("/request/kind/kind").and_then(Value::as_str);
    let version = review.pointer("/request/kind/version").and_then(Value::as_str);
    let hooks: Vec<_> = SUITES.iter().flat_map(Suite::hooks).collect();
    let named = hooks
        .iter()
        .filter(|hook| Some(hook.reviewer.kind) == kind && Some(hook.reviewer.version) == version);
    let mut paths: Vec<String> = named.map(|hook| hook.path()).collect();
    if paths.is_empty() {
        paths.extend(hooks.first().map(|hook| hook.path()));
    }
    let answers: Result<Vec<(u16, String)>, String> = paths.iter().map(|path| post(path, input)).collect();
    match answers {
        Ok(answers) => {
            let status = answers.iter().map(|(status, _)| *status).max().unwrap_or(0);
            let bodies: Vec<String> = answers.into_iter().map(|(_, body)| body).collect();
            reviewed(Ok((status, bodies.join("\n"))))
        }
        Err(error) => Answer::Rejected(error),
    }
}

/// A response carries the UID of its request, and a body that is no review is the fault of the client.
fn review_names_its_request(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    match answer {
        Answer::Rejected(message) if message.starts_with('5') => return Err(message.clone()),
        Answer::Rejected(_) => {}
        Answer::Accepted(text) => {
            // Unread members are skipped, whatever their texts are.
            let review: Value = match serde_json::from_slice(input) {
                Ok(review) => review,
                Err(_) => return answers_alike(input, answer, parse),
            };
            for body in text.trim_start_matches("200 ").lines() {
                let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
                if body.pointer("/response/uid") != review.pointer("/request/uid") {
                    return Err(format!("the response is {body}"));
                }
            }
        }
    }
    answers_alike(input, answer, parse)
}
