//! Objects of other providers: what their conditions say.

use metal3_api::meta::{Condition, ConditionStatus};
use serde_json::Value;

use super::conditions::{Bad, first_bad, since};
use super::{End, Next, Walk};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::snapshot::Read;
use crate::table::Actor;

/// The conditions by which providers report, those of a step before the summaries.
const ORDER: [Bad; 5] = [
    ("Paused", ConditionStatus::True),
    ("DataSecretAvailable", ConditionStatus::False),
    ("Initialized", ConditionStatus::False),
    ("Available", ConditionStatus::False),
    ("Ready", ConditionStatus::False),
];

impl Walk<'_> {
    pub(crate) fn foreign(&mut self, at: &ObjectId) -> Result<Next, End> {
        let Some(object) = self.answer(Read::Object(at.clone()))?.into_iter().next() else {
            return Err(self.absent(at));
        };
        let conditions = conditions(&object);
        let cure = format!(
            "See its conditions, and the log of its provider: kubectl describe {} {}.",
            at.kind, at.name
        );
        match first_bad(&conditions, &ORDER) {
            Some(bad) => self.push(Link {
                reason: Some(bad.reason.clone()),
                message: bad.message.clone(),
                since: since(bad),
                ..Link::plain(at, format!("{} is not as it should be", bad.type_), Actor::System, cure)
            }),
            None if conditions.is_empty() => {
                self.push(Link::plain(at, "has no conditions yet", Actor::System, cure));
            }
            None => {}
        }
        Ok(None)
    }
}

/// The conditions that can be decoded.
fn conditions(object: &Value) -> Vec<Condition> {
    let all = object.pointer("/status/conditions").and_then(Value::as_array);
    let all = all.map(Vec::as_slice).unwrap_or_default();
    let decoded = all.iter().filter_map(|one| serde_json::from_value(one.clone()).ok());
    decoded.collect()
}
