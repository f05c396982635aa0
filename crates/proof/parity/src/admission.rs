//! Admission by an API server with the CRDs and webhooks of this project.

use metal3_api::catalog;
use metal3_api::rules::{Decision, Operation};
use metal3_schema::{FieldError, Schema};
use serde_json::Value;

/// Result of a request.
pub(crate) enum Answer {
    /// Rejected by the schema, before the webhook.
    Schema(Vec<FieldError>),
    /// Decision of the webhook on the object as it would be stored.
    Webhook(Decision, Value),
    /// The object cannot be decoded.
    Undecodable(String),
}

impl Answer {
    /// Reasons of the rejection; empty when admitted.
    pub(crate) fn refusals(&self) -> Vec<String> {
        match self {
            Self::Schema(errors) => errors.iter().map(ToString::to_string).collect(),
            Self::Webhook(decision, _) => decision.refusals().map(ToString::to_string).collect(),
            Self::Undecodable(why) => vec![why.clone()],
        }
    }
}

/// Prunes, defaults, validates and reviews. A creation when there is no old object.
pub(crate) fn answer(object: &Value, old: Option<&Value>) -> Answer {
    let mut object = object.clone();
    let member = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, api_version) = (member("kind"), member("apiVersion"));
    let Some(schema) = schema(&kind, &api_version) else {
        return Answer::Undecodable(format!("{api_version} {kind} is not in the catalogue"));
    };
    schema.prune(&mut object);
    schema.default(&mut object);
    // Rules exist for the stored version only: callers convert an older document first.
    let reviewer = catalog::reviewers()
        .into_iter()
        .find(|reviewer| reviewer.kind == kind && api_version == format!("{}/{}", reviewer.group, reviewer.version));
    // As in a server, typed defaults are set before validation. A document that cannot be decoded is left to the
    // schema, which reports the reason.
    if let Some(filled) = reviewer.and_then(|reviewer| (reviewer.set_defaults)(&object).ok()) {
        object = filled;
    }
    let errors = schema.validate(&object);
    if !errors.is_empty() {
        return Answer::Schema(errors);
    }
    let Some(reviewer) = reviewer else {
        return Answer::Webhook(Decision::default(), object);
    };
    let old = old.map(|old| {
        let mut old = old.clone();
        schema.default(&mut old);
        old
    });
    let operation = if old.is_some() {
        Operation::Update
    } else {
        Operation::Create
    };
    match (reviewer.review)(operation, old.as_ref(), Some(&object)) {
        Ok(decision) => Answer::Webhook(decision, object),
        Err(error) => Answer::Undecodable(error.to_string()),
    }
}

fn schema(kind: &str, api_version: &str) -> Option<Schema> {
    let crd = catalog::definitions().into_iter().find(|crd| crd.kind == kind)?;
    let version = crd
        .versions
        .iter()
        .find(|served| api_version == format!("{}/{}", crd.group, served.name))?;
    Schema::parse(&(version.schema)()).ok()
}
