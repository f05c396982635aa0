//! Inputs from a pool of inputs, by changes of text and of JSON trees.

use metal3_sim_faults::Random;
use serde_json::Value;

use crate::target::{Shape, Target};

/// Longest input. It bounds the work of a parser without a clock.
pub const LONGEST: usize = 16 << 10;

/// Characters and texts that parsers treat specially.
const PIECES: [&str; 40] = [
    "",
    "0",
    "1",
    "-1",
    "00",
    "9",
    "a",
    "Z",
    "/",
    ":",
    "@",
    "%",
    "?",
    "#",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    ",",
    ";",
    "=",
    "&",
    ".",
    "-",
    "_",
    "~",
    " ",
    "\t",
    "\n",
    "\0",
    "\u{7f}",
    "\u{e9}",
    "\u{1f600}",
    "%2f",
    "%zz",
    "18446744073709551616",
    "2147483648",
];

/// A number below `limit`, which is not zero.
pub(crate) fn below(random: &mut Random, limit: usize) -> usize {
    let limit = u64::try_from(limit.max(1)).unwrap_or(1);
    usize::try_from(random.below(limit)).unwrap_or(0)
}

/// The next input for a target.
pub fn input(target: &Target, pool: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let base = random.pick(pool).cloned().unwrap_or_default();
    let other = random.pick(pool).cloned().unwrap_or_default();
    let changes = 1 + below(random, 4);
    let mut made = match target.shape {
        Shape::Text => text(target, base, &other, changes, random),
        Shape::Json | Shape::Document(_) if random.below(10) == 0 => text(target, base, &other, changes, random),
        Shape::Json => json(target, serde_json::from_slice(&base).ok(), &other, changes, random),
        Shape::Document(draw) => {
            let fresh = random.below(2) == 0;
            let base = if fresh {
                Some(draw(random))
            } else {
                serde_json::from_slice(&base).ok()
            };
            let changes = if fresh { below(random, 3) } else { changes };
            json(target, base, &other, changes, random)
        }
    };
    made.truncate(LONGEST);
    made
}

fn text(target: &Target, mut base: Vec<u8>, other: &[u8], changes: usize, random: &mut Random) -> Vec<u8> {
    for _ in 0..changes {
        change_bytes(target, &mut base, other, random);
    }
    base
}

fn change_bytes(target: &Target, base: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = below(random, base.len() + 1);
    let end = at + below(random, base.len() - at + 1).min(12);
    match random.below(9) {
        0 => drop(base.drain(at..end)),
        1 => {
            let piece: Vec<u8> = base.iter().skip(at).take(end - at).copied().collect();
            base.splice(at..at, piece);
        }
        2 => drop(base.splice(at..end, random.number().to_le_bytes().into_iter().take(1))),
        3 => {
            let from = below(random, other.len() + 1);
            let piece: Vec<u8> = other.iter().skip(from).take(1 + below(random, 24)).copied().collect();
            base.splice(at..end, piece);
        }
        4 => drop(base.splice(at..end, number(random).into_bytes())),
        5 => drop(base.splice(at..at, piece(random).bytes())),
        6 => drop(base.splice(at..end, piece(random).bytes())),
        7 => drop(base.splice(at..at, word(target, random).bytes())),
        _ => exchange_word(target, base, random),
    }
}

/// Exchanges a run of letters and digits.
fn exchange_word(target: &Target, base: &mut Vec<u8>, random: &mut Random) {
    let at = below(random, base.len() + 1);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
    let before = base.iter().take(at).rev().take_while(|byte| is_word(byte)).count();
    let after = base.iter().skip(at).take_while(|byte| is_word(byte)).count();
    base.splice(at - before..at + after, word(target, random).bytes());
}

fn piece(random: &mut Random) -> &'static str {
    random.pick(&PIECES).copied().unwrap_or_default()
}

fn word(target: &Target, random: &mut Random) -> &'static str {
    random.pick(target.words).copied().unwrap_or("a")
}

fn number(random: &mut Random) -> String {
    let bits = random.below(65);
    let number = random
        .number()
        .checked_shr(u32::try_from(bits).unwrap_or(0))
        .unwrap_or(0);
    number.to_string()
}

fn json(target: &Target, base: Option<Value>, other: &[u8], changes: usize, random: &mut Random) -> Vec<u8> {
    let mut base = base.unwrap_or(Value::Null);
    let other: Value = serde_json::from_slice(other).unwrap_or(Value::Null);
    for _ in 0..changes {
        let nodes = count(&base);
        let mut at = below(random, nodes);
        let donor = pick_node(&other, &mut below(random, count(&other)))
            .cloned()
            .unwrap_or(Value::Null);
        if let Some(node) = node_mut(&mut base, &mut at) {
            change_node(target, node, donor, random);
        }
    }
    base.to_string().into_bytes()
}

fn change_node(target: &Target, node: &mut Value, donor: Value, random: &mut Random) {
    match (random.below(4), &mut *node) {
        (0, Value::Object(members)) => {
            let names: Vec<String> = members.keys().cloned().collect();
            if let Some(name) = random.pick(&names) {
                members.remove(name);
            }
        }
        (1 | 2, Value::Object(members)) => {
            let name = word(target, random).to_owned();
            members.insert(name, scalar(target, donor, random));
        }
        (0, Value::Array(items)) if !items.is_empty() => {
            let at = below(random, items.len());
            items.remove(at);
        }
        (1 | 2, Value::Array(items)) => {
            let copy = items.get(below(random, items.len())).cloned();
            let at = below(random, items.len() + 1);
            items.insert(at, copy.unwrap_or(donor));
        }
        (0..=2, Value::String(text)) => {
            let mut bytes = std::mem::take(text).into_bytes();
            change_bytes(
                target,
                &mut bytes,
                donor.as_str().unwrap_or_default().as_bytes(),
                random,
            );
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => *node = scalar(target, donor, random),
    }
}

fn scalar(target: &Target, donor: Value, random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => serde_json::from_str(&number(random)).unwrap_or(Value::Null),
        3 => Value::Array(vec![donor]),
        4 => Value::Object(std::iter::once((word(target, random).to_owned(), donor)).collect()),
        5 => piece(random).into(),
        6 | 7 => word(target, random).into(),
        _ => donor,
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum::<usize>(),
        _ => 0,
    }
}

fn pick_node<'a>(value: &'a Value, at: &mut usize) -> Option<&'a Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter().find_map(|item| pick_node(item, at)),
        Value::Object(members) => members.values().find_map(|member| pick_node(member, at)),
        _ => None,
    }
}

fn node_mut<'a>(value: &'a mut Value, at: &mut usize) -> Option<&'a mut Value> {
    if *at == 0 {
        return Some(value);
    }
    *at -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| node_mut(item, at)),
        Value::Object(members) => members.values_mut().find_map(|member| node_mut(member, at)),
        _ => None,
    }
}
