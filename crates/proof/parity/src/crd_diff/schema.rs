//! Two nodes of structural schemas, and everything below them.
//!
//! It does not resolve references and knows no `definitions`: a structural schema has none. Invariant: no member of a
//! node goes unseen; one that has no rule here is compared for equality and reported as `other`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::difference::{Difference, Direction, Node};
use Direction::{Narrower, Other, Wider};

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const RULES: &str = "x-kubernetes-validations";

/// Lower bounds, and whether 0 means none.
const LOWER: [(&str, bool); 4] = [
    ("minimum", false),
    ("minLength", true),
    ("minItems", true),
    ("minProperties", true),
];
const UPPER: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];
/// Members whose presence only takes documents away, and of which no order is known.
const RESTRICTIONS: [&str; 9] = [
    "pattern",
    "format",
    "multipleOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "uniqueItems",
    "not",
    EMBEDDED,
    "allOf",
];
/// Members that are compared by rules of their own, or mean nothing to the API server.
const SEEN: [&str; 21] = [
    "description",
    "title",
    "example",
    "externalDocs",
    "type",
    "enum",
    "default",
    "nullable",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
    "oneOf",
    INT_OR_STRING,
    PRESERVE,
    LIST_TYPE,
    LIST_KEYS,
    MAP_TYPE,
    RULES,
    "x-kubernetes-group-version-kind",
];

/// Differences of two nodes and of all below them, and the number of nodes of `upstream` that were looked at.
pub(crate) fn compare(node: &Node, upstream: &Value, ours: &Value) -> (Vec<Difference>, usize) {
    let mut walk = Walk::default();
    walk.node(node, &Side::of(upstream), &Side::of(ours));
    (walk.found, walk.nodes)
}

#[derive(Default)]
struct Walk {
    found: Vec<Difference>,
    nodes: usize,
}

/// One of the two schemas at a node, in a form where equal meanings look equal.
struct Side(Map<String, Value>);

