//! Compares two nodes of structural schemas, and everything below them.
//!
//! References and `definitions` do not occur in structural schemas. Invariant: every member of a node is compared; one
//! without a rule is compared for equality and reported as `other`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::difference::{Difference, Direction, Node};
use super::keywords::{
    FLAGS, HANDLED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, LOWER, MAP_TYPE, PRESERVE, RESTRICTIONS, RULES, UPPER,
};
use Direction::{Narrower, Other, Wider};

/// Differences of two nodes and of all below them, and the number of compared nodes of `upstream`.
pub(crate) fn compare(node: &Node, upstream: &Value, project: &Value) -> (Vec<Difference>, usize) {
    let mut comparer = Comparer::default();
    comparer.node(node, upstream, project);
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
        map.retain(|key, value| key != "format" || ignored.iter().all(|format| value != format));
        if let Some(Value::Bool(accepts)) = map.get("additionalProperties").cloned() {
            map.remove("additionalProperties");
            if accepts {
                map.insert(PRESERVE.into(), true.into());
            }
        }
        let stated_defaults = [(LIST_TYPE, "atomic"), (MAP_TYPE, "granular")];
        map.retain(|key, stated| {
            !stated_defaults
                .iter()
                .any(|(known, value)| key == known && stated == value)
        });
        map.retain(|key, value| *value != Value::Bool(false) || !FLAGS.contains(&key.as_str()));
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

/// A node and its two schemas.
struct Pair<'a> {
    node: &'a Node,
    upstream: Side,
    project: Side,
}

impl Pair<'_> {
    /// Both values of a key.
    fn values(&self, key: &str) -> (Option<&Value>, Option<&Value>) {
        (self.upstream.get(key), self.project.get(key))
    }
}

impl Comparer {
    fn node(&mut self, node: &Node, upstream: &Value, project: &Value) {
        let pair = Pair {
            node,
            upstream: Side::of(upstream),
            project: Side::of(project),
        };
        self.nodes += 1;
        self.kind_of_value(&pair);
        self.values(&pair);
        self.bounds(&pair);
        self.restrictions(&pair);
        self.rules(&pair);
        self.merging(&pair);
        self.flags(&pair);
        self.rest(&pair);
        self.members(&pair);
        for (key, step) in [("items", "[]"), ("additionalProperties", "{}")] {
            self.below(&pair, &node.child(step), pair.values(key));
        }
    }

    /// Reports the values of a key.
    fn add(&mut self, pair: &Pair<'_>, key: &str, direction: Direction) {
        self.add_as(pair, key, key, direction);
    }

    fn add_as(&mut self, pair: &Pair<'_>, aspect: &str, key: &str, direction: Direction) {
        let (upstream, project) = pair.values(key);
        self.found
            .push(pair.node.difference(aspect, direction, upstream, project));
    }

    fn kind_of_value(&mut self, pair: &Pair<'_>) {
        let text = |side: &Side| {
            if side.is(INT_OR_STRING) {
                Some(Value::from("int-or-string"))
            } else {
                side.get("type").cloned()
            }
        };
        let (expected, actual) = (text(&pair.upstream), text(&pair.project));
        let name = |kind: &Option<Value>| kind.as_ref().and_then(Value::as_str).map(str::to_owned);
        let direction = match (name(&expected).as_deref(), name(&actual).as_deref()) {
            (expected, actual) if expected == actual => return,
            (Some(_), None)
            | (Some("integer"), Some("number"))
            | (Some("integer" | "string"), Some("int-or-string")) => Wider,
            _ => Narrower,
        };
        let found = pair
            .node
            .difference("type", direction, expected.as_ref(), actual.as_ref());
        self.found.push(found);
    }

    fn values(&mut self, pair: &Pair<'_>) {
        let list = |side: &Side| side.get("enum").and_then(Value::as_array).cloned();
        let direction = match (list(&pair.upstream), list(&pair.project)) {
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
            self.add(pair, "enum", direction);
        }
        let (expected, actual) = pair.values("default");
        if expected != actual {
            // The two sides then store different objects for one document, and each reads the other's as changed.
            self.add(pair, "default", Narrower);
        }
    }

    fn bounds(&mut self, pair: &Pair<'_>) {
        for (key, zero_is_none) in LOWER {
            let bound = |side: &Side| {
                let number = side.get(key).and_then(Value::as_f64);
                let number = number.filter(|number| !(zero_is_none && *number == 0.0));
                number.unwrap_or(f64::NEG_INFINITY)
            };
            self.bound(pair, key, bound(&pair.project).total_cmp(&bound(&pair.upstream)));
        }
        for key in UPPER {
            let bound = |side: &Side| side.get(key).and_then(Value::as_f64).unwrap_or(f64::INFINITY);
            self.bound(pair, key, bound(&pair.upstream).total_cmp(&bound(&pair.project)));
        }
    }

