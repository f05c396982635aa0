//! Reviews: what a client may do, and who it is. There is no RBAC, so that every client may do everything.

use metal3_schema::FieldError;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::request::Request;
use super::{Answer, Store, wire};

const ACCESS: &str = "SelfSubjectAccessReview";
const SUBJECT: &str = "SelfSubjectReview";
/// Paths that every authenticated user may read.
const DISCOVERED: [&str; 11] = [
    "/api/*",
    "/api",
    "/apis/*",
    "/apis",
    "/healthz",
    "/livez",
    "/openapi/*",
    "/openapi",
    "/readyz",
    "/version/",
    "/version",
];
/// Paths that clients without a login may read.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version/", "/version"];
const RULES: &str = "SelfSubjectRulesReview";

impl Store {
    /// Answers a review; `None` for other requests.
    pub(super) fn review(request: &Request) -> Option<Result<Answer, Refusal>> {
        if request.method != "POST" {
            return None;
        }
        match request.path.as_str() {
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => Some(access(request)),
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" => Some(rules(request)),
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" => Some(subject(request)),
            _ => None,
        }
    }
}

fn access(request: &Request) -> Result<Answer, Refusal> {
    let body = read(request, ACCESS)?;
    let spec = body.get("spec").cloned().unwrap_or_default();
    check(&spec)?;
    Ok(answer(json!({
        "kind": ACCESS, "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec,
        "status": {"allowed": true},
    })))
}

/// A question is about a resource or about a path.
fn check(spec: &Value) -> Result<(), Refusal> {
    let of_path = spec.get("nonResourceAttributes").filter(|found| found.is_object());
    let of_resource = spec.get("resourceAttributes").is_some_and(Value::is_object);
    let error = match of_path {
        None if of_resource => return Ok(()),
        Some(_) if !of_resource => return Ok(()),
        None => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            FieldError::invalid("spec.resourceAttributes", Value::Null, detail)
        }
        Some(path) => {
            let text = |name: &str| path.get(name).and_then(Value::as_str).unwrap_or_default();
            let found = json!({"Path": text("path"), "Verb": text("verb")});
            let detail = "cannot be specified in combination with resourceAttributes";
            FieldError::invalid("spec.nonResourceAttributes", found, detail)
        }
    };
    // The server does not name the kind.
    Err(Refusal::invalid("", "authorization.k8s.io", "", &[error]))
}

fn rules(request: &Request) -> Result<Answer, Refusal> {
    read(request, RULES)?;
    let resource = |verb: &str, group: &str, resource: &str| json!({ "verbs": [verb], "apiGroups": [group], "resources": [resource] });
    let path = |verb: &str, paths: &[&str]| json!({ "verbs": [verb], "nonResourceURLs": paths });
    Ok(answer(json!({
        // The server does not repeat the namespace.
        "kind": RULES, "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
        "status": {
            // An administrator has the roles of every user, too.
            "resourceRules": [
                resource("*", "*", "*"),
                resource("create", "authentication.k8s.io", "selfsubjectreviews"),
                resource("create", "authorization.k8s.io", "selfsubjectaccessreviews"),
                resource("create", "authorization.k8s.io", "selfsubjectrulesreviews"),
            ],
            "nonResourceRules": [
                path("*", &["*"]),
                path("get", &DISCOVERED),
                path("get", &PUBLIC),
            ],
            "incomplete": false,
        },
    })))
}

fn subject(request: &Request) -> Result<Answer, Refusal> {
    read(request, SUBJECT)?;
    let groups = json!(["system:masters", "system:authenticated"]);
    Ok(answer(json!({
        "kind": SUBJECT, "apiVersion": "authentication.k8s.io/v1", "metadata": {},
        "status": {"userInfo": {"username": request.user, "groups": groups}},
    })))
}

fn answer(body: Value) -> Answer {
    Answer::Document {
        code: 201,
        body,
        warnings: Vec::new(),
    }
}

fn read(request: &Request, kind: &str) -> Result<Value, Refusal> {
    let body: Value = if wire::is_binary(request) {
        wire::decode(&request.body, kind)?
    } else {
        serde_json::from_slice(&request.body).map_err(|error| Refusal::bad_request(error.to_string()))?
    };
    match body.get("kind").and_then(Value::as_str) {
        None => Ok(body),
        Some(found) if found == kind => Ok(body),
        Some(found) => Err(Refusal::bad_request(format!("{found} cannot be handled as a {kind}"))),
    }
}
