//! Timeline of a recording: actions of the user, the managers and Ironic, in order.
//!
//! One line is one entry: time since the start, actor, action. Plain reads of Ironic are folded, long values truncated.
//! Parsing is total: an unknown line is an error with its number.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Length at which the recorder truncates a value.
const LONGEST_VALUE: usize = 160;
/// Suffix of a truncated body.
const CUT: &str = "...";

/// An entry.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Entry {
    /// Tenths of a second since the start.
    pub(in crate::golden) at: u64,
    /// Its kind.
    pub(in crate::golden) what: EntryKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) enum EntryKind {
    /// An action of the user, or of the recorder.
    User(String),
    /// An event of a manager.
    Event(String),
    /// A stored object.
    Change(Change),
    /// A write to Ironic, or a failed read.
    Request(Request),
    /// Folded reads of Ironic: numbers by kind.
    Reads(Vec<(String, u32)>),
}

/// A stored or removed object.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Change {
    /// Its plural resource name.
    pub(in crate::golden) plural: String,
    /// Its name.
    pub(in crate::golden) name: String,
    /// Kind of change.
    pub(in crate::golden) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) enum Kind {
    Created,
    Removed,
    /// Members with new values.
    Members(Vec<Member>),
    /// No visible change.
    Invisible,
}

/// A changed member.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Member {
    /// Its path, such as `status.poweredOn`.
    pub(in crate::golden) path: String,
    /// Its new value.
    pub(in crate::golden) after: RecordedValue,
}

/// A recorded value.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) enum RecordedValue {
    Absent,
    Whole(Value),
    /// Truncated.
    Cut,
}

/// A request to Ironic other than a plain read.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Request {
    /// Its method.
    pub(in crate::golden) method: String,
    /// Path and query.
    pub(in crate::golden) path: String,
    /// Status code.
    pub(in crate::golden) status: u16,
    /// Request body.
    pub(in crate::golden) body: RecordedValue,
    /// Response body of an error.
    pub(in crate::golden) answer: RecordedValue,
}

/// Parses all entries.
///
/// # Errors
/// The first invalid line.
pub(in crate::golden) fn read(text: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut now = 0;
    for (number, line) in text.lines().enumerate() {
        match parse_time(line) {
            Some((at, rest)) => {
                let what = what(rest).with_context(|| format!("line {}: {line}", number + 1))?;
                ensure!(at >= now, "line {}: time goes back: {line}", number + 1);
                now = at;
                entries.push(Entry { at, what });
            }
            // The message of an event may have several lines.
            None => match entries.last_mut().map(|entry| &mut entry.what) {
                Some(EntryKind::Event(words)) => {
                    words.push('\n');
                    words.push_str(line);
                }
                _ => bail!("line {} has no time: {line}", number + 1),
            },
        }
    }
    Ok(entries)
}

/// Splits the time from a line.
fn parse_time(line: &str) -> Option<(u64, &str)> {
    let (time, rest) = line.trim_start().split_once("s  ")?;
    let (seconds, tenths) = time.split_once('.')?;
    let at = seconds.parse::<u64>().ok()?.checked_mul(10)?;
    Some((at.checked_add(tenths.parse().ok()?)?, rest))
}

fn what(rest: &str) -> Result<EntryKind> {
    if let Some(words) = rest.strip_prefix("#### ") {
        return Ok(EntryKind::User(words.to_owned()));
    }
    if let Some(words) = rest.strip_prefix("event ") {
        return Ok(EntryKind::Event(words.to_owned()));
    }
    match rest.strip_prefix("ironic ") {
        Some(rest) => ironic(rest),
        None => change(rest).map(EntryKind::Change),
    }
}

