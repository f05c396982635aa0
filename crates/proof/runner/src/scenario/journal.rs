//! Journal of every version of every object, in order: shown with a failure, and compared between two runs of one seed.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_sim_capi::view::Object;

/// One version of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    text: String,
    /// Of the whole object, so that every difference is detected.
    digest: u64,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Recorded lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Journal(Vec<Line>);

impl Journal {
    pub(super) fn record(&mut self, seconds: f64, object: &Object, deleted: bool) {
        let verb = match (deleted, object.is_deleting()) {
            (true, _) => "is deleted",
            (false, true) => "is being deleted",
            (false, false) => "is",
        };
        let text = format!(
            "{seconds:10.3} s  {} {} {verb} {}",
            object.kind(),
            object.key(),
            state(object)
        );
        // The hasher has fixed keys: the digest is the same in every run.
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

    /// The last `count` lines.
    pub(super) fn last(&self, count: usize) -> String {
        let skipped = self.0.len().saturating_sub(count);
        let last: Vec<String> = self.0.iter().skip(skipped).map(Line::to_string).collect();
        last.join("\n")
    }

    /// The first line that differs between two journals, or is missing in one.
    pub(super) fn first_difference(&self, other: &Self) -> Option<String> {
        let longer = self.0.len().max(other.0.len());
        let at = (0..longer).find(|at| self.0.get(*at) != other.0.get(*at))?;
        let shown = |journal: &Self| match journal.0.get(at) {
            Some(line) => format!("{line} ({:016x})", line.digest),
            None => "nothing".to_owned(),
        };
        Some(format!(
            "line {}: first\n{}\nthen\n{}",
            at.saturating_add(1),
            shown(self),
            shown(other)
        ))
    }
}

/// The state of an object in a few words.
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
    let texts = known.iter().map(|at| object.text(at)).filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join(", ")
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
            journal.record(1.0, &object, false);
        }
        journal
    }

    #[test]
    fn journals_differ_at_the_first_different_line() {
        assert_eq!(journal(&["A", "B"]).first_difference(&journal(&["A", "B"])), None);
        let first_difference = journal(&["A", "B"]).first_difference(&journal(&["A", "C"])).unwrap();
        assert!(
            first_difference.starts_with("line 2: ") && first_difference.contains("is B"),
            "{first_difference}"
        );
        let first_difference = journal(&["A"]).first_difference(&journal(&["A", "C"])).unwrap();
        assert!(first_difference.contains("nothing"), "{first_difference}");
    }

    #[test]
    fn a_difference_outside_of_the_printed_text_is_detected() {
        let object = |value: u8| Object(json!({ "kind": "Machine", "spec": { "x": value } }));
        let (mut one, mut other) = (Journal::default(), Journal::default());
        one.record(1.0, &object(1), false);
        other.record(1.0, &object(2), false);
        assert!(one.first_difference(&other).is_some());
    }
}
