//! Reviews as pure functions from a request body to a response document.

mod admission;
pub(crate) mod conversion;
mod request;
mod response;

use serde_json::Value;

use crate::related_objects::RelatedObjects;
use crate::table::Hook;

pub(crate) use request::InvalidReview;

/// Responds to an `AdmissionReview`. A body without a `uid` is an error, because the response must contain it.
pub(crate) fn admit(hook: &Hook, body: &[u8], related_objects: &dyn RelatedObjects) -> Result<Value, InvalidReview> {
    let envelope = request::envelope(body, "admission.k8s.io/v1", "AdmissionReview")?;
    let answer = request::AdmissionRequest::read(&envelope.request)
        .map_err(response::Refusal::unreadable)
        .and_then(|request| admission::answer(hook, &request, related_objects));
    let response = response::response(&envelope.uid, answer);
    Ok(envelope.reply(response))
}
