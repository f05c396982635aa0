//! Changes of JSON trees.

use metal3_sim_faults::Random;
use serde_json::{Map, Value};

use super::text::{self, piece};
use crate::chance::{below, number};
use crate::dictionary::Dictionary;

/// Makes one change.
pub(super) fn change(dictionary: &Dictionary, base: &mut Value, other: &Value, random: &mut Random) {
    let at = below(random, count(base));
    let with_other = random.below(2) == 0;
    if random.below(2) == 0 {
        let Some((name, node)) = node_mut(base, String::new(), &mut { at }) else {
            return;
        };
        let donors = if with_other { named(other, &name) } else { Vec::new() };
        let donor = random
            .pick(&donors)
            .copied()
            .or_else(|| dictionary.value(&name, random));
        match donor.cloned() {
            Some(donor) => take(node, donor, random),
            None => change_node(dictionary, node, Value::Null, random),
        }
        return;
    }
    let donor = pick_node(other, &mut below(random, count(other)));
    let donor = donor.cloned().unwrap_or(Value::Null);
    if let Some((_, node)) = node_mut(base, String::new(), &mut { at }) {
        change_node(dictionary, node, donor, random);
    }
}

/// Takes a value of the same name: as a whole, or some of its members and items.
fn take(node: &mut Value, donor: Value, random: &mut Random) {
    match (&mut *node, donor) {
        (Value::Object(members), Value::Object(donor)) if random.below(4) > 0 => {
            for (name, value) in donor {
                match members.get_mut(&name) {
                    Some(member) if random.below(2) == 0 => take(member, value, random),
                    Some(_) => {}
                    None if random.below(4) > 0 => drop(members.insert(name, value)),
                    None => {}
                }
            }
        }
        (Value::Array(items), Value::Array(donor)) if random.below(4) > 0 => {
            items.extend(donor.into_iter().filter(|_| random.below(2) == 0));
            items.truncate(64);
        }
        (node, donor) => *node = donor,
    }
}

/// All nodes of the name.
fn named<'a>(value: &'a Value, name: &str) -> Vec<&'a Value> {
    let mut found = Vec::new();
    collect(value, "", name, &mut found);
    found
}

fn collect<'a>(value: &'a Value, own: &str, name: &str, found: &mut Vec<&'a Value>) {
    if own == name {
        found.push(value);
    }
    match value {
        Value::Array(items) => {
            let own = format!("{own}[]");
            items.iter().for_each(|item| collect(item, &own, name, found));
        }
        Value::Object(members) => members
            .iter()
            .for_each(|(own, member)| collect(member, own, name, found)),
        _ => {}
    }
}

fn change_node(dictionary: &Dictionary, node: &mut Value, donor: Value, random: &mut Random) {
    match (random.below(4), &mut *node) {
        (0, Value::Object(members)) => {
            let names: Vec<String> = members.keys().cloned().collect();
            if let Some(name) = random.pick(&names) {
                members.remove(name);
            }
        }
        (1 | 2, Value::Object(members)) => add_member(dictionary, members, donor, random),
        (0, Value::Array(items)) if !items.is_empty() => {
            let at = below(random, items.len());
            items.remove(at);
        }
        (1 | 2, Value::Array(items)) => {
            let copy = items.get(below(random, items.len())).cloned();
            let at = below(random, items.len() + 1);
            items.insert(at, copy.unwrap_or(donor));
        }
        (0, Value::String(text)) => *text = dictionary.word(random).to_owned(),
        (1 | 2, Value::String(text)) => {
            let mut bytes = std::mem::take(text).into_bytes();
            let donor = donor.as_str().unwrap_or_default().as_bytes();
            text::change(dictionary, &mut bytes, donor, random);
            *text = String::from_utf8_lossy(&bytes).into_owned();
        }
        _ => *node = scalar(dictionary, donor, random),
    }
}

/// Adds a member, or writes its value again, mostly with a value that the name has elsewhere.
fn add_member(dictionary: &Dictionary, members: &mut Map<String, Value>, donor: Value, random: &mut Random) {
    let name = dictionary.word(random).to_owned();
    let known = dictionary.value(&name, random).filter(|_| random.below(3) > 0);
    let value = match known {
        Some(value) => value.clone(),
        None => scalar(dictionary, donor, random),
    };
    members.insert(name, value);
}

fn scalar(dictionary: &Dictionary, donor: Value, random: &mut Random) -> Value {
    match random.below(9) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => serde_json::from_str(&number(random)).unwrap_or(Value::Null),
        3 => Value::Array(vec![donor]),
        4 => Value::Object(std::iter::once((dictionary.word(random).to_owned(), donor)).collect()),
        5 => piece(random).into(),
        6 | 7 => dictionary.word(random).into(),
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

/// A node with its name; the name of an item is the name of its list with `[]`.
fn node_mut<'a>(value: &'a mut Value, name: String, at: &mut usize) -> Option<(String, &'a mut Value)> {
    if *at == 0 {
        return Some((name, value));
    }
    *at -= 1;
    match value {
        Value::Array(items) => items
            .iter_mut()
            .find_map(|item| node_mut(item, format!("{name}[]"), at)),
        Value::Object(members) => members
            .iter_mut()
            .find_map(|(name, member)| node_mut(member, name.clone(), at)),
        _ => None,
    }
}
