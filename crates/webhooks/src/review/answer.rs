//! What the API server is told, and through it the user.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use metal3_api::rules::{Finding, Reviewer};
use serde_json::{Value, json};

/// A request that goes through.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    /// What is filled in.
    pub(crate) patch: Patch,
    /// What the user is told.
    pub(crate) warnings: Vec<String>,
}

/// A request that does not, as the `Status` the API server passes on.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: u16,
    reason: &'static str,
    message: String,
    details: Value,
}

impl Refusal {
    /// The object breaks rules. The form is that of the API server's own refusals.
    ///
    /// differs: `refusal-is-invalid`. The Go managers answer so for two of the three groups.
    pub(crate) fn invalid(reviewer: &Reviewer, name: &str, findings: &[&Finding]) -> Self {
        let texts: Vec<String> = findings.iter().map(ToString::to_string).collect();
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

    /// The object is not of the shape its kind has.
    pub(crate) fn misshapen(reviewer: &Reviewer, name: &str, problem: &str) -> Self {
        Self::status(reviewer, name, problem, json!([]))
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

    /// The request is none that this webhook is asked.
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
