//! A recording's timeline: what the user, the managers and Ironic did, in order.
//!
//! One line is one entry: its time since the start, then who did what. Plain reads of Ironic are folded into one entry,
//! long values are cut by the recorder. Reading is total: a line that fits no form is an error with its number.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// After so many signs the recorder cuts the value of a member.
const LONGEST_VALUE: usize = 160;
/// What the recorder puts after a body that it cuts.
const CUT: &str = "...";

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Entry {
    /// Tenths of a second since the start.
    pub(in crate::golden) at: u64,
    /// What it was.
    pub(in crate::golden) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) enum What {
    /// A person, or the recorder in a person's place.
    User(String),
    /// An event that a manager told.
    Event(String),
    /// An object was stored.
    Change(Change),
    /// A change that was asked of Ironic, or a read that failed.
    Request(Request),
    /// Reads of Ironic that told something, folded: how many of each kind.
    Reads(Vec<(String, u32)>),
}

/// An object that was stored, or removed.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Change {
    /// Its resource, in the plural.
    pub(in crate::golden) plural: String,
    /// Its name.
    pub(in crate::golden) name: String,
    /// What became of it.
    pub(in crate::golden) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) enum Kind {
    Created,
    Removed,
    /// These members have other values now.
    Members(Vec<Member>),
    /// Nothing that the recorder shows.
    Unseen,
}

/// A member that has another value than before.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Member {
    /// Its place, such as `status.poweredOn`.
    pub(in crate::golden) path: String,
    /// Its new value.
    pub(in crate::golden) after: Shown,
}

/// A value as far as the recorder shows it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) enum Shown {
    Absent,
    Whole(Value),
    /// Too long for the recorder.
    Cut,
}

/// A request to Ironic that was not a plain read.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::golden) struct Request {
    /// Its method.
    pub(in crate::golden) method: String,
    /// Path and query.
    pub(in crate::golden) path: String,
    /// Status of the answer.
    pub(in crate::golden) status: u16,
    /// What was sent.
    pub(in crate::golden) body: Shown,
    /// What was answered, where that was an error.
    pub(in crate::golden) answer: Shown,
}

/// Every entry of a timeline.
///
/// # Errors
/// The first line that cannot be read.
pub(in crate::golden) fn read(text: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut now = 0;
    for (number, line) in text.lines().enumerate() {
        match stamped(line) {
            Some((at, rest)) => {
                let what = what(rest).with_context(|| format!("line {}: {line}", number + 1))?;
                ensure!(at >= now, "line {}: time goes back: {line}", number + 1);
                now = at;
                entries.push(Entry { at, what });
            }
            // The words of an event may go over several lines.
            None => match entries.last_mut().map(|entry| &mut entry.what) {
                Some(What::Event(words)) => {
                    words.push('\n');
                    words.push_str(line);
                }
                _ => bail!("line {} has no time: {line}", number + 1),
            },
        }
    }
    Ok(entries)
}

/// The time of a line and what follows it.
fn stamped(line: &str) -> Option<(u64, &str)> {
    let (time, rest) = line.trim_start().split_once("s  ")?;
    let (seconds, tenths) = time.split_once('.')?;
    let at = seconds.parse::<u64>().ok()?.checked_mul(10)?;
    Some((at.checked_add(tenths.parse().ok()?)?, rest))
}

fn what(rest: &str) -> Result<What> {
    if let Some(words) = rest.strip_prefix("#### ") {
        return Ok(What::User(words.to_owned()));
    }
    if let Some(words) = rest.strip_prefix("event ") {
        return Ok(What::Event(words.to_owned()));
    }
    match rest.strip_prefix("ironic ") {
        Some(rest) => ironic(rest),
        None => change(rest).map(What::Change),
    }
}