    /// `tightness` is greater when this project is stricter.
    fn bound(&mut self, pair: &Pair<'_>, key: &str, tightness: std::cmp::Ordering) {
        match tightness {
            std::cmp::Ordering::Equal => {}
            std::cmp::Ordering::Less => self.add(pair, key, Wider),
            std::cmp::Ordering::Greater => self.add(pair, key, Narrower),
        }
    }

    fn restrictions(&mut self, pair: &Pair<'_>) {
        for key in RESTRICTIONS.into_iter().chain(["anyOf", "oneOf"]) {
            let (expected, actual) = pair.values(key);
            if expected != actual {
                // Containment of patterns is not decided: a different one counts as narrower.
                self.add(pair, key, if actual.is_none() { Wider } else { Narrower });
            }
        }
    }

    fn rules(&mut self, pair: &Pair<'_>) {
        let rules = |side: &Side| -> BTreeSet<String> {
            let list = side.get(RULES).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .map(|entry| entry.get("rule").map(Value::to_string).unwrap_or_default())
                .collect()
        };
        let (expected, actual) = (rules(&pair.upstream), rules(&pair.project));
        if !actual.is_subset(&expected) {
            self.add_as(pair, "rules", RULES, Narrower);
        } else if !expected.is_subset(&actual) {
            self.add_as(pair, "rules", RULES, Wider);
        }
    }

    fn merging(&mut self, pair: &Pair<'_>) {
        let (expected, actual) = pair.values(LIST_TYPE);
        if expected != actual {
            // A set or a map rejects duplicates; an atomic list accepts them.
            let direction = if actual.is_none() { Other } else { Narrower };
            self.add_as(pair, "list-type", LIST_TYPE, direction);
        }
        let (expected, actual) = pair.values(LIST_KEYS);
        let (expected, actual) = (texts(expected), texts(actual));
        if expected != actual {
            // With fewer keys, entries that are distinct upstream collide.
            let keeps = actual.is_empty() || actual.is_superset(&expected);
            self.add_as(pair, "list-keys", LIST_KEYS, if keeps { Other } else { Narrower });
        }
        let (expected, actual) = pair.values(MAP_TYPE);
        if expected != actual {
            self.add_as(pair, "map-type", MAP_TYPE, Other);
        }
    }

    fn flags(&mut self, pair: &Pair<'_>) {
        for (key, aspect) in [("nullable", "nullable"), (PRESERVE, "preserve-unknown")] {
            match (pair.upstream.is(key), pair.project.is(key)) {
                (true, false) => self.add_as(pair, aspect, key, Narrower),
                (false, true) => self.add_as(pair, aspect, key, Wider),
                _ => {}
            }
        }
    }

    fn rest(&mut self, pair: &Pair<'_>) {
        let known = |key: &str| {
            HANDLED.contains(&key)
                || RESTRICTIONS.contains(&key)
                || UPPER.contains(&key)
                || LOWER.iter().any(|(lower, _)| *lower == key)
        };
        let keys: BTreeSet<&String> = pair.upstream.0.keys().chain(pair.project.0.keys()).collect();
        for key in keys.into_iter().filter(|key| !known(key)) {
            let (expected, actual) = pair.values(key);
            if expected != actual {
                self.add(pair, key, Other);
            }
        }
    }

    fn members(&mut self, pair: &Pair<'_>) {
        let (expected, actual) = (pair.upstream.members(), pair.project.members());
        let (expected_required, actual_required) = (pair.upstream.required(), pair.project.required());
        for name in expected.keys().chain(actual.keys()).copied().collect::<BTreeSet<_>>() {
            let child = pair.node.child(name);
            let direction = match (expected_required.contains(name), actual_required.contains(name)) {
                (false, true) => Some(Narrower),
                (true, false) if actual.contains_key(name) => Some(Wider),
                _ => None,
            };
            if let Some(direction) = direction {
                let before = direction == Wider;
                let found = child.difference("required", direction, Some(&before.into()), Some(&(!before).into()));
                self.found.push(found);
            }
            self.below(pair, &child, (expected.get(name).copied(), actual.get(name).copied()));
        }
    }

    /// Compares a child of a node, which may be undescribed on one side.
    fn below(&mut self, pair: &Pair<'_>, child: &Node, schemas: (Option<&Value>, Option<&Value>)) {
        let direction = match schemas {
            (Some(expected), Some(actual)) => return self.node(child, expected, actual),
            (None, None) => return,
            // Undescribed members are dropped, unless the parent keeps unknown members.
            (Some(_), None) if pair.project.is(PRESERVE) => Wider,
            (Some(_), None) => Narrower,
            // Members that upstream drops or keeps unchecked are typed here.
            (None, Some(_)) if pair.upstream.is(PRESERVE) => Narrower,
            (None, Some(_)) => Wider,
        };
        let [expected, actual] = [schemas.0, schemas.1].map(|schema| schema.map(outline));
        let found = child.difference("property", direction, expected.as_ref(), actual.as_ref());
        self.found.push(found);
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
