//! Events for changes of conditions.
//!
//! A condition is the current state, an Event records its start. Rules select the conditions with an Event: waits that
//! every machine passes through have none, and a changed message under the same reason has none. The note is the
//! condition's message.
//!
//! differs: `machine-events`

use metal3_api::meta::Condition;
use metal3_runtime::events::Importance;
use metal3_runtime::plan::PlannedEvent;
use metal3_runtime::reason::Reason;

/// A condition that starts with an Event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventRule {
    condition_type: &'static str,
    reason: Reason,
    importance: Importance,
    /// The note when the condition has no message.
    default_note: &'static str,
}

impl EventRule {
    /// An expected step.
    pub(crate) const fn normal(condition_type: &'static str, reason: Reason, default_note: &'static str) -> Self {
        Self {
            condition_type,
            reason,
            importance: Importance::Normal,
            default_note,
        }
    }

    /// A problem for the user. Its condition always has a message.
    pub(crate) const fn warning(condition_type: &'static str, reason: Reason) -> Self {
        Self {
            condition_type,
            reason,
            importance: Importance::Warning,
            default_note: "",
        }
    }

    fn find<'a>(&self, conditions: &'a [Condition]) -> Option<&'a Condition> {
        let mut all = conditions.iter();
        all.find(|one| one.type_ == self.condition_type && one.reason == self.reason.as_str())
    }
}

/// The Events for conditions that are in `after` and not in `before`.
pub(crate) fn events_between(rows: &[EventRule], before: &[Condition], after: &[Condition]) -> Vec<PlannedEvent> {
    let new = rows.iter().filter(|row| row.find(before).is_none());
    let new = new.filter_map(|row| Some((row, row.find(after)?)));
    new.map(|(row, condition)| {
        let note = match condition.message.as_str() {
            "" => row.default_note,
            message => message,
        };
        PlannedEvent {
            importance: row.importance,
            reason: row.reason,
            message: note.to_owned(),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[EventRule] = &[
        EventRule::normal("Fed", Reason::new("Eaten"), "had breakfast"),
        EventRule::warning("Fed", Reason::new("Hungry")),
    ];

    fn fed(reason: &str, message: &str) -> Vec<Condition> {
        vec![Condition {
            type_: "Fed".to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Condition::default()
        }]
    }

    fn started(before: &[Condition], after: &[Condition]) -> Vec<(&'static str, String)> {
        let events = events_between(ROWS, before, after);
        events
            .into_iter()
            .map(|event| (event.reason.as_str(), event.message))
            .collect()
    }

    #[test]
    fn starting_condition_gives_one_event_with_its_message() {
        let hungry = fed("Hungry", "no bread; buy some");
        assert_eq!(started(&[], &hungry), [("Hungry", "no bread; buy some".to_owned())]);
        assert_eq!(started(&hungry, &fed("Hungry", "no milk; buy some")), []);
        assert_eq!(
            started(&hungry, &fed("Eaten", "")),
            [("Eaten", "had breakfast".to_owned())]
        );
    }

    #[test]
    fn reasons_without_a_rule_and_removed_conditions_give_no_event() {
        assert_eq!(started(&[], &fed("Asleep", "")), []);
        assert_eq!(started(&fed("Eaten", ""), &[]), []);
    }
}
