//! Conversion reviews: lists of objects of any kinds, converted to one version.
//!
//! The API server rejects a response without all objects, so one failing object fails the review.

use metal3_api::catalog;
use metal3_api::infrastructure::conversion::{self, Version};
use serde_json::{Value, json};

use super::request::{InvalidReview, envelope};

/// Responds to a `ConversionReview`.
pub(crate) fn convert(body: &[u8]) -> Result<Value, InvalidReview> {
    let envelope = envelope(body, "apiextensions.k8s.io/v1", "ConversionReview")?;
    let response = match converted(&envelope.request) {
        Ok(objects) => json!({
            "uid": envelope.uid, "result": { "status": "Success" }, "convertedObjects": objects,
        }),
        Err(problem) => json!({
            "uid": envelope.uid, "result": { "status": "Failure", "message": problem }, "convertedObjects": [],
        }),
    };
    Ok(envelope.reply(response))
}

fn converted(request: &Value) -> Result<Vec<Value>, String> {
    let desired = text(request, "/desiredAPIVersion");
    let objects = request.get("objects").and_then(Value::as_array);
    let objects = objects.ok_or("request.objects: is missing; give the objects to convert")?;
    objects
        .iter()
        .enumerate()
        .map(|(position, object)| one(object, desired).map_err(|problem| located(position, object, &problem)))
        .collect()
}

fn one(object: &Value, desired: &str) -> Result<Value, String> {
    let found = text(object, "/apiVersion");
    if found == desired && is_served(found, text(object, "/kind")) {
        return Ok(object.clone());
    }
    let version = Version::from_api_version(desired).ok_or_else(|| {
        format!("desiredAPIVersion: {desired:?} is no version that {found:?} is converted to; request a served version")
    })?;
    conversion::convert(object, version).map_err(|error| error.to_string())
}

fn is_served(api_version: &str, kind: &str) -> bool {
    catalog::definitions().iter().any(|definition| {
        let mut versions = definition.versions.iter();
        definition.kind == kind
            && versions.any(|version| api_version == format!("{}/{}", definition.group, version.name))
    })
}

/// Adds the position and name of the object, because a list may have thousands.
fn located(position: usize, object: &Value, problem: &str) -> String {
    let (kind, namespace) = (text(object, "/kind"), text(object, "/metadata/namespace"));
    let name = text(object, "/metadata/name");
    format!("request.objects[{position}] ({kind} {namespace}/{name}): {problem}")
}

fn text<'a>(document: &'a Value, path: &str) -> &'a str {
    document.pointer(path).and_then(Value::as_str).unwrap_or_default()
}
