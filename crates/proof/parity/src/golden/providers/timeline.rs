//! The writes of a recording, in their order: who wrote what into which object, as far as it is played.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::facts::{Facts, Names, Subject, Tracked, is_said};
use metal3_files::documents;

/// What each write changed of what is compared; a value that is taken away is empty.
pub(super) type Writes = BTreeMap<Subject, Vec<Facts>>;

/// Reads those before the last state that was compared, and those of so many seconds after it.
pub(super) fn read(folder: &Path, (last, looks_on): (&str, u32), names: &Names) -> Result<Writes> {
    let file = folder.join("timeline.txt");
    let text = documents::text(&file)?;
    let mut writes = Writes::new();
    let mut end = None;
    for line in text.lines() {
        let Some((time, event)) = line.trim_start().split_once("s  ") else {
            continue;
        };
        let time: f64 = time.parse().with_context(|| format!("{}: {line}", file.display()))?;
        if end.is_some_and(|end| time > end) {
            break;
        }
        if event.strip_prefix("==== ").is_some_and(|state| state.starts_with(last)) {
            end = Some(time + f64::from(looks_on));
        } else if let Some((subject, changed)) = event.strip_prefix("by ").and_then(|event| write(event, names)) {
            writes.entry(subject).or_default().push(changed);
        }
    }
    end.map(|_| writes)
        .with_context(|| format!("{}: no state {last}", file.display()))
}

/// `who: plural/name gen 1: path: old -> new; path: old -> new`
fn write(event: &str, names: &Names) -> Option<(Subject, Facts)> {
    let (writer, rest) = event.split_once(": ")?;
    let (object, changes) = rest.split_once(": ")?;
    let (plural, name) = object.split_whitespace().next()?.split_once('/')?;
    let tracked = Tracked::of_plural(plural).filter(|tracked| tracked.writer == writer)?;
    let mut changed = Facts::new();
    for change in pieces(changes) {
        let Some((path, (old, new))) = change
            .split_once(": ")
            .and_then(|(path, values)| Some((path, values.rsplit_once(" -> ")?)))
        else {
            continue;
        };
        let value = |text: &str| names.shared(without_message(text));
        let (old, new) = (value(old), value(new));
        let said = |value: String| {
            if is_said(tracked, path, &value) {
                value
            } else {
                String::new()
            }
        };
        let (old, new) = (said(old), said(new));
        if tracked.compares(path) && old != new {
            changed.insert(path.to_owned(), new);
        }
    }
    let subject = Subject {
        kind: tracked.kind,
        name: names.shared(name),
    };
    (!changed.is_empty()).then_some((subject, changed))
}

/// The changes one by one. What does not begin as a path does belongs to the message before it.
fn pieces(changes: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in changes.split("; ") {
        let begins = ["metadata", "spec", "status"]
            .iter()
            .any(|part| piece.starts_with(part));
        match all.last_mut().filter(|_| !begins) {
            Some(last) => last.extend(["; ", piece]),
            None => all.push(piece.to_owned()),
        }
    }
    all
}

/// A condition is written with its message.
fn without_message(text: &str) -> &str {
    text.split_once(" (").map_or(text, |(said, _)| said).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            namespace: "n".to_owned(),
            machine: "m-x7".to_owned(),
        }
    }

    #[test]
    fn a_write_is_what_a_provider_changed_without_messages_and_names_of_chance() {
        let event = "byoh: byohosts/h0 gen 2: metadata.labels.key: - -> n.m-x7; spec: {} -> -; status.machineRef.uid: - -> 1; \
                     status.conditions[Ok]: False Why (one; two) -> True";
        let (subject, changed) = write(event, &names()).unwrap();
        assert_eq!((subject.kind, subject.name.as_str()), ("ByoHost", "h0"));
        let expected = [
            ("metadata.labels.key", "NAMESPACE.MACHINE"),
            ("status.conditions[Ok]", "True"),
        ];
        let expected: Facts = expected.map(|(path, value)| (path.to_owned(), value.to_owned())).into();
        assert_eq!(changed, expected);
    }

    #[test]
    fn what_others_write_and_what_is_not_compared_is_no_write() {
        for event in [
            "user: byohosts/h0 gen 1 created; metadata.labels.site: a",
            "core: byomachines/m-x7 gen 1: status.ready: - -> true",
            "byoh: byohosts/h0 gen 2: spec: {} -> -",
            "core: clusters/c gen 1: status.initialization.infrastructureProvisioned: - -> false",
            "byoh: secrets/s: metadata.labels.key: - -> value",
        ] {
            assert_eq!(write(event, &names()), None, "{event}");
        }
    }
}
