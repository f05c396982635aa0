//! Compares two nodes of structural schemas, and everything below them.
//!
//! References and `definitions` do not occur in structural schemas. Invariant: every member of a node is compared; one
//! without a rule is compared for equality and reported as `other`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::difference::{Difference, Direction, Node};
use super::keywords::{
    EMBEDDED, HANDLED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, LOWER, MAP_TYPE, PRESERVE, RESTRICTIONS, RULES, UPPER,
};
use Direction::{Narrower, Other, Wider};

/// Differences of two nodes and of all below them, and the number of compared nodes of `upstream`.
pub(crate) fn compare(node: &Node, upstream: &Value, project: &Value) -> (Vec<Difference>, usize) {
    let mut comparer = Comparer::default();
    comparer.node(node, &Side::of(upstream), &Side::of(project));
    (comparer.found, comparer.nodes)
}

#[derive(Default)]
struct Comparer {
    found: Vec<Difference>,
    nodes: usize,
}

/// One schema of a node, normalized.
struct Side(Map<String, Value>);

impl Side {
    fn of(schema: &Value) -> Self {
        let mut map = schema.as_object().cloned().unwrap_or_default();
        if map.get(INT_OR_STRING) == Some(&Value::Bool(true)) {
            map.remove("type");
            // controller-gen writes this equivalent form next to the extension.
            map.remove("anyOf");
        }
        let ignored = ["int64", "double", "float"];
        if map
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| ignored.contains(&format))
        {
            map.remove("format");
        }
        if map.get("additionalProperties") == Some(&Value::Bool(true)) {
            map.remove("additionalProperties");
            map.insert(PRESERVE.into(), true.into());
        }
        if map.get("additionalProperties") == Some(&Value::Bool(false)) {
            map.remove("additionalProperties");
        }
        let stated_defaults = [(LIST_TYPE, "atomic"), (MAP_TYPE, "granular")];
        for (key, value) in stated_defaults {
            if map.get(key).is_some_and(|stated| stated == value) {
                map.remove(key);
            }
        }
        for key in [
            "nullable",
            "uniqueItems",
            "exclusiveMinimum",
            "exclusiveMaximum",
            PRESERVE,
            EMBEDDED,
            INT_OR_STRING,
        ] {
            if map.get(key) == Some(&Value::Bool(false)) {
                map.remove(key);
            }
        }
        Self(map)
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    fn is(&self, key: &str) -> bool {
        self.get(key) == Some(&Value::Bool(true))
    }

    fn members(&self) -> BTreeMap<&str, &Value> {
        match self.get("properties") {
            Some(Value::Object(map)) => map.iter().map(|(name, schema)| (name.as_str(), schema)).collect(),
            _ => BTreeMap::new(),
        }
    }

    /// Members that a document must contain. Defaults are set before validation.
    fn required(&self) -> BTreeSet<&str> {
        let members = self.members();
        let filled_in = |name: &&str| members.get(name).is_some_and(|schema| schema.get("default").is_some());
        texts(self.get("required"))
            .into_iter()
            .filter(|name| !filled_in(name))
            .collect()
    }
}

