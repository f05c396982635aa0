//! The schema as fields are counted by it: what of an object is one value and what has parts.
//!
//! Custom kinds are described by their schema, except for what every object has: type and metadata.

use serde_json::{Map, Value};

use crate::model::{Additional, ListType, MapType, Schema, Type};

use super::element::{Element, Scalar};

/// What may stand at a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// As a schema says; `open` where unknown fields are preserved, here or further up.
    Said {
        schema: &'a Schema,
        open: bool,
        resource: bool,
    },
    /// Anything: maps have parts, lists are one value.
    Deduced,
    /// Anything, as one value.
    Whole,
    Text,
    Number,
    /// Any scalar.
    Plain,
    Meta,
    Texts,
    /// A set of texts.
    TextSet,
    Owners,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    Number,
    Text,
    Flag,
    Any,
}

/// What may be done with a value at a place: an alternative for each form that it may have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Atom<'a> {
    pub(super) scalar: Option<Scale>,
    pub(super) list: Option<List<'a>>,
    pub(super) map: Option<Parts<'a>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) relation: Relation<'a>,
    pub(super) item: Shape<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Relation<'a> {
    Atomic,
    Set,
    Keyed(Keys<'a>),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Keys<'a> {
    Said(&'a [String]),
    Uid,
}

/// The parts of a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) atomic: bool,
    shape: Shape<'a>,
}

impl<'a> Shape<'a> {
    pub(super) fn root(schema: &'a Schema) -> Self {
        Self::Said {
            schema,
            open: schema.preserve_unknown,
            resource: true,
        }
    }

    fn said(schema: &'a Schema, open: bool) -> Self {
        Self::Said {
            schema,
            open: open || schema.preserve_unknown,
            resource: schema.embedded,
        }
    }

    /// The alternatives that a value leaves; all of them for null and for what fits none.
    pub(super) fn atom(self, value: Option<&Value>) -> Atom<'a> {
        let atom = self.alternatives();
        match value {
            Some(Value::Number(_) | Value::String(_) | Value::Bool(_)) if atom.scalar.is_some() => Atom {
                scalar: atom.scalar,
                ..Atom::default()
            },
            Some(Value::Array(_)) if atom.list.is_some() => Atom {
                list: atom.list,
                ..Atom::default()
            },
            Some(Value::Object(_)) if atom.map.is_some() => Atom {
                map: atom.map,
                ..Atom::default()
            },
            _ => atom,
        }
    }

    fn alternatives(self) -> Atom<'a> {
        let scalar = |scale| Atom {
            scalar: Some(scale),
            ..Atom::default()
        };
        let map = |atomic| Atom {
            map: Some(Parts { atomic, shape: self }),
            ..Atom::default()
        };
        let list = |relation, item| Atom {
            list: Some(List { relation, item }),
            ..Atom::default()
        };
        match self {
            Self::Said { schema, open, .. } => self.said_alternatives(schema, open),
            Self::Deduced | Self::Whole => Atom {
                scalar: Some(Scale::Any),
                list: Some(List {
                    relation: Relation::Atomic,
                    item: Self::Whole,
                }),
                map: Some(Parts {
                    atomic: matches!(self, Self::Whole),
                    shape: self,
                }),
            },
            Self::Text => scalar(Scale::Text),
            Self::Number => scalar(Scale::Number),
            Self::Plain => scalar(Scale::Any),
            Self::Meta | Self::Texts => map(false),
            Self::TextSet => list(Relation::Set, Self::Text),
            // A reference is replaced as a whole.
            Self::Owners => list(Relation::Keyed(Keys::Uid), Self::Whole),
        }
    }

    fn said_alternatives(self, schema: &'a Schema, open: bool) -> Atom<'a> {
        let list = || List {
            relation: match schema.list_type {
                Some(ListType::Set) => Relation::Set,
                Some(ListType::Map) => Relation::Keyed(Keys::Said(&schema.list_map_keys)),
                Some(ListType::Atomic) | None => Relation::Atomic,
            },
            item: schema
                .items
                .as_deref()
                .map_or(Self::Whole, |items| Self::said(items, open)),
        };
        let map = || Parts {
            atomic: schema.map_type == Some(MapType::Atomic),
            shape: self,
        };
        match schema.ty {
            Some(Type::Object) => Atom {
                map: Some(map()),
                ..Atom::default()
            },
            Some(Type::Array) => Atom {
                list: Some(list()),
                ..Atom::default()
            },
            None => Atom {
                scalar: Some(Scale::Any),
                list: Some(list()),
                map: Some(map()),
            },
            Some(Type::Integer | Type::Number) => Self::Number.alternatives(),
            Some(Type::Boolean) => Atom {
                scalar: Some(Scale::Flag),
                ..Atom::default()
            },
            // A text of a format is any scalar to the server, bytes excepted.
            Some(Type::String) => match &schema.limits.format {
                Some((name, _)) if name != "byte" => Self::Plain.alternatives(),
                _ => Self::Text.alternatives(),
            },
        }
    }
}

