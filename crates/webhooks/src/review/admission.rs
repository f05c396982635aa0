//! Mutation and validation of a request by the rules of a hook.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use metal3_api::rules::{Operation, ReviewError, Unserved};
use serde_json::Value;

use super::request::{AdmissionRequest, is_name, short_name};
use super::response::{Admitted, Refusal};
use crate::guarded::{self, AccessQuestion};
use crate::related_objects::{self, RelatedObjects};
use crate::table::{Hook, Task};

/// Accepts or rejects a request. A dry run is handled as any other request, because nothing is written.
pub(super) fn answer(
    hook: &Hook,
    request: &AdmissionRequest<'_>,
    related_objects: &dyn RelatedObjects,
) -> Result<Admitted, Refusal> {
    let reviewer = &hook.reviewer;
    let expected = [reviewer.group, reviewer.version, reviewer.plural];
    if request.resource != expected {
        let [group, version, plural] = request.resource.map(short_name);
        return Err(Refusal::unreadable(format!(
            "request.resource: {plural}.{version}.{group} is not reviewed at {}; send {}.{}.{} there",
            hook.path(),
            reviewer.plural,
            reviewer.version,
            reviewer.group,
        )));
    }
    match request.subresource {
        "" => {}
        // As in the Go managers, no rule checks the status.
        "status" => return Ok(Admitted::default()),
        other => {
            return Err(Refusal::unreadable(format!(
                "request.subResource: {:?} is not reviewed here; send the object itself",
                short_name(other),
            )));
        }
    }
    match hook.task {
        Task::Mutate => mutate(hook, request),
        Task::Validate => validate(hook, request, related_objects),
    }
}

/// The right that the request requires, if any.
pub(super) fn question(hook: &Hook, request: &AdmissionRequest<'_>) -> Option<AccessQuestion> {
    if hook.task != Task::Validate || !request.subresource.is_empty() {
        return None;
    }
    let reviewer = &hook.reviewer;
    let documents = (request.old_object, request.object);
    let annotation = guarded::guarded_annotation(reviewer, request.operation, documents)?;
    let object = request.object.unwrap_or(&Value::Null);
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
    // The right for all namespaces, or objects, is another one.
    let namespace = namespace.filter(|namespace| is_name(namespace));
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Some(AccessQuestion {
        user: request.user.clone(),
        right: ResourceAttributes {
            group: text(reviewer.group),
            resource: text(reviewer.plural),
            subresource: text(guarded::SUBRESOURCE),
            verb: text(guarded::VERB),
            namespace: namespace.and_then(text),
            name: text(name(request)),
            ..ResourceAttributes::default()
        },
        annotation,
    })
}

fn mutate(hook: &Hook, request: &AdmissionRequest<'_>) -> Result<Admitted, Refusal> {
    if request.operation == Operation::Delete {
        return Ok(Admitted::default());
    }
    let malformed = |problem: String| Refusal::malformed(&hook.reviewer, name(request), &problem);
    let object = request
        .object
        .ok_or_else(|| malformed("the request carries no new object".into()))?;
    if !hook.has_defaults() {
        let decoded = (hook.reviewer.decode)(object);
        return decoded
            .map(|()| Admitted::default())
            .map_err(|error| malformed(error.to_string()));
    }
    let defaulted = (hook.reviewer.set_defaults)(object).map_err(|error| malformed(error.to_string()))?;
    Ok(Admitted {
        patch: json_patch::diff(object, &defaulted),
        warnings: Vec::new(),
    })
}

fn validate(
    hook: &Hook,
    request: &AdmissionRequest<'_>,
    related_objects: &dyn RelatedObjects,
) -> Result<Admitted, Refusal> {
    let reviewer = &hook.reviewer;
    let documents = (request.old_object, request.object);
    let malformed = |error: ReviewError| Refusal::malformed(reviewer, name(request), &error.to_string());
    let mut decision = (reviewer.review)(request.operation, documents.0, documents.1).map_err(malformed)?;
    if related_objects.serves(reviewer.kind) {
        decision.findings.retain(|finding| finding.rule != Unserved::ROW);
    }
    let findings_of_related =
        related_objects::findings_of_related(reviewer, request.operation, documents, related_objects);
    decision.findings.extend(findings_of_related);
    let refusals: Vec<_> = decision.refusals().collect();
    if refusals.is_empty() {
        return Ok(Admitted {
            warnings: decision.warnings(),
            ..Admitted::default()
        });
    }
    Err(Refusal::invalid(
        reviewer,
        name(request),
        &refusals,
        decision.more_refusals,
    ))
}

/// Name of the object, or `generateName` in a create request without a name.
fn name<'a>(request: &AdmissionRequest<'a>) -> &'a str {
    let object = request.object.or(request.old_object).unwrap_or(&Value::Null);
    let member = |path: &str| {
        object
            .pointer(path)
            .and_then(Value::as_str)
            .filter(|name| is_name(name))
    };
    match request.name {
        "" => member("/metadata/name")
            .or_else(|| member("/metadata/generateName"))
            .unwrap_or_default(),
        name => name,
    }
}
