//! What is told by Events: the changes of a status that somebody may want to look up later.
//!
//! A condition says how things are, an Event that they became so. Rows say which conditions are worth one; a wait that
//! every machine goes through is not, and a message that changes under the same reason is none. The text is that of the
//! condition.
//!
//! differs: `machine-events`

use metal3_api::meta::Condition;
use metal3_runtime::events::Importance;
use metal3_runtime::reason::Reason;

/// A condition that is worth an Event when it comes up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    aspect: &'static str,
    reason: Reason,
    importance: Importance,
    /// Said where the condition has no words of its own.
    otherwise: &'static str,
}

impl Row {
    /// Something that goes well.
    pub(super) const fn good(aspect: &'static str, reason: &'static str, says: &'static str) -> Self {
        Self {
            aspect,
            reason: Reason::new(reason),
            importance: Importance::Normal,
            otherwise: says,
        }
    }

    /// Something that somebody should look at. Its condition always has words.
    pub(super) const fn bad(aspect: &'static str, reason: &'static str) -> Self {
        Self {
            aspect,
            reason: Reason::new(reason),
            importance: Importance::Warning,
            otherwise: "",
        }
    }

    fn find<'a>(&self, conditions: &'a [Condition]) -> Option<&'a Condition> {
        let mut all = conditions.iter();
        all.find(|one| one.type_ == self.aspect && one.reason == self.reason.as_str())
    }
}

/// What came up between two states of the conditions.
pub(super) fn between(rows: &[Row], before: &[Condition], after: &[Condition]) -> Vec<(Importance, Reason, String)> {
    let new = rows.iter().filter(|row| row.find(before).is_none());
    let new = new.filter_map(|row| Some((row, row.find(after)?)));
    new.map(|(row, condition)| {
        let note = match condition.message.as_str() {
            "" => row.otherwise,
            message => message,
        };
        (row.importance, row.reason, note.to_owned())
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &[Row] = &[Row::good("Fed", "Eaten", "had breakfast"), Row::bad("Fed", "Hungry")];

    fn fed(reason: &str, message: &str) -> Vec<Condition> {
        vec![Condition {
            type_: "Fed".to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Condition::default()
        }]
    }

    fn told(before: &[Condition], after: &[Condition]) -> Vec<(&'static str, String)> {
        let news = between(ROWS, before, after);
        news.into_iter()
            .map(|(_, reason, note)| (reason.as_str(), note))
            .collect()
    }

    #[test]
    fn what_comes_up_is_told_once_in_the_words_of_the_condition() {
        let hungry = fed("Hungry", "no bread; buy some");
        assert_eq!(told(&[], &hungry), [("Hungry", "no bread; buy some".to_owned())]);
        assert_eq!(told(&hungry, &fed("Hungry", "no milk; buy some")), []);
        assert_eq!(
            told(&hungry, &fed("Eaten", "")),
            [("Eaten", "had breakfast".to_owned())]
        );
    }

    #[test]
    fn reasons_without_a_row_and_conditions_that_go_tell_nothing() {
        assert_eq!(told(&[], &fed("Asleep", "")), []);
        assert_eq!(told(&fed("Eaten", ""), &[]), []);
    }
}
