//! Sets of fields, as a tree of path elements.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;

/// A set of fields of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: BTreeMap<Element, Entry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    /// Whether the field itself is in the set.
    member: bool,
    children: FieldSet,
}

/// Why a value is no set of fields.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fieldsV1: {0}; write each field as `f:NAME`, `k:{{KEYS}}`, `v:VALUE` or `i:INDEX` over an object")]
pub struct FieldSetError(String);

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl FieldSet {
    /// Parses `fieldsV1`.
    ///
    /// # Errors
    /// When it is not an object of objects, or has an invalid key.
    pub fn parse(value: &Value) -> Result<Self, FieldSetError> {
        let Value::Object(map) = value else {
            return Err(FieldSetError(format!("{value} is no object")));
        };
        let mut set = Self::default();
        for (name, below) in map {
            // The marker of the parent, evaluated with the parent.
            if name == "." {
                continue;
            }
            let element = Element::parse(name).ok_or_else(|| FieldSetError(format!("{name:?} names no field")))?;
            let children = Self::parse(below)?;
            let marked = below.get(".").is_some();
            let member = marked || children.is_empty();
            set.entries.insert(element, Entry { member, children });
        }
        Ok(set)
    }

    /// The set as `fieldsV1`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        for (element, entry) in &self.entries {
            let mut below = entry.children.to_value();
            if let (true, Value::Object(map)) = (entry.member && !entry.children.is_empty(), &mut below) {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            map.insert(element.encoded(), below);
        }
        Value::Object(map)
    }

    /// Whether no field is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a field by its path; the object itself, whose path is empty, belongs to no set.
    pub fn insert(&mut self, path: &[Element]) {
        if let Some((first, rest)) = path.split_first() {
            let entry = self.entries.entry(first.clone()).or_default();
            if rest.is_empty() {
                entry.member = true;
            } else {
                entry.children.insert(rest);
            }
        }
    }

    /// The set of properties named by their paths: `["metadata", "name"]`.
    #[must_use]
    pub fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    pub(super) fn has(&self, element: &Element) -> bool {
        self.entries.get(element).is_some_and(|entry| entry.member)
    }

    /// The fields below one.
    pub(super) fn below(&self, element: &Element) -> Option<&Self> {
        let children = self.entries.get(element).map(|entry| &entry.children);
        children.filter(|children| !children.is_empty())
    }

    /// Applies `change` to each entry.
    pub(super) fn rewritten(&self, change: impl Fn(&Element, bool, &Self) -> (bool, Self)) -> Self {
        let entries = self.entries.iter().map(|(element, entry)| {
            let (member, children) = change(element, entry.member, &entry.children);
            (element.clone(), Entry { member, children })
        });
        Self {
            entries: entries.filter(|(_, entry)| !entry.is_empty()).collect(),
        }
    }

    /// The fields in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, entry) in &other.entries {
            let entry_of_union = union.entries.entry(element.clone()).or_default();
            entry_of_union.member |= entry.member;
            entry_of_union.children = entry_of_union.children.union(&entry.children);
        }
        union
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.rewritten(|element, member, children| match other.entries.get(element) {
            Some(entry) => (member && entry.member, children.intersection(&entry.children)),
            None => (false, Self::default()),
        })
    }

    /// The fields that are not in the other set. Fields below a field of the other set stay.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.rewritten(|element, member, children| match other.entries.get(element) {
            Some(entry) => (member && !entry.member, children.difference(&entry.children)),
            None => (member, children.clone()),
        })
    }

    /// The fields that are neither in the other set nor below a field of it.
    #[must_use]
    pub fn outside(&self, other: &Self) -> Self {
        self.rewritten(|element, member, children| match other.entries.get(element) {
            Some(entry) if entry.member => (false, Self::default()),
            Some(entry) => (member, children.outside(&entry.children)),
            None => (member, children.clone()),
        })
    }

    /// The paths of all fields as the API server prints them, each level before the one below.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, prefix: &str, paths: &mut Vec<String>) {
        let members = self.entries.iter().filter(|(_, entry)| entry.member);
        paths.extend(members.map(|(element, _)| format!("{prefix}{element}")));
        for (element, entry) in &self.entries {
            entry.children.collect(&format!("{prefix}{element}"), paths);
        }
    }
}
