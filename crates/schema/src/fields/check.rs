//! Checks that an object matches its schema closely enough to determine its fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::element::Element;
use super::shape::{Atom, List, Parts, Relation, ScalarKind, Shape};

pub(super) fn errors(shape: &Shape<'_>, object: &Value, duplicates: bool) -> Vec<String> {
    let mut check = Check {
        duplicates,
        found: Vec::new(),
    };
    check.at(*shape, object, "");
    check.found
}

struct Check {
    duplicates: bool,
    found: Vec<String>,
}

impl Check {
    fn wrong(&mut self, path: &str, why: &str) {
        self.found.push(if path.is_empty() {
            why.to_owned()
        } else {
            format!("{path}: {why}")
        });
    }

    fn at(&mut self, shape: Shape<'_>, value: &Value, path: &str) {
        match shape.atom(Some(value)) {
            Atom { map: Some(parts), .. } => self.map(parts, value, path),
            Atom { scalar: Some(kind), .. } => self.scalar(kind, value, path),
            Atom { list: Some(list), .. } => self.list(list, value, path),
            Atom { .. } => {}
        }
    }

    fn scalar(&mut self, kind: ScalarKind, value: &Value, path: &str) {
        let fits = match kind {
            ScalarKind::Number => value.is_number(),
            ScalarKind::Text => value.is_string(),
            ScalarKind::Flag => value.is_boolean(),
            ScalarKind::Any => value.is_number() || value.is_string() || value.is_boolean(),
        };
        if fits || value.is_null() {
            return;
        }
        self.wrong(
            path,
            &match kind {
                ScalarKind::Number => format!("expected numeric (int or float), got {}", go_type(value)),
                ScalarKind::Text => format!("expected string, got {}", go_syntax(value)),
                ScalarKind::Flag => format!("expected boolean, got {}", go_value(value)),
                ScalarKind::Any => format!("expected any scalar, got {}", go_value(value)),
            },
        );
    }

    fn map(&mut self, parts: Parts<'_>, value: &Value, path: &str) {
        match value {
            Value::Null => {}
            Value::Object(map) => {
                for (name, value) in map {
                    let here = format!("{path}.{name}");
                    match parts.entry(name) {
                        Some(shape) => self.at(shape, value, &here),
                        None => {
                            self.wrong(&here, "field not declared in schema");
                            return;
                        }
                    }
                }
            }
            other => self.wrong(path, &format!("expected map, got {}", go_value(other))),
        }
    }

    fn list(&mut self, list: List<'_>, value: &Value, path: &str) {
        let items = match value {
            Value::Null => return,
            Value::Array(items) => items,
            other => return self.wrong(path, &format!("expected list, got {}", go_value(other))),
        };
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = if matches!(list.relation, Relation::Atomic) {
                Element::Index(index)
            } else {
                match list.element(item) {
                    Ok(element) => element,
                    Err(why) => return self.wrong(path, &format!("element {index}: {why}")),
                }
            };
            if !seen.insert(element.clone()) && !self.duplicates {
                self.wrong(path, &format!("duplicate entries for key {element}"));
            }
            self.at(list.item, item, &format!("{path}{element}"));
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn go_syntax(value: &Value) -> String {
    format!("&value.valueUnstructured{{Value:{}}}", shown(value))
}

fn go_value(value: &Value) -> String {
    format!("&{{{}}}", shown(value))
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