fn ironic(rest: &str) -> Result<What> {
    let (method, rest) = rest.split_once(' ').context("a request without path")?;
    if !rest.starts_with('/') {
        let reads = rest.split(", ").map(|read| {
            let (what, count) = read.rsplit_once(" x")?;
            Some((what.to_owned(), count.parse().ok()?))
        });
        let reads = reads
            .collect::<Option<_>>()
            .context("folded reads are `what xN, ...`")?;
        return Ok(What::Reads(reads));
    }
    let (path, rest) = rest.split_once(' ').context("a request without status")?;
    let (status, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let (body, rest) = if rest.starts_with("=>") {
        (Shown::Absent, rest)
    } else {
        document(rest)?
    };
    let answer = match rest.trim_start().strip_prefix("=> ") {
        None if rest.trim().is_empty() => Shown::Absent,
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
        request.is_refused() == (request.answer != Shown::Absent),
        "an answer is shown where it is an error, and nowhere else"
    );
    Ok(What::Request(request))
}

impl Request {
    /// Whether Ironic refused it.
    pub(in crate::golden) const fn is_refused(&self) -> bool {
        self.status >= 400
    }

    /// Whether it would change Ironic. What is read and refused stands in a timeline, too.
    pub(in crate::golden) fn is_change(&self) -> bool {
        self.method != "GET"
    }
}

/// A document, and what follows it. One that is cut goes to the end of its line.
fn document(text: &str) -> Result<(Shown, &str)> {
    Ok(match json(text) {
        _ if text.is_empty() => (Shown::Absent, ""),
        Some((value, rest)) => (Shown::Whole(value), rest),
        None if text.ends_with(CUT) => (Shown::Cut, ""),
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
        "(no visible change)" | "(timestamps or observedGeneration only)" => Kind::Unseen,
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

/// A value and the rest, which is empty or begins with `end`.
fn shown<'a>(text: &'a str, end: &str) -> Option<(Shown, &'a str)> {
    let ends = |rest: &&str| rest.is_empty() || rest.starts_with(end);
    if let Some(rest) = text.strip_prefix('-').filter(ends) {
        return Some((Shown::Absent, rest));
    }
    if let Some((value, rest)) = json(text).filter(|(_, rest)| ends(rest)) {
        return Some((Shown::Whole(value), rest));
    }
    let (at, last) = text.char_indices().nth(LONGEST_VALUE - 1)?;
    let rest = text.get(at + last.len_utf8()..)?;
    ends(&rest).then_some((Shown::Cut, rest))
}

/// The JSON value at the beginning of a text, and the rest.
fn json(text: &str) -> Option<(Value, &str)> {
    if !text.starts_with(['"', '{', '[']) {
        // A number or a word: the reader of streams would ask for a sign of JSON behind it.
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

    fn only(line: &str) -> What {
        let entries = read(line).unwrap();
        assert_eq!(entries.len(), 1, "{line}");
        entries[0].what.clone()
    }

    #[test]
    fn lines_are_told_apart_by_who_acted() {
        let text =
            "  1.0s  #### user: create\n 12.3s  event Failed: two\nlines\n 12.4s  ironic GET node x1, ports x12\n";
        let reads = vec![("node".to_owned(), 1), ("ports".to_owned(), 12)];
        let entry = |at, what| Entry { at, what };
        assert_eq!(
            read(text).unwrap(),
            [
                entry(10, What::User("user: create".into())),
                entry(123, What::Event("Failed: two\nlines".into())),
                entry(124, What::Reads(reads)),
            ]
        );
    }

    #[test]
    fn requests_have_what_was_sent_and_what_was_refused() {
        let of = |line: &str| match only(line) {
            What::Request(request) => (request.method, request.status, request.body, request.answer),
            other => panic!("{other:?}"),
        };
        let whole = |value| Shown::Whole(value);
        for (line, expected) in [
            (
                "1.0s  ironic DELETE /v1/nodes/n 204 ",
                ("DELETE", 204, Shown::Absent, Shown::Absent),
            ),
            (
                "1.0s  ironic PUT /v1/nodes/n/states/power 202 {\"target\":\"power on\"}",
                ("PUT", 202, whole(json!({ "target": "power on" })), Shown::Absent),
            ),
            (
                "1.0s  ironic GET /v1/nodes/n 404 => {\"error\": 1}",
                ("GET", 404, Shown::Absent, whole(json!({ "error": 1 }))),
            ),
            (
                "1.0s  ironic PATCH /v1/nodes/n 409 [] => {\"error\": 1}",
                ("PATCH", 409, whole(json!([])), whole(json!({ "error": 1 }))),
            ),
            (
                "1.0s  ironic PUT /v1/nodes/n 202 {\"a\":[1,...",
                ("PUT", 202, Shown::Cut, Shown::Absent),
            ),
        ] {
            let (method, status, body, answer) = of(line);
            assert_eq!((method.as_str(), status, body, answer), expected, "{line}");
        }
    }

    #[test]
    fn members_are_read_whole_absent_or_cut() {
        let long = format!("\"{}", "x; y: z -> ".repeat(20));
        let cut: String = long.chars().take(LONGEST_VALUE).collect();
        let line =
            format!("1.0s  hosts/h gen 1: spec.a: - -> \"b; c: d -> e\"; spec.f: {cut} -> -; spec.g: -1 -> {cut}");
        let What::Change(Change {
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
                ("spec.a".to_owned(), Shown::Whole(json!("b; c: d -> e"))),
                ("spec.f".to_owned(), Shown::Absent),
                ("spec.g".to_owned(), Shown::Cut),
            ]
        );
    }

    #[test]
    fn a_line_of_no_form_is_an_error_with_its_number() {
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
