//! Decodes reviews member by member, so that a rejection names a missing or invalid member. Typed decoding would cause
//! an HTTP error, which users see as a failing webhook.

use std::fmt;

use k8s_openapi::api::authentication::v1::UserInfo;
use metal3_api::rules::{Operation, beginning};
use serde_json::{Value, json};

/// A body that is no review with a `uid`, so no response is possible.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidReview(String);

impl InvalidReview {
    /// The body is not JSON.
    pub(super) fn not_json(error: &serde_json::Error, api_version: &str, kind: &str) -> Self {
        let error = beginning(error, LONGEST_PROBLEM);
        Self(format!("the body is not JSON: {error}; post a {kind} of {api_version}"))
    }

    /// The request has no `uid`.
    pub(super) fn without_uid() -> Self {
        Self("request.uid: is missing or too long; set it, the answer refers to it".into())
    }
}

/// Checks `apiVersion` and `kind`.
pub(super) fn check_type(found: [Option<&str>; 2], api_version: &str, kind: &str) -> Result<(), InvalidReview> {
    let members = ["apiVersion", "kind"].into_iter().zip(found).zip([api_version, kind]);
    for ((member, found), wanted) in members {
        if found != Some(wanted) {
            let found = short_name(found.unwrap_or_default());
            return Err(InvalidReview(format!(
                "{member}: found {found:?}; post a {kind} of {api_version}"
            )));
        }
    }
    Ok(())
}

/// Longest name that Kubernetes accepts, in bytes. The caller may send any.
pub(super) const LONGEST_NAME: usize = 253;
/// Longest problem of a body, in bytes.
const LONGEST_PROBLEM: usize = 1024;

/// A name to quote.
pub(super) fn short_name(name: &str) -> String {
    beginning(&name, LONGEST_NAME)
}

/// A name that the API server may send.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
}

impl fmt::Display for InvalidReview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A review of either API.
#[derive(Debug)]
pub(crate) struct Envelope {
    api_version: &'static str,
    kind: &'static str,
    /// The `uid` for the response.
    pub(crate) uid: String,
    /// The request.
    pub(crate) request: Value,
}

impl Envelope {
    /// The review with the response.
    pub(crate) fn reply(&self, response: Value) -> Value {
        json!({ "apiVersion": self.api_version, "kind": self.kind, "response": response })
    }
}

/// Decodes the outer part of a review.
pub(crate) fn envelope(body: &[u8], api_version: &'static str, kind: &'static str) -> Result<Envelope, InvalidReview> {
    let document: Value =
        serde_json::from_slice(body).map_err(|error| InvalidReview::not_json(&error, api_version, kind))?;
    check_type(
        [text(&document, "apiVersion"), text(&document, "kind")],
        api_version,
        kind,
    )?;
    let Value::Object(mut members) = document else {
        return Err(InvalidReview(format!(
            "the body is no object; post a {kind} of {api_version}"
        )));
    };
    let request = members.remove("request").unwrap_or_default();
    let uid = text(&request, "uid").filter(|uid| !uid.is_empty() && is_name(uid));
    let uid = uid.ok_or_else(InvalidReview::without_uid)?;
    Ok(Envelope {
        api_version,
        kind,
        uid: uid.to_owned(),
        request,
    })
}

/// The request of an admission review.
#[derive(Debug)]
pub(crate) struct AdmissionRequest<'a> {
    /// The operation.
    pub(crate) operation: Operation,
    /// Group, version and plural.
    pub(crate) resource: [&'a str; 3],
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// Name of the object; empty for a generated name.
    pub(crate) name: &'a str,
    /// The user who sent the request.
    pub(crate) user: UserInfo,
    /// The object to store.
    pub(crate) object: Option<&'a Value>,
    /// The stored object.
    pub(crate) old_object: Option<&'a Value>,
}

impl<'a> AdmissionRequest<'a> {
    /// Decodes the request of an admission review. The error names the member and the cure.
    pub(crate) fn read(request: &'a Value) -> Result<Self, String> {
        let resource = request.get("resource").unwrap_or(&Value::Null);
        let part = |member: &str| {
            text(resource, member).ok_or_else(|| format!("request.resource.{member}: is missing; set it"))
        };
        // A list would decode as a struct by position.
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
            name: Some(text(request, "name").unwrap_or_default())
                .filter(|name| is_name(name))
                .ok_or_else(|| {
                    format!("request.name: is longer than {LONGEST_NAME} bytes; send the name of an object")
                })?,
            user: request.get("userInfo").and_then(user).unwrap_or_default(),
            object: object("object")?,
            old_object: object("oldObject")?,
        })
    }
}

/// Longest description of a user, in bytes. It is sent on when a right is asked for.
const LONGEST_USER: usize = 128 << 10;

/// A user that does not decode, or is described at too great length, is one without name, groups and rights.
fn user(info: &Value) -> Option<UserInfo> {
    if info.to_string().len() > LONGEST_USER {
        return None;
    }
    serde_json::from_value(info.clone()).ok()
}

fn operation(text: &str) -> Result<Operation, String> {
    match text {
        "CREATE" => Ok(Operation::Create),
        "UPDATE" => Ok(Operation::Update),
        "DELETE" => Ok(Operation::Delete),
        other => Err(format!(
            "request.operation: {:?} is not reviewed here; send CREATE, UPDATE or DELETE",
            short_name(other),
        )),
    }
}

fn text<'a>(document: &'a Value, member: &str) -> Option<&'a str> {
    document.get(member)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_described_at_great_length_has_no_name_and_no_groups() {
        let described = |groups: usize| json!({ "username": "jane", "groups": vec!["a"; groups] });
        let long = LONGEST_USER / r#""a","#.len() + 1;
        assert_eq!(user(&described(long / 2)).unwrap().username.as_deref(), Some("jane"));
        assert_eq!(user(&described(long)), None);
        assert_eq!(user(&json!("jane")), None);
    }
}
