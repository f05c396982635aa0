//! Label and field selectors of lists and watches.

mod fields;
mod labels;

use serde_json::Value;

use super::refusal::Refusal;
use super::request::Call;

use fields::FieldTest;
use labels::LabelTest;

/// A parsed label and field selector.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<LabelTest>,
    fields: Vec<FieldTest>,
}

impl Selector {
    /// The selectors of a list or a watch.
    pub(crate) fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        let labels = labels::parsed(call.request.option("labelSelector"));
        let fields = fields::parsed(call.request.option("fieldSelector"), &call.kind, call.version());
        Ok(Self {
            labels: labels.map_err(Refusal::bad_request)?,
            fields: fields.map_err(Refusal::bad_request)?,
        })
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|label| label.holds(object)) && self.fields.iter().all(|field| field.holds(object))
    }
}
