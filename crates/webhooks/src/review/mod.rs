//! Questions and answers as pure functions: a body comes in, a document goes out.

mod admission;
mod answer;
pub(crate) mod conversion;
mod request;

use serde_json::Value;

use crate::neighbours::Neighbours;
use crate::table::Hook;

pub(crate) use request::Unanswerable;

/// The answer to an `AdmissionReview`. Only a body without a `uid` has none: an answer must name its question.
pub(crate) fn admit(hook: &Hook, body: &[u8], neighbours: &dyn Neighbours) -> Result<Value, Unanswerable> {
    let envelope = request::envelope(body, "admission.k8s.io/v1", "AdmissionReview")?;
    let answer = request::Asked::read(&envelope.request)
        .map_err(answer::Refusal::unreadable)
        .and_then(|asked| admission::answer(hook, &asked, neighbours));
    let response = answer::response(&envelope.uid, answer);
    Ok(envelope.reply(response))
}
