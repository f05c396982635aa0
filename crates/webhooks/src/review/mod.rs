//! Reviews as pure functions from a request body to a response document.

mod admission;
pub(crate) mod conversion;
mod request;
mod response;
mod text;

use axum::body::Bytes;
use serde_json::Value;

use crate::guarded::AccessQuestion;
use crate::limits::Reviewed;
use crate::related_objects::RelatedObjects;
use crate::table::Hook;

pub(crate) use request::InvalidReview;

/// A request that all rules accept, if its user has a right.
pub(crate) struct Pending {
    pub(crate) question: AccessQuestion,
    envelope: request::Envelope,
    hook: Hook,
    name: String,
    admitted: response::Admitted,
}

impl Pending {
    /// The response with the decision about the right.
    pub(crate) fn answer(self, decision: &Result<bool, String>) -> Vec<Bytes> {
        let answer = match decision {
            Ok(true) => Ok(self.admitted),
            Ok(false) | Err(_) => {
                let denial = self.question.denial(decision);
                Err(response::Refusal::forbidden(&self.hook.reviewer, &self.name, &denial))
            }
        };
        written(&self.envelope.reply(response::response(&self.envelope.uid, answer)))
    }
}

/// Responds to an `AdmissionReview`. A body without a `uid` is an error, because the response must contain it.
pub(crate) fn admit(
    hook: &Hook,
    body: &[u8],
    related_objects: &dyn RelatedObjects,
) -> Result<Reviewed<Box<Pending>>, InvalidReview> {
    let mut envelope = request::envelope(body, "admission.k8s.io/v1", "AdmissionReview")?;
    let answer = request::AdmissionRequest::read(&envelope.request)
        .map_err(response::Refusal::unreadable)
        .and_then(|request| {
            let admitted = admission::answer(hook, &request, related_objects)?;
            let question = admission::question(hook, &request);
            Ok((admitted, question.map(|question| (question, request.name.to_owned()))))
        });
    match answer {
        Ok((admitted, Some((question, name)))) => {
            // The object is not needed any more, and the question is asked without its memory.
            envelope.request = Value::Null;
            Ok(Reviewed::Asks(Box::new(Pending {
                question,
                envelope,
                hook: *hook,
                name,
                admitted,
            })))
        }
        answer => {
            let response = response::response(&envelope.uid, answer.map(|(admitted, _)| admitted));
            Ok(Reviewed::Answered(written(&envelope.reply(response))))
        }
    }
}

fn written(response: &Value) -> Vec<Bytes> {
    vec![response.to_string().into()]
}
