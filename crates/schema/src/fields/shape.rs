//! The structure of an object for field sets: which values are atomic and which have parts.
//!
//! It follows from the schema of a custom kind, except for type and metadata, which every object has.

use serde_json::{Map, Value};

use crate::model::{Additional, ListType, MapType, Schema, Type};

use super::element::{Element, Scalar};

/// The allowed structure of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// Defined by a schema; `open` when unknown fields are preserved, here or further up.
    Declared {
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
pub(super) enum ScalarKind {
    Number,
    Text,
    Flag,
    Any,
}

/// The alternatives for a value, one for each form it may have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Atom<'a> {
    pub(super) scalar: Option<ScalarKind>,
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
    Declared(&'a [String]),
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
        Self::Declared {
            schema,
            open: schema.preserve_unknown,
            resource: true,
        }
    }

    fn declared(schema: &'a Schema, open: bool) -> Self {
        Self::Declared {
            schema,
            open: open || schema.preserve_unknown,
            resource: schema.embedded,
        }
    }

    /// The alternative for a value; all of them for null and for a value that fits none.
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
        let scalar = |kind| Atom {
            scalar: Some(kind),
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
            Self::Declared { schema, open, .. } => self.declared_alternatives(schema, open),
            Self::Deduced | Self::Whole => Atom {
                scalar: Some(ScalarKind::Any),
                list: Some(List {
                    relation: Relation::Atomic,
                    item: Self::Whole,
                }),
                map: Some(Parts {
                    atomic: matches!(self, Self::Whole),
                    shape: self,
                }),
            },
            Self::Text => scalar(ScalarKind::Text),
            Self::Number => scalar(ScalarKind::Number),
            Self::Plain => scalar(ScalarKind::Any),
            Self::Meta | Self::Texts => map(false),
            Self::TextSet => list(Relation::Set, Self::Text),
            // A reference is replaced as a whole.
            Self::Owners => list(Relation::Keyed(Keys::Uid), Self::Whole),
        }
    }

    fn declared_alternatives(self, schema: &'a Schema, open: bool) -> Atom<'a> {
        let list = || List {
            relation: match schema.list_type {
                Some(ListType::Set) => Relation::Set,
                Some(ListType::Map) => Relation::Keyed(Keys::Declared(&schema.list_map_keys)),
                Some(ListType::Atomic) | None => Relation::Atomic,
            },
            item: schema
                .items
                .as_deref()
                .map_or(Self::Whole, |items| Self::declared(items, open)),
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
                scalar: Some(ScalarKind::Any),
                list: Some(list()),
                map: Some(map()),
            },
            Some(Type::Integer | Type::Number) => Self::Number.alternatives(),
            Some(Type::Boolean) => Atom {
                scalar: Some(ScalarKind::Flag),
                ..Atom::default()
            },
            // The API server treats a string with a format, except bytes, as any scalar.
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
            Shape::Declared { schema, open, resource } => match (resource, name) {
                (true, "apiVersion" | "kind") => Some(Shape::Text),
                (true, "metadata") => Some(Shape::Meta),
                _ => schema
                    .properties
                    .get(name)
                    .map(|property| Shape::declared(property, open)),
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

    /// The shape of an entry, declared or not. `None` when the entry is not allowed.
    pub(super) fn entry(&self, name: &str) -> Option<Shape<'a>> {
        self.named(name).or(match self.shape {
            Shape::Declared { schema, open, .. } => match &schema.additional {
                Some(Additional::Schema(entry)) => Some(Shape::declared(entry, open)),
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
    /// The path element of an item, or why there is none.
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
            Shape::Declared { schema, .. } => schema.properties.get(name).and_then(|key| key.default.clone()),
            _ => None,
        };
        let value = |name: &str| map.get(name).cloned().or_else(|| default(name));
        let names: Vec<&str> = match keys {
            Keys::Declared(names) => names.iter().map(String::as_str).collect(),
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
