//! Every version of every object that the API server had, in the order of their versions: what is shown under a failure,
//! and what two runs of one seed are compared by.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_sim_capi::view::Object;

/// One version of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    text: String,
    /// Of the whole object, so that nothing differs unseen.
    digest: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The lines so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Journal(Vec<Line>);

impl Journal {
    pub(super) fn note(&mut self, seconds: f64, object: &Object, gone: bool) {
        let verb = match (gone, object.is_deleting()) {
            (true, _) => "is gone",
            (false, true) => "is going",
            (false, false) => "is",
        };
        let text = format!(
            "{seconds:10.3} s  {} {} {verb} {}",
            object.kind(),
            object.key(),
            state(object)
        );
        // Its keys are constants: the same bytes have the same digest in every run.
        let mut digest = DefaultHasher::new();
        object.0.to_string().hash(&mut digest);
        self.0.push(Line {
            text: text.trim_end().to_owned(),
            digest: digest.finish(),
        });
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.0
    }

    /// The last so many lines, each on a line.
    pub(super) fn last(&self, count: usize) -> String {
        let skipped = self.0.len().saturating_sub(count);
        let last: Vec<String> = self.0.iter().skip(skipped).map(Line::to_string).collect();
        last.join("\n")
    }

    /// Where two runs part: the first line that is not the same in both, or is missing in one.
    pub(super) fn parting(&self, other: &Self) -> Option<String> {
        let longer = self.0.len().max(other.0.len());
        let at = (0..longer).find(|at| self.0.get(*at) != other.0.get(*at))?;
        let shown = |journal: &Self| match journal.0.get(at) {
            Some(line) => format!("{line} ({:016x})", line.digest),
            None => "nothing".to_owned(),
        };
        Some(format!(
            "line {}: once\n{}\nand once\n{}",
            at.saturating_add(1),
            shown(self),
            shown(other)
        ))
    }
}

/// What is worth a word of an object's state.
fn state(object: &Object) -> String {
    let known = [
        "/status/phase",
        "/status/provisioning/state",
        "/status/errorMessage",
        "/status/nodeRef/name",
        "/reason",
        "/note",
        "/message",
    ];
    let said = known.iter().map(|at| object.text(at)).filter(|text| !text.is_empty());
    said.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn journal(phases: &[&str]) -> Journal {
        let mut journal = Journal::default();
        for phase in phases {
            let object =
                Object(json!({ "kind": "Machine", "metadata": { "name": "a" }, "status": { "phase": phase } }));
            journal.note(1.0, &object, false);
        }
        journal
    }

    #[test]
    fn equal_runs_do_not_part_and_others_part_at_the_first_line_that_differs() {
        assert_eq!(journal(&["A", "B"]).parting(&journal(&["A", "B"])), None);
        let parting = journal(&["A", "B"]).parting(&journal(&["A", "C"])).unwrap();
        assert!(parting.starts_with("line 2: ") && parting.contains("is B"), "{parting}");
        let parting = journal(&["A"]).parting(&journal(&["A", "C"])).unwrap();
        assert!(parting.contains("nothing"), "{parting}");
    }

    #[test]
    fn runs_part_where_objects_differ_in_what_no_line_shows() {
        let object = |value: u8| Object(json!({ "kind": "Machine", "spec": { "x": value } }));
        let (mut one, mut other) = (Journal::default(), Journal::default());
        one.note(1.0, &object(1), false);
        other.note(1.0, &object(2), false);
        assert!(one.parting(&other).is_some());
    }
}
