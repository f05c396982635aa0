//! Filling in and judging: the hook's rules over the documents of a request.

use metal3_api::rules::{Operation, ReviewError};
use serde_json::Value;

use super::answer::{Admitted, Refusal};
use super::request::Asked;
use crate::neighbours::{self, Neighbours};
use crate::table::{Hook, Task};

/// Lets the request through or refuses it. A dry run is answered as any other: nothing is written either way.
pub(super) fn answer(hook: &Hook, asked: &Asked<'_>, neighbours: &dyn Neighbours) -> Result<Admitted, Refusal> {
    let reviewer = &hook.reviewer;
    let expected = [reviewer.group, reviewer.version, reviewer.plural];
    if asked.resource != expected {
        let [group, version, plural] = asked.resource;
        return Err(Refusal::unreadable(format!(
            "request.resource: {plural}.{version}.{group} is not reviewed at {}; ask there about {}.{}.{}",
            hook.path(),
            reviewer.plural,
            reviewer.version,
            reviewer.group,
        )));
    }
    match asked.subresource {
        "" => {}
        // The Go managers are not asked about it, and no rule looks at what a controller observed.
        "status" => return Ok(Admitted::default()),
        other => {
            return Err(Refusal::unreadable(format!(
                "request.subResource: {other:?} is not reviewed here; ask about the object itself"
            )));
        }
    }
    match hook.task {
        Task::Fill => fill(hook, asked),
        Task::Judge => judge(hook, asked, neighbours),
    }
}

fn fill(hook: &Hook, asked: &Asked<'_>) -> Result<Admitted, Refusal> {
    if asked.operation == Operation::Delete {
        return Ok(Admitted::default());
    }
    let misshapen = |problem: String| Refusal::misshapen(&hook.reviewer, name(asked), &problem);
    let object = asked
        .object
        .ok_or_else(|| misshapen("the request carries no new object".into()))?;
    let filled = (hook.reviewer.fill)(object).map_err(|error| misshapen(error.to_string()))?;
    Ok(Admitted {
        patch: json_patch::diff(object, &filled),
        warnings: Vec::new(),
    })
}

fn judge(hook: &Hook, asked: &Asked<'_>, neighbours: &dyn Neighbours) -> Result<Admitted, Refusal> {
    let reviewer = &hook.reviewer;
    let documents = (asked.old_object, asked.object);
    let misshapen = |error: ReviewError| Refusal::misshapen(reviewer, name(asked), &error.to_string());
    let mut verdict = (reviewer.review)(asked.operation, documents.0, documents.1).map_err(misshapen)?;
    let objections = neighbours::objections(reviewer, asked.operation, documents, neighbours);
    verdict.findings.extend(objections);
    let refusals: Vec<_> = verdict.refusals().collect();
    if refusals.is_empty() {
        return Ok(Admitted {
            warnings: verdict.warnings(),
            ..Admitted::default()
        });
    }
    Err(Refusal::invalid(reviewer, name(asked), &refusals))
}

/// The name users know the object by. A request to create may leave it to the server.
fn name<'a>(asked: &Asked<'a>) -> &'a str {
    let object = asked.object.or(asked.old_object).unwrap_or(&Value::Null);
    let member = |path: &str| object.pointer(path).and_then(Value::as_str);
    match asked.name {
        "" => member("/metadata/name")
            .or_else(|| member("/metadata/generateName"))
            .unwrap_or_default(),
        name => name,
    }
}
