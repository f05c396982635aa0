//! Admission responses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use metal3_api::rules::{Finding, Reviewer};
use serde_json::{Value, json};

/// An accepted request.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// The defaults.
    pub(crate) patch: Patch,
    /// The warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// A rejected request, as the `Status` that the API server returns.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
    details: Value,
}

impl Refusal {
    /// The object violates rules. The format is that of the API server's own rejections.
    ///
    /// differs: `refusal-is-invalid`. The Go managers respond so for two of the three groups.
    pub(crate) fn invalid(reviewer: &Reviewer, name: &str, findings: &[&Finding], more: usize) -> Self {
        let texts = findings.iter().map(ToString::to_string);
        let texts: Vec<String> = texts.chain((more > 0).then(|| format!("and {more} more"))).collect();
        let text = match texts.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let causes = findings.iter().map(|finding| {
            json!({
                "reason": finding.reason.cause(), "message": finding.detail(), "field": finding.path.as_str(),
            })
        });
        Self::status(reviewer, name, &text, causes.collect())
    }

    /// The object does not decode as its kind.
    pub(crate) fn malformed(reviewer: &Reviewer, name: &str, problem: &str) -> Self {
        Self::status(reviewer, name, problem, json!([]))
    }

    /// The user lacks a right.
    pub(crate) fn forbidden(reviewer: &Reviewer, name: &str, problem: &str) -> Self {
        let Reviewer { kind, group, .. } = reviewer;
        Self {
            code: 403,
            reason: "Forbidden",
            message: format!("{kind}.{group} {name:?} is forbidden: {problem}"),
            details: json!({ "group": group, "kind": kind, "name": name }),
        }
    }

    fn status(reviewer: &Reviewer, name: &str, text: &str, causes: Value) -> Self {
        let Reviewer { kind, group, .. } = reviewer;
        Self {
            code: 422,
            reason: "Invalid",
            message: format!("{kind}.{group} {name:?} is invalid: {text}"),
            details: json!({ "group": group, "kind": kind, "name": name, "causes": causes }),
        }
    }

    /// The request is not one for this webhook.
    pub(crate) fn unreadable(problem: String) -> Self {
        Self {
            code: 400,
            reason: "BadRequest",
            message: problem,
            details: Value::Null,
        }
    }
}

/// The `response` of an admission review.
pub(crate) fn response(uid: &str, answer: Result<Admitted, Refusal>) -> Value {
    let Admitted { patch, warnings } = match answer {
        Ok(admitted) => admitted,
        Err(refusal) => return refused(uid, refusal),
    };
    let mut response = json!({ "uid": uid, "allowed": true });
    if let Value::Object(members) = &mut response {
        if !warnings.is_empty() {
            members.insert("warnings".into(), warnings.into());
        }
        if !patch.is_empty() {
            members.insert("patchType".into(), "JSONPatch".into());
            members.insert("patch".into(), STANDARD.encode(patch.to_string()).into());
        }
    }
    response
}

fn refused(uid: &str, refusal: Refusal) -> Value {
    let mut status = json!({
        "status": "Failure", "code": refusal.code, "reason": refusal.reason, "message": refusal.message,
    });
    if let (Value::Object(members), false) = (&mut status, refusal.details.is_null()) {
        members.insert("details".into(), refusal.details);
    }
    json!({ "uid": uid, "allowed": false, "status": status })
}