/// Texts of a list.
pub(crate) fn texts(list: Option<&Value>) -> BTreeSet<&str> {
    list.and_then(Value::as_array)
        .map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

impl Comparer {
    fn node(&mut self, node: &Node, upstream: &Side, project: &Side) {
        self.nodes += 1;
        self.kind_of_value(node, upstream, project);
        self.values(node, upstream, project);
        self.bounds(node, upstream, project);
        self.restrictions(node, upstream, project);
        self.rules(node, upstream, project);
        self.merging(node, upstream, project);
        self.flags(node, upstream, project);
        self.rest(node, upstream, project);
        self.members(node, upstream, project);
        self.below(node, upstream, project);
    }

    fn add(
        &mut self,
        node: &Node,
        aspect: &str,
        direction: Direction,
        upstream: Option<&Value>,
        project: Option<&Value>,
    ) {
        self.found.push(node.difference(aspect, direction, upstream, project));
    }

    fn kind_of_value(&mut self, node: &Node, upstream: &Side, project: &Side) {
        let text = |side: &Side| {
            if side.is(INT_OR_STRING) {
                Some(Value::from("int-or-string"))
            } else {
                side.get("type").cloned()
            }
        };
        let (expected, actual) = (text(upstream), text(project));
        let direction = match (
            expected.as_ref().and_then(Value::as_str),
            actual.as_ref().and_then(Value::as_str),
        ) {
            (expected, actual) if expected == actual => return,
            (Some(_), None)
            | (Some("integer"), Some("number"))
            | (Some("integer" | "string"), Some("int-or-string")) => Wider,
            _ => Narrower,
        };
        self.add(node, "type", direction, expected.as_ref(), actual.as_ref());
    }

    fn values(&mut self, node: &Node, upstream: &Side, project: &Side) {
        let (expected, actual) = (upstream.get("enum"), project.get("enum"));
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
        let direction = match (list(expected), list(actual)) {
            (None, None) => None,
            (Some(_), None) => Some(Wider),
            (None, Some(_)) => Some(Narrower),
            (Some(expected), Some(actual)) => {
                if expected.iter().any(|value| !actual.contains(value)) {
                    Some(Narrower)
                } else {
                    actual.iter().any(|value| !expected.contains(value)).then_some(Wider)
                }
            }
        };
        if let Some(direction) = direction {
            self.add(node, "enum", direction, expected, actual);
        }
        if upstream.get("default") != project.get("default") {
            self.add(node, "default", Other, upstream.get("default"), project.get("default"));
        }
    }

    fn bounds(&mut self, node: &Node, upstream: &Side, project: &Side) {
        for (key, zero_is_none) in LOWER {
            let bound = |side: &Side| {
                let number = side.get(key).and_then(Value::as_f64);
                number.filter(|number| !(zero_is_none && *number == 0.0))
            };
            let (expected, actual) = (
                bound(upstream).unwrap_or(f64::NEG_INFINITY),
                bound(project).unwrap_or(f64::NEG_INFINITY),
            );
            self.bound(node, key, actual.total_cmp(&expected), upstream, project);
        }
        for key in UPPER {
            let bound = |side: &Side| side.get(key).and_then(Value::as_f64).unwrap_or(f64::INFINITY);
            self.bound(node, key, bound(upstream).total_cmp(&bound(project)), upstream, project);
        }
    }

    /// `tightness` is greater when this project is stricter.
    fn bound(&mut self, node: &Node, key: &str, tightness: std::cmp::Ordering, upstream: &Side, project: &Side) {
        let direction = match tightness {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => Wider,
            std::cmp::Ordering::Greater => Narrower,
        };
        self.add(node, key, direction, upstream.get(key), project.get(key));
    }

    fn restrictions(&mut self, node: &Node, upstream: &Side, project: &Side) {
        for key in RESTRICTIONS.into_iter().chain(["anyOf", "oneOf"]) {
            let (expected, actual) = (upstream.get(key), project.get(key));
            if expected == actual {
                continue;
            }
            // Containment of patterns is not decided: a different one counts as narrower.
            let direction = if actual.is_none() { Wider } else { Narrower };
            self.add(node, key, direction, expected, actual);
        }
    }

    fn rules(&mut self, node: &Node, upstream: &Side, project: &Side) {
        let rules = |side: &Side| -> BTreeMap<String, Value> {
            let list = side.get(RULES).and_then(Value::as_array).cloned().unwrap_or_default();
            list.into_iter()
                .map(|entry| (entry.get("rule").map(Value::to_string).unwrap_or_default(), entry))
                .collect()
        };
        let (expected, actual) = (rules(upstream), rules(project));
        let only = |of: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>| {
            of.keys().any(|rule| !other.contains_key(rule))
        };
        let direction = if only(&actual, &expected) {
            Narrower
        } else if only(&expected, &actual) {
            Wider
        } else {
            return;
        };
        self.add(node, "rules", direction, upstream.get(RULES), project.get(RULES));
    }

    fn merging(&mut self, node: &Node, upstream: &Side, project: &Side) {
        let (expected, actual) = (upstream.get(LIST_TYPE), project.get(LIST_TYPE));
        if expected != actual {
            // A set or a map rejects duplicates; an atomic list accepts them.
            let direction = if actual.is_none() { Other } else { Narrower };
            self.add(node, "list-type", direction, expected, actual);
        }
        let (expected, actual) = (texts(upstream.get(LIST_KEYS)), texts(project.get(LIST_KEYS)));
        if expected != actual {
            // With fewer keys, entries that are distinct upstream collide.
            let direction = if actual.is_empty() || actual.is_superset(&expected) {
                Other
            } else {
                Narrower
            };
            self.add(
                node,
                "list-keys",
                direction,
                upstream.get(LIST_KEYS),
                project.get(LIST_KEYS),
            );
        }
        if upstream.get(MAP_TYPE) != project.get(MAP_TYPE) {
            self.add(node, "map-type", Other, upstream.get(MAP_TYPE), project.get(MAP_TYPE));
        }
    }

    fn flags(&mut self, node: &Node, upstream: &Side, project: &Side) {
        for (key, aspect) in [("nullable", "nullable"), (PRESERVE, "preserve-unknown")] {
            match (upstream.is(key), project.is(key)) {
                (true, false) => self.add(node, aspect, Narrower, upstream.get(key), project.get(key)),
                (false, true) => self.add(node, aspect, Wider, upstream.get(key), project.get(key)),
                _ => {}
            }
        }
    }

    fn rest(&mut self, node: &Node, upstream: &Side, project: &Side) {
        let known = |key: &str| {
            HANDLED.contains(&key)
                || RESTRICTIONS.contains(&key)
                || UPPER.contains(&key)
                || LOWER.iter().any(|(lower, _)| *lower == key)
        };
        let keys: BTreeSet<&String> = upstream.0.keys().chain(project.0.keys()).collect();
        for key in keys.into_iter().filter(|key| !known(key)) {
            if upstream.get(key) != project.get(key) {
                self.add(node, key, Other, upstream.get(key), project.get(key));
            }
        }
    }

    fn members(&mut self, node: &Node, upstream: &Side, project: &Side) {
        let (expected, actual) = (upstream.members(), project.members());
        let (expected_required, actual_required) = (upstream.required(), project.required());
        for name in expected.keys().chain(actual.keys()).copied().collect::<BTreeSet<_>>() {
            let child = node.child(name);
            match (expected_required.contains(name), actual_required.contains(name)) {
                (false, true) => self.add(&child, "required", Narrower, Some(&false.into()), Some(&true.into())),
                (true, false) if actual.contains_key(name) => {
                    self.add(&child, "required", Wider, Some(&true.into()), Some(&false.into()));
                }
                _ => {}
            }
            match (expected.get(name), actual.get(name)) {
                (Some(expected), Some(actual)) => self.node(&child, &Side::of(expected), &Side::of(actual)),
                (Some(expected), None) => {
                    // Undescribed members are dropped, unless the parent keeps unknown members.
                    let direction = if project.is(PRESERVE) { Wider } else { Narrower };
                    self.add(&child, "property", direction, Some(&outline(expected)), None);
                }
                (None, Some(actual)) => {
                    // Members that upstream drops or keeps unchecked are typed here.
                    let direction = if upstream.is(PRESERVE) { Narrower } else { Wider };
                    self.add(&child, "property", direction, None, Some(&outline(actual)));
                }
                (None, None) => {}
            }
        }
    }

    fn below(&mut self, node: &Node, upstream: &Side, project: &Side) {
        for (key, step) in [("items", "[]"), ("additionalProperties", "{}")] {
            let child = node.child(step);
            match (upstream.get(key), project.get(key)) {
                (Some(expected), Some(actual)) => self.node(&child, &Side::of(expected), &Side::of(actual)),
                (Some(expected), None) => {
                    let direction = if project.is(PRESERVE) { Wider } else { Narrower };
                    self.add(&child, "property", direction, Some(&outline(expected)), None);
                }
                (None, Some(actual)) => {
                    let direction = if upstream.is(PRESERVE) { Narrower } else { Wider };
                    self.add(&child, "property", direction, None, Some(&outline(actual)));
                }
                (None, None) => {}
            }
        }
    }
}

/// Summary of a schema for a report.
fn outline(schema: &Value) -> Value {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
    format!("{kind} with {} nodes", count(schema)).into()
}

/// Number of nodes of a schema, including itself.
pub(crate) fn count(schema: &Value) -> usize {
    let members = schema.get("properties").and_then(Value::as_object);
    let named: usize = members.map(|map| map.values().map(count).sum()).unwrap_or_default();
    let below = ["items", "additionalProperties"];
    let below: usize = below.iter().filter_map(|key| schema.get(key)).map(count).sum();
    1 + named + below
}
