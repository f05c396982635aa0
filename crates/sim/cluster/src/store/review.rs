//! Reviews: what a client may do, and who it is. Every client may do everything, except for impersonated users, whose roles count.

use metal3_schema::FieldError;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::request::Request;
use super::roles::{DISCOVERED, PUBLIC};
use super::user::Wish;
use super::{Answer, Store, object, wire};

const ACCESS: &str = "SelfSubjectAccessReview";
const SUBJECT: &str = "SelfSubjectReview";
const RULES: &str = "SelfSubjectRulesReview";

impl Store {
    /// Answers a review; `None` for other requests.
    pub(super) fn review(&self, request: &Request) -> Option<Result<Answer, Refusal>> {
        if request.method != "POST" {
            return None;
        }
        match request.path.as_str() {
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => Some(self.access(request)),
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews" => Some(self.rules(request)),
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" => Some(subject(request)),
            _ => None,
        }
    }
}

impl Store {
    fn access(&self, request: &Request) -> Result<Answer, Refusal> {
        let body = read(request, ACCESS)?;
        let spec = body.get("spec").cloned().unwrap_or_default();
        check(&spec)?;
        let mut status = json!({"allowed": true});
        if let Some(identity) = &request.identity {
            let decision = self.decide(&request.user, identity, &asked(&spec));
            status = json!({"allowed": decision.allowed});
            if !decision.reason.is_empty() {
                object::as_map(&mut status).insert("reason".into(), decision.reason.into());
            }
        }
        Ok(answer(json!({
            "kind": ACCESS, "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": spec, "status": status,
        })))
    }

    /// The rules of an impersonated user in a namespace.
    fn rules(&self, request: &Request) -> Result<Answer, Refusal> {
        let body = read(request, RULES)?;
        let namespace = body.pointer("/spec/namespace").and_then(Value::as_str);
        let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) else {
            return Err(Refusal::bad_request("no namespace on request"));
        };
        let Some(identity) = &request.identity else {
            return all_rules();
        };
        let mut lost = Vec::new();
        let rules = self.rules_of(&request.user, identity, namespace, &mut lost);
        let (mut paths, mut resources): (Vec<Value>, Vec<Value>) = rules
            .into_iter()
            .partition(|rule| rule.get("nonResourceURLs").is_some());
        if identity.is_administrator() {
            resources.push(json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }));
            paths.push(json!({ "verbs": ["*"], "nonResourceURLs": ["*"] }));
        }
        Ok(answer(json!({
            "kind": RULES, "apiVersion": "authorization.k8s.io/v1", "metadata": {}, "spec": {},
            "status": { "resourceRules": resources, "nonResourceRules": paths, "incomplete": !lost.is_empty() },
        })))
    }
}

/// What a review asks about.
fn asked(spec: &Value) -> Wish {
    let text = |at: &str| spec.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    if spec.get("nonResourceAttributes").is_some_and(Value::is_object) {
        return Wish {
            verb: text("/nonResourceAttributes/verb"),
            path: text("/nonResourceAttributes/path"),
            ..Wish::default()
        };
    }
    let of = |name: &str| text(&format!("/resourceAttributes/{name}"));
    let resource = match of("subresource").as_str() {
        "" => of("resource"),
        subresource => format!("{}/{subresource}", of("resource")),
    };
    Wish {
        verb: of("verb"),
        group: of("group"),
        resource,
        namespace: of("namespace"),
        name: of("name"),
        path: String::new(),
    }
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

fn all_rules() -> Result<Answer, Refusal> {
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
    let groups = match &request.identity {
        Some(identity) => json!(identity.groups),
        None => json!(["system:masters", "system:authenticated"]),
    };
    let mut info = json!({"username": request.user, "groups": groups});
    if let Some(identity) = request.identity.as_ref().filter(|identity| !identity.uid.is_empty()) {
        object::as_map(&mut info).insert("uid".into(), identity.uid.clone().into());
    }
    Ok(answer(json!({
        "kind": SUBJECT, "apiVersion": "authentication.k8s.io/v1", "metadata": {},
        "status": {"userInfo": info},
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
