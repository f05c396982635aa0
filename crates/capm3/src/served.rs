//! The condition that names the fields of an object that are stored without effect.

use metal3_api::infrastructure::conditions::shared::REASON_NOT_YET;
use metal3_api::meta::{Condition, Time};
use metal3_runtime::condition::{ConditionBuilder, Severity, set_condition};

/// Whether every set field has an effect. An object without such fields does not have it.
const SPEC_SERVED: &str = "SpecServed";

/// The fields of an object that are stored without effect, and what happens instead.
pub(crate) struct Unserved {
    fields: Vec<&'static str>,
    instead: &'static str,
}

impl Unserved {
    /// Those of the fields that are used.
    pub(crate) fn of<const N: usize>(fields: [(&'static str, bool); N], instead: &'static str) -> Self {
        let used = fields.into_iter().filter(|(_, is_used)| *is_used);
        Self {
            fields: used.map(|(name, _)| name).collect(),
            instead,
        }
    }
}

/// Sets the condition, or removes it.
pub(crate) fn report(conditions: &mut Vec<Condition>, unserved: &Unserved, generation: Option<i64>, now: Time) {
    if unserved.fields.is_empty() {
        conditions.retain(|one| one.type_ != SPEC_SERVED);
        return;
    }
    let message = format!(
        "without effect yet: {}; {}",
        unserved.fields.join(", "),
        unserved.instead
    );
    let statement = ConditionBuilder::mark_false(SPEC_SERVED, REASON_NOT_YET, Severity::Info, message);
    set_condition(conditions, statement.standard(generation, now));
}
