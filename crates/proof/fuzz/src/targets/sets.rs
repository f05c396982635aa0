//! Ranges of addresses, and selectors of labels.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use metal3_domain::ip::{AnyPrefix, AnyRange, EntryText, IntervalSet, PoolEntry, Range};
use metal3_domain::selector::{Expression, Selector, check_key, check_value};

use crate::target::{Answer, Parse, answers_alike, text};

fn entry_of(text: &str) -> Result<PoolEntry, metal3_domain::ip::EntryError> {
    let mut lines = text.split('\n').map(|line| (!line.is_empty()).then_some(line));
    PoolEntry::parse(EntryText {
        start: lines.next().flatten(),
        end: lines.next().flatten(),
        subnet: lines.next().flatten(),
    })
}

pub(super) fn pool_entry(input: &[u8]) -> Answer {
    Answer::of(entry_of(&text(input)), |entry| {
        format!("{entry:?} range {:?}", entry.range())
    })
}

pub(super) fn pool_entry_is_its_range(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    if let Ok(entry) = entry_of(&text(input))
        && let Ok(Some(range)) = entry.range()
    {
        if let Some(start) = entry.start.filter(|start| !range.contains(*start)) {
            return Err(format!("{range:?} is without its start {start}"));
        }
        // Without a start, the end has no effect. A subnet may end earlier.
        if let (Some(_), Some(end)) = (entry.start, entry.end) {
            let network = entry.subnet.map(|subnet| match subnet {
                AnyPrefix::V4(subnet) => AnyRange::V4(subnet.range()),
                AnyPrefix::V6(subnet) => AnyRange::V6(subnet.range()),
            });
            let is_cut = network.is_some_and(|network| !network.contains(end));
            if range.contains(end) == is_cut {
                return Err(format!("{range:?} and its end {end}"));
            }
        }
    }
    answers_alike(input, answer, parse)
}

fn ranges_of(text: &str) -> Vec<Range<Ipv6Addr>> {
    let lines = text
        .split('\n')
        .filter_map(|line| entry_of(&line.replace('-', "\n")).ok()?.range().ok()?);
    let ranges = lines.filter_map(|range| match range {
        AnyRange::V6(range) => Some(range),
        AnyRange::V4(_) => None,
    });
    ranges.collect()
}

fn set_of<'a>(ranges: impl Iterator<Item = &'a Range<Ipv6Addr>>) -> IntervalSet<Ipv6Addr> {
    let mut set = IntervalSet::new();
    ranges.for_each(|range| set.insert(*range));
    set
}

pub(super) fn ranges(input: &[u8]) -> Answer {
    let ranges = ranges_of(&text(input));
    if ranges.is_empty() {
        return Answer::Rejected("no range".to_owned());
    }
    let set = set_of(ranges.iter());
    let shown: Vec<String> = set.ranges().map(|range| range.to_string()).collect();
    let gaps = set.gaps(Range::whole()).count();
    let gap = if gaps > 2 { " gap" } else { "" };
    Answer::Accepted(format!("{} of {}{gap}", shown.join(" "), set.count()))
}

pub(super) fn ranges_in_any_order(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let ranges = ranges_of(&text(input));
    let (set, reversed) = (set_of(ranges.iter()), set_of(ranges.iter().rev()));
    if !set.ranges().eq(reversed.ranges()) {
        return Err("the order of the ranges matters".to_owned());
    }
    if !set.union(&reversed).ranges().eq(set.ranges()) || !set.difference(&reversed).is_empty() {
        return Err("a set differs from itself".to_owned());
    }
    answers_alike(input, answer, parse)
}

pub(super) const SELECTOR: &[&str] = &[
    "labels",
    "expressions",
    "key",
    "operator",
    "values",
    "In",
    "NotIn",
    "Exists",
    "DoesNotExist",
    "in",
    "notin",
    "exists",
    "!",
    "=",
    "==",
    "!=",
    "Gt",
    "Lt",
    "example.com/zone",
    "rack",
    "64",
];

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct WrittenSelector {
    labels: BTreeMap<String, String>,
    expressions: Vec<WrittenExpression>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct WrittenExpression {
    key: String,
    operator: String,
    values: Vec<String>,
}

pub(super) fn selector(input: &[u8]) -> Answer {
    let written: WrittenSelector = match serde_json::from_slice(input) {
        Ok(written) => written,
        Err(error) => return Answer::Rejected(error.to_string()),
    };
    let expressions = written.expressions.iter().map(|written| Expression {
        key: &written.key,
        operator: &written.operator,
        values: &written.values,
    });
    Answer::of(Selector::parse(&written.labels, expressions), |selector| {
        format!("{:?} {}", selector.requirements(), selector.matches(&written.labels))
    })
}

pub(super) fn label(input: &[u8]) -> Answer {
    let text = text(input);
    let (key, value) = text.split_once('=').unwrap_or((&text, ""));
    Answer::of(check_key(key).and_then(|()| check_value(value)), |()| text.clone())
}

/// A selector of the pair is valid exactly when key and value are, and it selects the pair.
pub(super) fn label_is_selectable(input: &[u8], answer: &Answer, parse: Parse<'_>) -> Result<(), String> {
    let text = text(input);
    let (key, value) = text.split_once('=').unwrap_or((&text, ""));
    let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let selector = Selector::parse(&labels, []);
    if selector.is_ok() != answer.accepted().is_some() {
        return Err(format!("as a selector it is {selector:?}"));
    }
    if selector.is_ok_and(|selector| !selector.matches(&labels)) {
        return Err("a label is not selected by itself".to_owned());
    }
    answers_alike(input, answer, parse)
}
