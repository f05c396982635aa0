//! Lists the fields of an object, and removes fields from it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;
use super::set::FieldSet;
use super::shape::{Atom, List, Parts, Relation, Shape};

pub(super) fn fields(shape: &Shape<'_>, object: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    count(*shape, object, &mut Vec::new(), &mut set);
    set
}

fn count(shape: Shape<'_>, value: &Value, path: &mut Vec<Element>, set: &mut FieldSet) {
    match shape.atom(Some(value)) {
        Atom { map: Some(parts), .. } if parts.atomic => set.insert(path),
        Atom { map: Some(parts), .. } => count_map(parts, value, path, set),
        Atom { scalar: Some(_), .. } => set.insert(path),
        Atom { list: Some(list), .. } if matches!(list.relation, Relation::Atomic) => set.insert(path),
        Atom { list: Some(list), .. } => count_list(list, value, path, set),
        Atom { .. } => {}
    }
}

fn count_map(parts: Parts<'_>, value: &Value, path: &mut Vec<Element>, set: &mut FieldSet) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let Some(shape) = parts.entry(name) else { continue };
        path.push(Element::field(name));
        count(shape, value, path, set);
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if empty || parts.named(name).is_none() {
            set.insert(path);
        }
        path.pop();
    }
}

fn count_list(list: List<'_>, value: &Value, path: &mut Vec<Element>, set: &mut FieldSet) {
    let mut items: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for item in value.as_array().into_iter().flatten() {
        if let Ok(element) = list.element(item) {
            items.entry(element).or_default().push(item);
        }
    }
    for (element, items) in items {
        path.push(element);
        if let [item] = items.as_slice() {
            count(list.item, item, path, set);
        }
        set.insert(path);
        path.pop();
    }
}

pub(super) fn without(shape: &Shape<'_>, object: &Value, fields: &FieldSet) -> Value {
    removed(*shape, object, fields)
}

/// The rest of a value; null when nothing is left.
fn removed(shape: Shape<'_>, value: &Value, fields: &FieldSet) -> Value {
    match shape.atom(Some(value)) {
        Atom { map: Some(parts), .. } => match value {
            Value::Object(map) if !parts.atomic => removed_map(parts, map, fields),
            _ => Value::Null,
        },
        Atom { scalar: Some(_), .. } => value.clone(),
        Atom { list: Some(list), .. } => match value {
            Value::Array(items) if !matches!(list.relation, Relation::Atomic) => removed_list(list, items, fields),
            _ => Value::Null,
        },
        Atom { .. } => value.clone(),
    }
}

fn removed_map(parts: Parts<'_>, map: &Map<String, Value>, fields: &FieldSet) -> Value {
    let mut left = Map::new();
    for (name, value) in map {
        let element = Element::field(name);
        if fields.has(&element) {
            continue;
        }
        let value = match (fields.below(&element), parts.entry(name)) {
            (Some(below), Some(shape)) => removed(shape, value, below),
            _ => value.clone(),
        };
        left.insert(name.clone(), value);
    }
    if left.is_empty() { Value::Null } else { left.into() }
}

fn removed_list(list: List<'_>, items: &[Value], fields: &FieldSet) -> Value {
    let mut left = Vec::new();
    for item in items {
        let element = list.element(item).ok();
        if element.as_ref().is_some_and(|element| fields.has(element)) {
            continue;
        }
        match element.as_ref().and_then(|element| fields.below(element)) {
            Some(below) => left.push(removed(list.item, item, below)),
            None => left.push(item.clone()),
        }
    }
    if left.is_empty() { Value::Null } else { left.into() }
}

pub(super) fn with_parents(shape: Option<&Shape<'_>>, fields: &FieldSet) -> FieldSet {
    let atom = shape.map(|shape| shape.atom(None)).unwrap_or_default();
    fields.rewritten(|element, member, children| {
        let (named, shape) = match (element, atom.map, atom.list) {
            (Element::Field(name), Some(parts), _) => (parts.named(name).is_some(), parts.entry(name)),
            (Element::Key(_), _, Some(list)) => (false, Some(list.item)),
            _ => (false, None),
        };
        (
            member || (named && !children.is_empty()),
            with_parents(shape.as_ref(), children),
        )
    })
}
