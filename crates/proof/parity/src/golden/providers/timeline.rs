//! Writes of a recording in order, as far as they are replayed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::fields::{ComparedKind, Fields, ObjectId, Placeholders, is_set};
use metal3_files::documents;

/// Changed fields of each write; empty for removed ones.
pub(super) type Writes = BTreeMap<ObjectId, Vec<Fields>>;

/// Reads the writes up to the last compared state, and those of the following seconds.
pub(super) fn read(folder: &Path, (last, observe_seconds): (&str, u32), placeholders: &Placeholders) -> Result<Writes> {
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
            end = Some(time + f64::from(observe_seconds));
        } else if let Some((id, changed)) = event.strip_prefix("by ").and_then(|event| write(event, placeholders)) {
            writes.entry(id).or_default().push(changed);
        }
    }
    end.map(|_| writes)
        .with_context(|| format!("{}: no state {last}", file.display()))
}

/// `who: plural/name gen 1: path: old -> new; path: old -> new`
fn write(event: &str, placeholders: &Placeholders) -> Option<(ObjectId, Fields)> {
    let (writer, rest) = event.split_once(": ")?;
    let (object, changes) = rest.split_once(": ")?;
    let (plural, name) = object.split_whitespace().next()?.split_once('/')?;
    let compared = ComparedKind::of_plural(plural).filter(|compared| compared.writer == writer)?;
    let mut changed = Fields::new();
    for change in pieces(changes) {
        let Some((path, (old, new))) = change
            .split_once(": ")
            .and_then(|(path, values)| Some((path, values.rsplit_once(" -> ")?)))
        else {
            continue;
        };
        let value = |text: &str| placeholders.shared(without_message(text));
        let (old, new) = (value(old), value(new));
        let new_value = |value: String| {
            if is_set(compared, path, &value) {
                value
            } else {
                String::new()
            }
        };
        let (old, new) = (new_value(old), new_value(new));
        if compared.compares(path) && old != new {
            changed.insert(path.to_owned(), new);
        }
    }
    let id = ObjectId {
        kind: compared.kind,
        name: placeholders.shared(name),
    };
    (!changed.is_empty()).then_some((id, changed))
}

/// Splits changes. A part that does not start with a path belongs to the previous message.
fn pieces(changes: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in changes.split("; ") {
        let starts_path = ["metadata", "spec", "status"]
            .iter()
            .any(|part| piece.starts_with(part));
        match all.last_mut().filter(|_| !starts_path) {
            Some(last) => last.extend(["; ", piece]),
            None => all.push(piece.to_owned()),
        }
    }
    all
}

/// Conditions are recorded with their message.
fn without_message(text: &str) -> &str {
    text.split_once(" (").map_or(text, |(new_value, _)| new_value).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders() -> Placeholders {
        Placeholders {
            namespace: "n".to_owned(),
            machine: "m-x7".to_owned(),
        }
    }

    #[test]
    fn writes_are_parsed_without_messages_and_random_names() {
        let event = "byoh: byohosts/h0 gen 2: metadata.labels.key: - -> n.m-x7; spec: {} -> -; status.machineRef.uid: - -> 1; \
                     status.conditions[Ok]: False Why (one; two) -> True";
        let (id, changed) = write(event, &placeholders()).unwrap();
        assert_eq!((id.kind, id.name.as_str()), ("ByoHost", "h0"));
        let expected = [
            ("metadata.labels.key", "NAMESPACE.MACHINE"),
            ("status.conditions[Ok]", "True"),
        ];
        let expected: Fields = expected.map(|(path, value)| (path.to_owned(), value.to_owned())).into();
        assert_eq!(changed, expected);
    }

    #[test]
    fn writes_of_others_and_uncompared_fields_are_skipped() {
        for event in [
            "user: byohosts/h0 gen 1 created; metadata.labels.site: a",
            "core: byomachines/m-x7 gen 1: status.ready: - -> true",
            "byoh: byohosts/h0 gen 2: spec: {} -> -",
            "core: clusters/c gen 1: status.initialization.infrastructureProvisioned: - -> false",
            "byoh: secrets/s: metadata.labels.key: - -> value",
        ] {
            assert_eq!(write(event, &placeholders()), None, "{event}");
        }
    }
}