fn ironic(rest: &str) -> Result<EntryKind> {
    let (method, rest) = rest.split_once(' ').context("a request without path")?;
    if !rest.starts_with('/') {
        let reads = rest.split(", ").map(|read| {
            let (what, count) = read.rsplit_once(" x")?;
            Some((what.to_owned(), count.parse().ok()?))
        });
        let reads = reads
            .collect::<Option<_>>()
            .context("folded reads are `what xN, ...`")?;
        return Ok(EntryKind::Reads(reads));
    }
    let (path, rest) = rest.split_once(' ').context("a request without status")?;
    let (status, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (body, rest) = if rest.starts_with("=>") {
        (RecordedValue::Absent, rest)
    } else {
        document(rest)?
    };
    let answer = match rest.trim_start().strip_prefix("=> ") {
        None if rest.trim().is_empty() => RecordedValue::Absent,
        None => bail!("something follows the body: {rest}"),
        Some(answer) => document(answer)?.0,
    };
    let request = Request {
        method: method.to_owned(),
        path: path.to_owned(),
        status: status.parse().context("the status is a number")?,
        body,
        answer,
    };
    ensure!(
        request.is_refused() == (request.answer != RecordedValue::Absent),
        "an answer is shown where it is an error, and nowhere else"
    );
    Ok(EntryKind::Request(request))
}

impl Request {
    /// Whether Ironic rejected it.
    pub(in crate::golden) const fn is_refused(&self) -> bool {
        self.status >= 400
    }

    /// Whether it is a write. Rejected reads are recorded too.
    pub(in crate::golden) fn is_change(&self) -> bool {
        self.method != "GET"
    }
}

/// Splits a document from a line. A truncated one extends to the end of the line.
fn document(text: &str) -> Result<(RecordedValue, &str)> {
    Ok(match json(text) {
        _ if text.is_empty() => (RecordedValue::Absent, ""),
        Some((value, rest)) => (RecordedValue::Whole(value), rest),
        None if text.ends_with(CUT) => (RecordedValue::Cut, ""),
        None => bail!("neither JSON nor cut: {text}"),
    })
}

fn change(rest: &str) -> Result<Change> {
    let (object, rest) = rest
        .split_once(" gen ")
        .context("neither user, event, request nor object")?;
    let (plural, name) = object.split_once('/').context("an object is plural/name")?;
    let (_, changes) = rest.split_once(": ").context("an object without changes")?;
    let kind = match changes {
        "created" => Kind::Created,
        "removed" => Kind::Removed,
        "(no visible change)" | "(timestamps or observedGeneration only)" => Kind::Invisible,
        _ => Kind::Members(members(changes)?),
    };
    Ok(Change {
        plural: plural.to_owned(),
        name: name.to_owned(),
        kind,
    })
}

/// `path: before -> after; path: before -> after`.
fn members(mut rest: &str) -> Result<Vec<Member>> {
    let mut members = Vec::new();
    loop {
        let (path, values) = rest.split_once(": ").context("a member without values")?;
        let (_, values) = shown(values, " -> ").context("a member without its former value")?;
        let values = values.strip_prefix(" -> ").context("a member without its new value")?;
        let (after, more) = shown(values, "; ").context("a new value that cannot be read")?;
        members.push(Member {
            path: path.to_owned(),
            after,
        });
        match more.strip_prefix("; ") {
            Some(more) => rest = more,
            None => return Ok(members),
        }
    }
}

/// Splits a value, followed by `end` or the end of the line.
fn shown<'a>(text: &'a str, end: &str) -> Option<(RecordedValue, &'a str)> {
    let ends = |rest: &&str| rest.is_empty() || rest.starts_with(end);
    if let Some(rest) = text.strip_prefix('-').filter(ends) {
        return Some((RecordedValue::Absent, rest));
    }
    if let Some((value, rest)) = json(text).filter(|(_, rest)| ends(rest)) {
        return Some((RecordedValue::Whole(value), rest));
    }
    let (at, last) = text.char_indices().nth(LONGEST_VALUE - 1)?;
    let rest = text.get(at + last.len_utf8()..)?;
    ends(&rest).then_some((RecordedValue::Cut, rest))
}

