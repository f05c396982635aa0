//! Merges an applied object into the live one.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;
use super::shape::{Atom, List, Parts, Relation, Shape};

pub(super) fn merged(shape: &Shape<'_>, object: &Value, applied: &Value) -> Value {
    at(*shape, Some(object), Some(applied)).unwrap_or(Value::Null)
}

type Side<'a> = Option<&'a Value>;

fn at(shape: Shape<'_>, live: Side<'_>, applied: Side<'_>) -> Option<Value> {
    // The applied value determines the form; a live value of another form is dropped.
    let shown = if applied.is_none() { live } else { applied };
    with(&shape.atom(shown), live, applied)
}

fn with(atom: &Atom<'_>, live: Side<'_>, applied: Side<'_>) -> Option<Value> {
    if let Some(parts) = atom.map {
        map(parts, live, applied)
    } else if let (None, Some(list)) = (atom.scalar, atom.list) {
        self::list(list, live, applied)
    } else {
        leaf(live, applied)
    }
}

fn leaf(live: Side<'_>, applied: Side<'_>) -> Option<Value> {
    applied.or(live).cloned()
}

fn map(parts: Parts<'_>, live: Side<'_>, applied: Side<'_>) -> Option<Value> {
    let none = Map::new();
    let entries = |side: Side<'_>| side.and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    if parts.atomic || !(entries(live) || entries(applied)) {
        return leaf(live, applied);
    }
    let [before, after] = [live, applied].map(|side| side.and_then(Value::as_object).unwrap_or(&none));
    let only_after = after.keys().filter(|name| !before.contains_key(*name));
    let merged: Map<String, Value> = before
        .keys()
        .chain(only_after)
        .filter_map(|name| {
            let shape = parts.entry(name)?;
            Some((name.clone(), at(shape, before.get(name), after.get(name))?))
        })
        .collect();
    (!merged.is_empty()).then(|| merged.into())
}

/// The items of a list by path element, and the elements in order. A repeated item is not merged with another.
struct Indexed<'a> {
    order: Vec<(Element, &'a Value)>,
    items: BTreeMap<Element, Option<&'a Value>>,
}

impl<'a> Indexed<'a> {
    fn of(list: List<'_>, side: Side<'a>) -> Self {
        let mut indexed = Self {
            order: Vec::new(),
            items: BTreeMap::new(),
        };
        for item in side.and_then(Value::as_array).into_iter().flatten() {
            if let Ok(element) = list.element(item) {
                let only = !indexed.items.contains_key(&element);
                indexed.items.insert(element.clone(), only.then_some(item));
                indexed.order.push((element, item));
            }
        }
        indexed
    }

    fn has(&self, element: &Element) -> bool {
        self.items.contains_key(element)
    }

    fn item(&self, element: &Element) -> Side<'a> {
        self.items.get(element).copied().flatten()
    }
}

/// Items keep the order of the applied list; items of the live list only keep their place between them.
fn list(list: List<'_>, live: Side<'_>, applied: Side<'_>) -> Option<Value> {
    let items = |side: Side<'_>| side.and_then(Value::as_array).is_some_and(|items| !items.is_empty());
    if matches!(list.relation, Relation::Atomic) || !(items(live) || items(applied)) {
        return leaf(live, applied);
    }
    let (before, after) = (Indexed::of(list, live), Indexed::of(list, applied));
    let mut shared = after
        .order
        .iter()
        .map(|(element, _)| element)
        .filter(|element| before.has(element));
    let mut next_shared = shared.next();
    let (mut left, mut right) = (before.order.iter().peekable(), after.order.iter().peekable());
    let (mut merged, mut taken) = (Vec::new(), std::collections::BTreeSet::new());
    while left.peek().is_some() || right.peek().is_some() {
        if let (Some((one, _)), Some((other, _))) = (left.peek(), right.peek()) {
            if one == other {
                taken.insert(one);
                merged.extend(at(list.item, before.item(one), after.item(one)));
                left.next();
                right.next();
                next_shared = shared.next();
                continue;
            }
            // Shared, but later in the applied list.
            if after.has(one) && next_shared.is_some_and(|next| next != one) {
                left.next();
                continue;
            }
        }
        if let Some((one, item)) = left.peek() {
            if !after.has(one) {
                merged.extend(at(list.item, Some(item), None));
                left.next();
                continue;
            }
            if taken.contains(one) {
                left.next();
            }
        }
        if let Some((other, _)) = right.next() {
            taken.insert(other);
            merged.extend(at(list.item, before.item(other), after.item(other)));
            if next_shared == Some(other) {
                next_shared = shared.next();
            }
        }
    }
    (!merged.is_empty()).then(|| merged.into())
}
