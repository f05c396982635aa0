//! Comparison of two objects by field.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::{Element, Scalar};
use super::set::FieldSet;
use super::shape::{Atom, List, Parts, Relation, Shape};

/// The changed fields of an object. A field is in at most one of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Fields that are new.
    pub added: FieldSet,
    /// Fields with another value.
    pub modified: FieldSet,
    /// Fields that are removed.
    pub removed: FieldSet,
}

impl Changes {
    /// The changes to fields that are neither in `fields` nor below one of them.
    #[must_use]
    pub fn outside(&self, fields: &FieldSet) -> Self {
        Self {
            added: self.added.outside(fields),
            modified: self.modified.outside(fields),
            removed: self.removed.outside(fields),
        }
    }
}

pub(super) fn changes(shape: &Shape<'_>, old: &Value, new: &Value) -> Changes {
    let mut comparison = Comparison::default();
    comparison.at(*shape, Some(old), Some(new));
    comparison.changes
}

/// Whether two values are equal for the API server, which treats 1 and 1.0 as equal.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, value)| other.get(name).is_some_and(|other| same(value, other)))
        }
        (Value::Number(_), Value::Number(_)) => Scalar(one.clone()) == Scalar(other.clone()),
        _ => one == other,
    }
}

/// Whether two atoms have the same alternatives.
fn same_alternatives(one: &Atom<'_>, other: &Atom<'_>) -> bool {
    (one.scalar.is_some(), one.list.is_some(), one.map.is_some())
        == (other.scalar.is_some(), other.list.is_some(), other.map.is_some())
}

#[derive(Default)]
struct Comparison {
    path: Vec<Element>,
    changes: Changes,
}

type Side<'a> = Option<&'a Value>;

impl Comparison {
    fn at(&mut self, shape: Shape<'_>, old: Side<'_>, new: Side<'_>) {
        let (before, after) = (shape.atom(old), shape.atom(new));
        let leaf = if new.is_none() {
            self.with(&before, old, new)
        } else if old.is_none() || same_alternatives(&before, &after) {
            self.with(&after, old, new)
        } else {
            self.with(&before, old, new);
            self.with(&after, old, new)
        };
        if !leaf {
            match (old, new) {
                (None, _) => self.changes.added.insert(&self.path),
                (_, None) => self.changes.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares the values by an atom; returns whether they were compared as a whole.
    fn with(&mut self, atom: &Atom<'_>, old: Side<'_>, new: Side<'_>) -> bool {
        if let Some(parts) = atom.map {
            self.map(parts, old, new)
        } else if atom.scalar.is_some() {
            self.leaf(old, new)
        } else if let Some(list) = atom.list {
            self.list(list, old, new)
        } else {
            false
        }
    }

    fn leaf(&mut self, old: Side<'_>, new: Side<'_>) -> bool {
        match (old, new) {
            (None, _) => self.changes.added.insert(&self.path),
            (_, None) => self.changes.removed.insert(&self.path),
            (Some(old), Some(new)) if !same(old, new) => self.changes.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn map(&mut self, parts: Parts<'_>, old: Side<'_>, new: Side<'_>) -> bool {
        let none = Map::new();
        let entries = |side: Side<'_>| side.and_then(Value::as_object).is_some_and(|map| !map.is_empty());
        if parts.atomic || !(entries(old) || entries(new)) {
            return self.leaf(old, new);
        }
        let [before, after] = [old, new].map(|side| side.and_then(Value::as_object).unwrap_or(&none));
        let only_after = after.keys().filter(|name| !before.contains_key(*name));
        for name in before.keys().chain(only_after) {
            if let Some(shape) = parts.entry(name) {
                self.step(Element::field(name), shape, before.get(name), after.get(name));
            }
        }
        false
    }

    fn step(&mut self, element: Element, shape: Shape<'_>, old: Side<'_>, new: Side<'_>) {
        self.path.push(element);
        self.at(shape, old, new);
        self.path.pop();
    }

    fn list(&mut self, list: List<'_>, old: Side<'_>, new: Side<'_>) -> bool {
        let items = |side: Side<'_>| side.and_then(Value::as_array).is_some_and(|items| !items.is_empty());
        if matches!(list.relation, Relation::Atomic) || !(items(old) || items(new)) {
            return self.leaf(old, new);
        }
        let mut pairs: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in old.and_then(Value::as_array).into_iter().flatten() {
            if let Ok(element) = list.element(item) {
                pairs.entry(element).or_default().0.push(item);
            }
        }
        for item in new.and_then(Value::as_array).into_iter().flatten() {
            if let Ok(element) = list.element(item) {
                pairs.entry(element).or_default().1.push(item);
            }
        }
        for (element, (before, after)) in pairs {
            self.items(list, element, &before, &after);
        }
        false
    }

    /// Items with one key. Several of them on one side count as one value.
    fn items(&mut self, list: List<'_>, element: Element, before: &[&Value], after: &[&Value]) {
        let mut path = self.path.clone();
        path.push(element.clone());
        match (before, after) {
            ([] | [_], [] | [_]) => {
                self.step(element, list.item, before.first().copied(), after.first().copied());
            }
            ([_, _, ..], [_, _, ..]) => {
                let equal =
                    before.len() == after.len() && before.iter().zip(after).all(|(one, other)| same(one, other));
                if !equal {
                    self.changes.modified.insert(&path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(one) = after.first() {
                    self.step(element, list.item, None, Some(one));
                }
                self.changes.removed.insert(&path);
            }
            (_, _) => {
                if let Some(one) = before.first() {
                    self.step(element, list.item, Some(one), None);
                }
                self.changes.added.insert(&path);
            }
        }
    }
}
