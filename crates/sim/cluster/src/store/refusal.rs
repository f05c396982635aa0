//! The `Status` documents of failed requests, with the texts of the real API server.

use std::collections::BTreeMap;

use metal3_schema::{FieldError, invalid_message};
use serde_json::{Map, Value, json};

use super::kind::{Kind, qualify};
use super::user::Wish;

/// A failed request.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; empty when the API server gives none.
    pub reason: &'static str,
    /// Human-readable text.
    pub message: String,
    /// `details`, if there are any.
    pub details: Option<Value>,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
        }
    }

    fn about(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The error about an object of a kind.
    fn of(kind: &Kind, name: &str, (code, reason): (u16, &'static str), why: &str) -> Self {
        let message = format!("{} {name:?} {why}", kind.resource());
        Self::new(code, reason, message).about(details(name, &kind.group, &kind.plural))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// A feature of the real server that is not simulated.
    pub(crate) fn unsupported(what: &str) -> Self {
        let message = format!("the simulated API server does not support {what}");
        Self::new(501, "NotImplemented", message)
    }

    pub(crate) fn no_such_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").about(json!({}))
    }

    /// A path that the server does not have. Its answer is a text.
    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "404 page not found")
    }

    /// Whether the answer is the message as a text.
    pub(crate) fn is_plain(&self) -> bool {
        *self == Self::no_such_path()
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).about(json!({}))
    }

    pub(crate) fn not_acceptable(message: &str) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn patch_rejected() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(422, "Invalid", message).about(json!({}))
    }

    pub(crate) fn unknown_media_type(accepted: &str) -> Self {
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn too_many_steps(limit: usize, found: usize) -> Self {
        let message = format!("The allowed maximum operations in a JSON patch is {limit}, got {found}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::of(kind, name, (404, "NotFound"), "not found")
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::of(kind, name, (409, "AlreadyExists"), "already exists")
    }

    /// The object changed since it was read.
    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::new(409, "Conflict", message).about(details(name, &kind.group, &kind.plural))
    }

    /// A precondition of a delete does not hold. This error names the kind instead of the resource.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let qualified = qualify(&kind.kind, &kind.group);
        let message = format!("Operation cannot be fulfilled on {qualified} {name:?}: {why}");
        Self::new(409, "Conflict", message).about(details(name, &kind.group, &kind.kind))
    }

    /// An apply conflicts with other field managers. The API server does not name the object.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        Self::new(409, "Conflict", message).about(json!({"causes": causes}))
    }

    pub(crate) fn invalid(kind: &str, group: &str, name: &str, errors: &[FieldError]) -> Self {
        let causes: Vec<Value> = errors
            .iter()
            .map(|error| json!({"reason": error.cause.reason(), "message": error.body(), "field": error.field}))
            .collect();
        let mut details = details(name, group, kind);
        if let Value::Object(map) = &mut details {
            map.insert("causes".into(), causes.into());
        }
        Self::new(422, "Invalid", invalid_message(kind, group, name, errors)).about(details)
    }

    pub(crate) fn invalid_options(options: &str, error: FieldError) -> Self {
        Self::invalid(options, "meta.k8s.io", "", &[error])
    }

    pub(crate) fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let message = format!(
            "{} {name:?} is forbidden: unable to create new content in namespace {namespace} because it is being \
             terminated",
            kind.resource()
        );
        let mut details = details(name, &kind.group, &kind.plural);
        if let Value::Object(map) = &mut details {
            let text = format!("namespace {namespace} is being terminated");
            let cause = json!({"reason": "NamespaceTerminating", "message": text, "field": "metadata.namespace"});
            map.insert("causes".into(), json!([cause]));
        }
        Self::new(403, "Forbidden", message).about(details)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        Self::of(kind, name, (403, "Forbidden"), &format!("is forbidden: {why}"))
    }

    /// A client impersonates groups, a uid or extra values and no user.
    pub(crate) fn without_user(groups: &[String], uid: &str, extra: &BTreeMap<&str, Vec<String>>) -> Self {
        let list = |texts: &[String]| {
            let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
            format!("[]string{{{}}}", quoted.join(", "))
        };
        let groups = if groups.is_empty() {
            "[]string(nil)".to_owned()
        } else {
            list(groups)
        };
        let values: Vec<String> = extra
            .iter()
            .map(|(name, texts)| format!("{name:?}:{}", list(texts)))
            .collect();
        let extra = if values.is_empty() {
            "(nil)".to_owned()
        } else {
            format!("{{{}}}", values.join(", "))
        };
        Self::bad_request(format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:{groups}, Extra:map[string][]string{extra}}} without \
             impersonating a user name"
        ))
    }

    /// No role allows what a user wants to do. `reason`: why that may not be known, or empty.
    pub(crate) fn not_allowed(user: &str, wish: &Wish, reason: &str) -> Self {
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(": {reason}")
        };
        if !wish.path.is_empty() {
            let message = format!(
                "forbidden: User {user:?} cannot {} path {:?}{reason}",
                wish.verb, wish.path
            );
            return Self::new(403, "Forbidden", message).about(json!({}));
        }
        let plural = wish.resource.split('/').next().unwrap_or_default();
        let named = qualify(plural, &wish.group);
        let object = if wish.name.is_empty() {
            named
        } else {
            format!("{named} {:?}", wish.name)
        };
        let place = if wish.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", wish.namespace)
        };
        let message = format!(
            "{object} is forbidden: User {user:?} cannot {} resource {:?} in API group {:?} {place}{reason}",
            wish.verb, wish.resource, wish.group
        );
        Self::new(403, "Forbidden", message).about(details(&wish.name, &wish.group, plural))
    }

    pub(crate) fn kind_terminating(kind: &Kind, name: &str) -> Self {
        let why = "is forbidden: create not allowed while custom resource definition is terminating";
        Self::of(kind, name, (403, "Forbidden"), why)
    }

    pub(crate) fn denied(hook: &str, code: u16, reason: &'static str, message: &str) -> Self {
        let message = format!("admission webhook {hook:?} denied the request: {message}");
        Self::new(code, reason, message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// The error of a list in a version to which an object does not convert: the server's cache never becomes ready.
    pub(crate) fn uncached(self, kind: &Kind, version: &str) -> Self {
        let message = format!(
            "storage is (re)initializing: failed to list {}, Kind={}: {}",
            kind.api_version(version),
            kind.kind,
            self.message
        );
        Self::new(429, "TooManyRequests", message).about(json!({"retryAfterSeconds": 3}))
    }

    pub(crate) fn too_new(wanted: u64, current: u64) -> Self {
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        Self::new(504, "Timeout", message).about(json!({"causes": [cause], "retryAfterSeconds": 1}))
    }

    /// The server is overloaded, unavailable or failing, or does not serve the kind (404).
    pub(crate) fn unavailable(code: u16, retry_after: Option<u32>) -> Self {
        if code == 404 {
            return Self::no_such_resource();
        }
        let (reason, message) = match code {
            429 => (
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
            ),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            504 => (
                "Timeout",
                "the server was unable to return a response in the time allotted",
            ),
            _ => (
                "InternalError",
                "an error on the server has prevented the request from succeeding",
            ),
        };
        let refusal = Self::new(code, reason, message);
        match retry_after {
            Some(seconds) => refusal.about(json!({"retryAfterSeconds": seconds})),
            None => refusal,
        }
    }

    /// The seconds after which the client may retry.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    /// The `Status` document.
    #[must_use]
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if let Value::Object(map) = &mut status {
            if !self.reason.is_empty() {
                map.insert("reason".into(), self.reason.into());
            }
            if let Some(details) = &self.details {
                map.insert("details".into(), details.clone());
            }
        }
        status
    }
}

fn details(name: &str, group: &str, kind: &str) -> Value {
    [("name", name), ("group", group), ("kind", kind)]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .collect::<Map<_, _>>()
        .into()
}