impl<'a> Parts<'a> {
    /// The shape of a named property.
    pub(super) fn named(&self, name: &str) -> Option<Shape<'a>> {
        match self.shape {
            Shape::Said { schema, open, resource } => match (resource, name) {
                (true, "apiVersion" | "kind") => Some(Shape::Text),
                (true, "metadata") => Some(Shape::Meta),
                _ => schema.properties.get(name).map(|property| Shape::said(property, open)),
            },
            Shape::Meta => Some(match name {
                "annotations" | "labels" => Shape::Texts,
                "finalizers" => Shape::TextSet,
                "ownerReferences" => Shape::Owners,
                "managedFields" => Shape::Whole,
                "creationTimestamp" | "deletionTimestamp" => Shape::Plain,
                "generation" | "deletionGracePeriodSeconds" => Shape::Number,
                "name" | "generateName" | "namespace" | "selfLink" | "uid" | "resourceVersion" => Shape::Text,
                _ => return None,
            }),
            _ => None,
        }
    }

    /// The shape of an entry, named or not. `None` where there must be none.
    pub(super) fn entry(&self, name: &str) -> Option<Shape<'a>> {
        self.named(name).or(match self.shape {
            Shape::Said { schema, open, .. } => match &schema.additional {
                Some(Additional::Schema(entry)) => Some(Shape::said(entry, open)),
                Some(Additional::Allowed(allowed)) => allowed.then_some(Shape::Deduced),
                None => (open || schema.properties.is_empty()).then_some(Shape::Deduced),
            },
            Shape::Deduced => Some(Shape::Deduced),
            Shape::Whole => Some(Shape::Whole),
            Shape::Texts => Some(Shape::Text),
            _ => None,
        })
    }
}

impl List<'_> {
    /// The step to an item, or why there is none.
    pub(super) fn element(&self, item: &Value) -> Result<Element, String> {
        match (self.relation, item) {
            (Relation::Atomic, _) => Err("invalid indexing of non-associative list".to_owned()),
            (Relation::Set, Value::Object(_)) => {
                Err("associative list without keys has an element that's a map type".to_owned())
            }
            (Relation::Set, Value::Array(_)) => {
                Err("not supported: associative list with lists as elements".to_owned())
            }
            (Relation::Set, Value::Null) => {
                Err("associative list without keys has an element that's an explicit null".to_owned())
            }
            (Relation::Set, scalar) => Ok(Element::Item(Scalar(scalar.clone()))),
            (Relation::Keyed(keys), Value::Object(map)) => self.keyed(keys, map),
            (Relation::Keyed(_), Value::Null) => {
                Err("associative list with keys may not have a null element".to_owned())
            }
            (Relation::Keyed(_), _) => Err("associative list with keys may not have non-map elements".to_owned()),
        }
    }

    fn keyed(&self, keys: Keys<'_>, map: &Map<String, Value>) -> Result<Element, String> {
        let default = |name: &str| match self.item {
            Shape::Said { schema, .. } => schema.properties.get(name).and_then(|key| key.default.clone()),
            _ => None,
        };
        let value = |name: &str| map.get(name).cloned().or_else(|| default(name));
        let names: Vec<&str> = match keys {
            Keys::Said(names) => names.iter().map(String::as_str).collect(),
            Keys::Uid => vec!["uid"],
        };
        let found: Vec<(String, Value)> = names
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), value(name)?)))
            .collect();
        if found.is_empty() && !names.is_empty() {
            let quoted: Vec<String> = names.iter().map(|name| crate::golang::quote(name)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] (and doesn't have default \
                 values for any key fields)",
                quoted.join(" ")
            ));
        }
        Ok(Element::keys(found))
    }
}
