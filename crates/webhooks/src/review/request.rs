//! Reading what the API server posts, member by member: one that is missing or odd is named in the refusal. Decoding
//! into types would answer with an HTTP error instead, which users see as a webhook that does not work.

use std::fmt;

use metal3_api::rules::Operation;
use serde_json::{Value, json};

/// A body that cannot be answered, because the answer would not say to what.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unanswerable(String);

impl fmt::Display for Unanswerable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A review of either API.
#[derive(Debug)]
pub(crate) struct Envelope {
    api_version: &'static str,
    kind: &'static str,
    /// What the answer refers to.
    pub(crate) uid: String,
    /// The question.
    pub(crate) request: Value,
}

impl Envelope {
    /// The review that carries the answer.
    pub(crate) fn reply(&self, response: Value) -> Value {
        json!({ "apiVersion": self.api_version, "kind": self.kind, "response": response })
    }
}

/// Reads the outer part of a review.
pub(crate) fn envelope(body: &[u8], api_version: &'static str, kind: &'static str) -> Result<Envelope, Unanswerable> {
    let document: Value = serde_json::from_slice(body)
        .map_err(|error| Unanswerable(format!("the body is not JSON: {error}; post a {kind} of {api_version}")))?;
    for (member, wanted) in [("apiVersion", api_version), ("kind", kind)] {
        let found = text(&document, member);
        if found != Some(wanted) {
            let found = found.unwrap_or_default();
            return Err(Unanswerable(format!(
                "{member}: found {found:?}; post a {kind} of {api_version}"
            )));
        }
    }
    let Value::Object(mut members) = document else {
        return Err(Unanswerable(format!(
            "the body is no object; post a {kind} of {api_version}"
        )));
    };
    let request = members.remove("request").unwrap_or_default();
    let uid = text(&request, "uid").filter(|uid| !uid.is_empty());
    let uid = uid.ok_or_else(|| Unanswerable("request.uid: is missing; set it, the answer refers to it".into()))?;
    Ok(Envelope {
        api_version,
        kind,
        uid: uid.to_owned(),
        request,
    })
}

/// A question about one object.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    /// What is to be done.
    pub(crate) operation: Operation,
    /// Group, version and plural.
    pub(crate) resource: [&'a str; 3],
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// Name of the object; empty where the server is to make one up.
    pub(crate) name: &'a str,
    /// As it would be stored.
    pub(crate) object: Option<&'a Value>,
    /// As it is stored.
    pub(crate) old_object: Option<&'a Value>,
}

impl<'a> Asked<'a> {
    /// Reads the request of an admission review. The error names the member and the cure.
    pub(crate) fn read(request: &'a Value) -> Result<Self, String> {
        let resource = request.get("resource").unwrap_or(&Value::Null);
        let part = |member: &str| {
            text(resource, member).ok_or_else(|| format!("request.resource.{member}: is missing; set it"))
        };
        // A list would decode: its items stand for the members, by position.
        let object = |member: &str| match request.get(member) {
            None | Some(Value::Null) => Ok(None),
            Some(object) if object.is_object() => Ok(Some(object)),
            Some(_) => Err(format!(
                "request.{member}: is no object; give the object as it would be stored"
            )),
        };
        Ok(Self {
            operation: operation(text(request, "operation").unwrap_or_default())?,
            resource: [part("group")?, part("version")?, part("resource")?],
            subresource: text(request, "subResource").unwrap_or_default(),
            name: text(request, "name").unwrap_or_default(),
            object: object("object")?,
            old_object: object("oldObject")?,
        })
    }
}

fn operation(text: &str) -> Result<Operation, String> {
    match text {
        "CREATE" => Ok(Operation::Create),
        "UPDATE" => Ok(Operation::Update),
        "DELETE" => Ok(Operation::Delete),
        other => Err(format!(
            "request.operation: {other:?} is not reviewed here; ask about CREATE, UPDATE and DELETE"
        )),
    }
}

fn text<'a>(document: &'a Value, member: &str) -> Option<&'a str> {
    document.get(member)?.as_str()
}