/// Splits a JSON value from a text.
fn json(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with(['"', '{', '[']) {
        // A number or keyword: the stream deserializer requires a delimiter.
        let end = text.find([' ', ';']).unwrap_or(text.len());
        let (word, rest) = text.split_at_checked(end)?;
        return Some((serde_json::from_str(word).ok()?, rest));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn only(line: &str) -> EntryKind {
        let entries = read(line).unwrap();
        assert_eq!(entries.len(), 1, "{line}");
        entries[0].what.clone()
    }

    #[test]
    fn lines_are_classified_by_actor() {
        let text =
            "  1.0s  #### user: create\n 12.3s  event Failed: two\nlines\n 12.4s  ironic GET node x1, ports x12\n";
        let reads = vec![("node".to_owned(), 1), ("ports".to_owned(), 12)];
        let entry = |at, what| Entry { at, what };
        assert_eq!(
            read(text).unwrap(),
            [
                entry(10, EntryKind::User("user: create".into())),
                entry(123, EntryKind::Event("Failed: two\nlines".into())),
                entry(124, EntryKind::Reads(reads)),
            ]
        );
    }

    #[test]
    fn requests_have_body_and_error() {
        let of = |line: &str| match only(line) {
            EntryKind::Request(request) => (request.method, request.status, request.body, request.answer),
            other => panic!("{other:?}"),
        };
        let whole = |value| RecordedValue::Whole(value);
        for (line, expected) in [
            (
                "1.0s  ironic DELETE /v1/nodes/n 204 ",
                ("DELETE", 204, RecordedValue::Absent, RecordedValue::Absent),
            ),
            (
                "1.0s  ironic PUT /v1/nodes/n/states/power 202 {\"target\":\"power on\"}",
                (
                    "PUT",
                    202,
                    whole(json!({ "target": "power on" })),
                    RecordedValue::Absent,
                ),
            ),
            (
                "1.0s  ironic GET /v1/nodes/n 404 => {\"error\": 1}",
                ("GET", 404, RecordedValue::Absent, whole(json!({ "error": 1 }))),
            ),
            (
                "1.0s  ironic PATCH /v1/nodes/n 409 [] => {\"error\": 1}",
                ("PATCH", 409, whole(json!([])), whole(json!({ "error": 1 }))),
            ),
            (
                "1.0s  ironic PUT /v1/nodes/n 202 {\"a\":[1,...",
                ("PUT", 202, RecordedValue::Cut, RecordedValue::Absent),
            ),
        ] {
            let (method, status, body, answer) = of(line);
            assert_eq!((method.as_str(), status, body, answer), expected, "{line}");
        }
    }

    #[test]
    fn members_are_complete_absent_or_truncated() {
        let long = format!("\"{}", "x; y: z -> ".repeat(20));
        let cut: String = long.chars().take(LONGEST_VALUE).collect();
        let line =
            format!("1.0s  hosts/h gen 1: spec.a: - -> \"b; c: d -> e\"; spec.f: {cut} -> -; spec.g: -1 -> {cut}");
        let EntryKind::Change(Change {
            kind: Kind::Members(members),
            ..
        }) = only(&line)
        else {
            panic!("{line}")
        };
        let after: Vec<_> = members.into_iter().map(|member| (member.path, member.after)).collect();
        assert_eq!(
            after,
            [
                ("spec.a".to_owned(), RecordedValue::Whole(json!("b; c: d -> e"))),
                ("spec.f".to_owned(), RecordedValue::Absent),
                ("spec.g".to_owned(), RecordedValue::Cut),
            ]
        );
    }

    #[test]
    fn an_invalid_line_is_an_error_with_its_number() {
        for line in [
            "no time",
            "1.0s  hosts/h changed",
            "1.0s  hosts/h gen 1: spec.a: 1 => 2",
            "1.0s  hosts/h gen 1: spec.a: 1 -> two",
            "1.0s  ironic GET node",
            "1.0s  ironic PUT /v1/nodes/n ok",
            "1.0s  ironic PUT /v1/nodes/n 202 {\"a\":",
            "1.0s  ironic PUT /v1/nodes/n 409 {}",
            "0.9s  #### user: delete",
        ] {
            let error = read(&format!("1.0s  #### user: create\n{line}\n")).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }
}