impl Side {
    fn of(schema: &Value) -> Self {
        let mut map = schema.as_object().cloned().unwrap_or_default();
        if map.get(INT_OR_STRING) == Some(&Value::Bool(true)) {
            map.remove("type");
            // The form that controller-gen writes beside the extension says the same once more.
            map.remove("anyOf");
        }
        let idle = ["int64", "double", "float"];
        if map
            .get("format")
            .and_then(Value::as_str)
            .is_some_and(|format| idle.contains(&format))
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

    /// Members a document must bring along. The server fills in defaults before it validates.
    fn required(&self) -> BTreeSet<&str> {
        let members = self.members();
        let filled_in = |name: &&str| members.get(name).is_some_and(|schema| schema.get("default").is_some());
        texts(self.get("required"))
            .into_iter()
            .filter(|name| !filled_in(name))
            .collect()
    }
}

/// The texts of a list.
pub(crate) fn texts(list: Option<&Value>) -> BTreeSet<&str> {
    list.and_then(Value::as_array)
        .map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

impl Walk {
    fn node(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        self.nodes += 1;
        self.kind_of_value(node, upstream, ours);
        self.values(node, upstream, ours);
        self.bounds(node, upstream, ours);
        self.restrictions(node, upstream, ours);
        self.rules(node, upstream, ours);
        self.merging(node, upstream, ours);
        self.flags(node, upstream, ours);
        self.rest(node, upstream, ours);
        self.members(node, upstream, ours);
        self.below(node, upstream, ours);
    }

    fn add(&mut self, node: &Node, aspect: &str, direction: Direction, upstream: Option<&Value>, ours: Option<&Value>) {
        self.found.push(node.difference(aspect, direction, upstream, ours));
    }

    fn kind_of_value(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        let text = |side: &Side| {
            if side.is(INT_OR_STRING) {
                Some(Value::from("int-or-string"))
            } else {
                side.get("type").cloned()
            }
        };
        let (theirs, own) = (text(upstream), text(ours));
        let direction = match (
            theirs.as_ref().and_then(Value::as_str),
            own.as_ref().and_then(Value::as_str),
        ) {
            (theirs, own) if theirs == own => return,
            (Some(_), None)
            | (Some("integer"), Some("number"))
            | (Some("integer" | "string"), Some("int-or-string")) => Wider,
            _ => Narrower,
        };
        self.add(node, "type", direction, theirs.as_ref(), own.as_ref());
    }

    fn values(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        let (theirs, own) = (upstream.get("enum"), ours.get("enum"));
        let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
        let direction = match (list(theirs), list(own)) {
            (None, None) => None,
            (Some(_), None) => Some(Wider),
            (None, Some(_)) => Some(Narrower),
            (Some(theirs), Some(own)) => {
                if theirs.iter().any(|value| !own.contains(value)) {
                    Some(Narrower)
                } else {
                    own.iter().any(|value| !theirs.contains(value)).then_some(Wider)
                }
            }
        };
        if let Some(direction) = direction {
            self.add(node, "enum", direction, theirs, own);
        }
        if upstream.get("default") != ours.get("default") {
            self.add(node, "default", Other, upstream.get("default"), ours.get("default"));
        }
    }

    fn bounds(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        for (key, zero_is_none) in LOWER {
            let bound = |side: &Side| {
                let number = side.get(key).and_then(Value::as_f64);
                number.filter(|number| !(zero_is_none && *number == 0.0))
            };
            let (theirs, own) = (
                bound(upstream).unwrap_or(f64::NEG_INFINITY),
                bound(ours).unwrap_or(f64::NEG_INFINITY),
            );
            self.bound(node, key, own.total_cmp(&theirs), upstream, ours);
        }
        for key in UPPER {
            let bound = |side: &Side| side.get(key).and_then(Value::as_f64).unwrap_or(f64::INFINITY);
            self.bound(node, key, bound(upstream).total_cmp(&bound(ours)), upstream, ours);
        }
    }

    /// `tightness` is greater when ours is the stricter one.
    fn bound(&mut self, node: &Node, key: &str, tightness: std::cmp::Ordering, upstream: &Side, ours: &Side) {
        let direction = match tightness {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => Wider,
            std::cmp::Ordering::Greater => Narrower,
        };
        self.add(node, key, direction, upstream.get(key), ours.get(key));
    }

    fn restrictions(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        for key in RESTRICTIONS.into_iter().chain(["anyOf", "oneOf"]) {
            let (theirs, own) = (upstream.get(key), ours.get(key));
            if theirs == own {
                continue;
            }
            // Whether one pattern admits all that another does is not decided here: unequal counts as narrower.
            let direction = if own.is_none() { Wider } else { Narrower };
            self.add(node, key, direction, theirs, own);
        }
    }

    fn rules(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        let rules = |side: &Side| -> BTreeMap<String, Value> {
            let list = side.get(RULES).and_then(Value::as_array).cloned().unwrap_or_default();
            list.into_iter()
                .map(|entry| (entry.get("rule").map(Value::to_string).unwrap_or_default(), entry))
                .collect()
        };
        let (theirs, own) = (rules(upstream), rules(ours));
        let only = |of: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>| {
            of.keys().any(|rule| !other.contains_key(rule))
        };
        let direction = if only(&own, &theirs) {
            Narrower
        } else if only(&theirs, &own) {
            Wider
        } else {
            return;
        };
        self.add(node, "rules", direction, upstream.get(RULES), ours.get(RULES));
    }

    fn merging(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        let (theirs, own) = (upstream.get(LIST_TYPE), ours.get(LIST_TYPE));
        if theirs != own {
            // A set or a map refuses duplicates; an atomic list takes them.
            let direction = if own.is_none() { Other } else { Narrower };
            self.add(node, "list-type", direction, theirs, own);
        }
        let (theirs, own) = (texts(upstream.get(LIST_KEYS)), texts(ours.get(LIST_KEYS)));
        if theirs != own {
            // With fewer keys, entries that upstream tells apart collide.
            let direction = if own.is_empty() || own.is_superset(&theirs) {
                Other
            } else {
                Narrower
            };
            self.add(
                node,
                "list-keys",
                direction,
                upstream.get(LIST_KEYS),
                ours.get(LIST_KEYS),
            );
        }
        if upstream.get(MAP_TYPE) != ours.get(MAP_TYPE) {
            self.add(node, "map-type", Other, upstream.get(MAP_TYPE), ours.get(MAP_TYPE));
        }
    }

    fn flags(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        for (key, aspect) in [("nullable", "nullable"), (PRESERVE, "preserve-unknown")] {
            match (upstream.is(key), ours.is(key)) {
                (true, false) => self.add(node, aspect, Narrower, upstream.get(key), ours.get(key)),
                (false, true) => self.add(node, aspect, Wider, upstream.get(key), ours.get(key)),
                _ => {}
            }
        }
    }

    fn rest(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        let known = |key: &str| {
            SEEN.contains(&key)
                || RESTRICTIONS.contains(&key)
                || UPPER.contains(&key)
                || LOWER.iter().any(|(lower, _)| *lower == key)
        };
        let keys: BTreeSet<&String> = upstream.0.keys().chain(ours.0.keys()).collect();
        for key in keys.into_iter().filter(|key| !known(key)) {
            if upstream.get(key) != ours.get(key) {
                self.add(node, key, Other, upstream.get(key), ours.get(key));
            }
        }
    }

    fn members(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        let (theirs, own) = (upstream.members(), ours.members());
        let (theirs_required, own_required) = (upstream.required(), ours.required());
        for name in theirs.keys().chain(own.keys()).copied().collect::<BTreeSet<_>>() {
            let child = node.child(name);
            match (theirs_required.contains(name), own_required.contains(name)) {
                (false, true) => self.add(&child, "required", Narrower, Some(&false.into()), Some(&true.into())),
                (true, false) if own.contains_key(name) => {
                    self.add(&child, "required", Wider, Some(&true.into()), Some(&false.into()));
                }
                _ => {}
            }
            match (theirs.get(name), own.get(name)) {
                (Some(theirs), Some(own)) => self.node(&child, &Side::of(theirs), &Side::of(own)),
                (Some(theirs), None) => {
                    // What is not described is dropped, unless the parent keeps unknown members.
                    let direction = if ours.is(PRESERVE) { Wider } else { Narrower };
                    self.add(&child, "property", direction, Some(&outline(theirs)), None);
                }
                (None, Some(own)) => {
                    // What upstream drops or keeps without a look, ours gives a form.
                    let direction = if upstream.is(PRESERVE) { Narrower } else { Wider };
                    self.add(&child, "property", direction, None, Some(&outline(own)));
                }
                (None, None) => {}
            }
        }
    }

    fn below(&mut self, node: &Node, upstream: &Side, ours: &Side) {
        for (key, step) in [("items", "[]"), ("additionalProperties", "{}")] {
            let child = node.child(step);
            match (upstream.get(key), ours.get(key)) {
                (Some(theirs), Some(own)) => self.node(&child, &Side::of(theirs), &Side::of(own)),
                (Some(theirs), None) => {
                    let direction = if ours.is(PRESERVE) { Wider } else { Narrower };
                    self.add(&child, "property", direction, Some(&outline(theirs)), None);
                }
                (None, Some(own)) => {
                    let direction = if upstream.is(PRESERVE) { Narrower } else { Wider };
                    self.add(&child, "property", direction, None, Some(&outline(own)));
                }
                (None, None) => {}
            }
        }
    }
}

/// A schema in a word, for a report.
fn outline(schema: &Value) -> Value {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("any");
    format!("{kind} with {} nodes", count(schema)).into()
}

/// Schema nodes of a schema, itself included.
pub(crate) fn count(schema: &Value) -> usize {
    let members = schema.get("properties").and_then(Value::as_object);
    let named: usize = members.map(|map| map.values().map(count).sum()).unwrap_or_default();
    let below = ["items", "additionalProperties"];
    let below: usize = below.iter().filter_map(|key| schema.get(key)).map(count).sum();
    1 + named + below
}
