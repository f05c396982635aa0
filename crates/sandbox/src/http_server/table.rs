//! Converts objects to the Table format of `kubectl get`, with the columns of their kind.

use chrono::{DateTime, Utc};
use metal3_api::crd::AGE;
use serde_json::{Map, Value, json};

use super::built_in;

/// The columns of a kind.
pub(super) enum Columns {
    /// Those of a version of a CRD.
    Defined(Vec<Stated>),
    /// Those of a built-in kind.
    BuiltIn(&'static [built_in::Column]),
}

/// A column of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stated {
    name: String,
    kind: String,
    description: String,
    priority: i64,
    path: String,
}

impl Stated {
    /// The column of a stored definition.
    fn read(column: &Value) -> Option<Self> {
        let text = |name: &str| column.get(name).and_then(Value::as_str);
        Some(Self {
            name: text("name")?.to_owned(),
            kind: text("type")?.to_owned(),
            description: text("description").unwrap_or_default().to_owned(),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            path: text("jsonPath")?.to_owned(),
        })
    }

    fn age() -> Self {
        Self {
            name: AGE.name.to_owned(),
            kind: AGE.kind.to_owned(),
            description: AGE.description.to_owned(),
            priority: i64::from(AGE.priority),
            path: AGE.path.to_owned(),
        }
    }
}

impl Columns {
    /// The columns of a version of a kind by its stored definition; the default is the age.
    pub(super) fn of(definition: Option<&Value>, (group, version, plural): (&str, &str, &str)) -> Self {
        if let Some(columns) = built_in::columns(group, plural).filter(|_| definition.is_none()) {
            return Self::BuiltIn(columns);
        }
        let versions = definition.and_then(|definition| definition.pointer("/spec/versions"));
        let mut versions = versions.and_then(Value::as_array).into_iter().flatten();
        let of = versions.find(|known| known.get("name").is_some_and(|name| name == version));
        let stated = of.and_then(|version| version.get("additionalPrinterColumns")?.as_array());
        let stated: Vec<Stated> = stated.into_iter().flatten().filter_map(Stated::read).collect();
        match stated.is_empty() {
            true => Self::Defined(vec![Stated::age()]),
            false => Self::Defined(stated),
        }
    }

    /// Events have their name in the last column.
    fn starts_with_name(&self) -> bool {
        match self {
            Self::BuiltIn(columns) => columns.iter().all(|(heading, ..)| *heading != "Name"),
            Self::Defined(_) => true,
        }
    }

    fn definitions(&self) -> Vec<Value> {
        match self {
            Self::Defined(columns) => columns
                .iter()
                .map(|column| {
                    json!({
                        "name": column.name, "type": column.kind, "format": "", "description": column.description,
                        "priority": column.priority,
                    })
                })
                .collect(),
            Self::BuiltIn(columns) => columns
                .iter()
                .map(|(name, priority, _)| {
                    let format = if *name == "Name" { "name" } else { "" };
                    let kind = if *name == built_in::CREATED_AT.0 {
                        "date"
                    } else {
                        "string"
                    };
                    json!({ "name": name, "type": kind, "format": format, "description": "", "priority": priority })
                })
                .collect(),
        }
    }

    fn cells(&self, object: &Value, now: DateTime<Utc>) -> Vec<Value> {
        match self {
            Self::Defined(columns) => columns.iter().map(|column| cell(column, object, now)).collect(),
            Self::BuiltIn(columns) => columns.iter().map(|(.., cell)| cell(object, now)).collect(),
        }
    }
}

/// The part of an object that its row has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Included {
    None,
    Metadata,
    Object,
}

impl Included {
    /// The part that a query asks for.
    pub(super) fn of(query: &str) -> Self {
        match query.split('&').find_map(|pair| pair.strip_prefix("includeObject=")) {
            Some("Object") => Self::Object,
            Some("None") => Self::None,
            _ => Self::Metadata,
        }
    }
}

/// A table of one object or of a list.
pub(super) fn table(columns: &Columns, document: &Value, now: DateTime<Utc>, included: Included) -> Value {
    let items = document.get("items").and_then(Value::as_array);
    let row = |object: &Value| row(columns, object, now, included);
    let rows: Vec<Value> = match items {
        Some(items) => items.iter().map(row).collect(),
        None => vec![row(document)],
    };
    let name = json!({ "name": "Name", "type": "string", "format": "name", "description": "Name.", "priority": 0 });
    let name = columns.starts_with_name().then_some(name);
    let definitions: Vec<Value> = name.into_iter().chain(columns.definitions()).collect();
    let mut metadata = Map::new();
    for name in ["resourceVersion", "continue", "remainingItemCount"] {
        let found = document.get("metadata").and_then(|metadata| metadata.get(name));
        let found = found.filter(|value| *value != "");
        metadata.extend(found.map(|value| (name.to_owned(), value.clone())));
    }
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": definitions, "rows": rows,
    })
}

fn row(columns: &Columns, object: &Value, now: DateTime<Utc>, included: Included) -> Value {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    let name = columns.starts_with_name().then_some(name);
    let cells: Vec<Value> = name.into_iter().chain(columns.cells(object, now)).collect();
    let part = match included {
        Included::None => Value::Null,
        Included::Object => object.clone(),
        Included::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_default(),
        }),
    };
    json!({ "cells": cells, "object": part })
}

fn cell(column: &Stated, object: &Value, now: DateTime<Utc>) -> Value {
    let Some(found) = find(object, &column.path) else {
        return Value::Null;
    };
    match (column.kind.as_str(), found) {
        ("date", Value::String(text)) => match DateTime::parse_from_rfc3339(text) {
            Ok(then) => age(now.signed_duration_since(then).num_seconds()).into(),
            Err(_) => "<unknown>".into(),
        },
        ("string", Value::String(text)) => text.clone().into(),
        ("string", other) => other.to_string().into(),
        (_, other) => other.clone(),
    }
}

/// A duration in the largest useful units, as kubectl prints it.
pub(super) fn age(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        ..0 => "<invalid>".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 if seconds % 60 > 0 => format!("{minutes}m{}s", seconds % 60),
        120..10_800 => format!("{minutes}m"),
        10_800..28_800 if minutes % 60 > 0 => format!("{hours}h{}m", minutes % 60),
        10_800..172_800 => format!("{hours}h"),
        172_800..691_200 if hours % 24 > 0 => format!("{days}d{}h", hours % 24),
        _ => format!("{days}d"),
    }
}

/// The first value at a path in the forms of columns: `.a.b`, `['a']`, `[0]` and `[?(@.type=="x")]`.
fn find<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let (mut found, mut rest) = (object, path.trim());
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = after.split_once(']')?;
            found = select(found, inside)?;
            rest = after;
        } else {
            let (name, after) = member(rest.strip_prefix('.').unwrap_or(rest));
            found = found.get(&name)?;
            rest = after;
        }
    }
    Some(found).filter(|value| !value.is_null())
}

/// Splits a path into its first field name, with escaped dots, and the rest.
fn member(step: &str) -> (String, &str) {
    let (mut name, mut rest) = (String::new(), step);
    while let Some(next) = rest.chars().next().filter(|next| !['.', '['].contains(next)) {
        let escaped = rest
            .strip_prefix('\\')
            .and_then(|after| Some((after.chars().next()?, after)));
        let (taken, from) = escaped.unwrap_or((next, rest));
        name.push(taken);
        rest = from.get(taken.len_utf8()..).unwrap_or_default();
    }
    (name, rest)
}

fn select<'a>(found: &'a Value, inside: &str) -> Option<&'a Value> {
    if let Some(test) = inside.strip_prefix("?(@.").and_then(|test| test.strip_suffix(')')) {
        let (member, wanted) = test.split_once("==")?;
        let wanted = wanted.trim().trim_matches(['"', '\'']);
        let fits = |item: &&Value| item.get(member.trim()).and_then(Value::as_str) == Some(wanted);
        return found.as_array()?.iter().find(fits);
    }
    match inside.parse::<usize>() {
        Ok(place) => found.get(place),
        Err(_) => found.get(inside.trim_matches(['"', '\''])),
    }
}

#[cfg(test)]
mod tests {
    use metal3_api::catalog;

    use super::*;

    fn host() -> Value {
        json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": "host-1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "online": true, "consumerRef": { "name": "m0" } },
            "status": { "operationalStatus": "OK", "errorType": "", "provisioning": { "state": "provisioned" } },
        })
    }

    #[test]
    fn a_kind_has_its_own_columns() {
        let all = catalog::definitions();
        let kind = all.iter().find(|kind| kind.kind == "BareMetalHost").unwrap();
        let now = DateTime::from_timestamp(1_767_225_600 + 300, 0).unwrap();
        let columns = Columns::of(Some(&kind.manifest()), ("metal3.io", "v1alpha1", "baremetalhosts"));
        let list = json!({ "items": [host()], "metadata": { "resourceVersion": "9", "continue": "next" } });
        let table = table(&columns, &list, now, Included::Metadata);
        let names = table["columnDefinitions"].as_array().unwrap().iter();
        let of = |heading: &str| {
            let place = names.clone().position(|column| column["name"] == heading).unwrap();
            table["rows"][0]["cells"][place].clone()
        };
        assert_eq!(
            (of("Name"), of("State"), of("Consumer")),
            (json!("host-1"), json!("provisioned"), json!("m0"))
        );
        assert_eq!((of("Online"), of("Age")), (json!("true"), json!("5m")));
        assert_eq!(table["metadata"], list["metadata"]);
    }

    #[test]
    fn a_kind_without_columns_has_its_age() {
        let now = DateTime::from_timestamp(1_767_225_600 + 61, 0).unwrap();
        let columns = Columns::of(None, ("example.org", "v1", "things"));
        let table = table(&columns, &host(), now, Included::None);
        assert_eq!(table["rows"], json!([{ "cells": ["host-1", "61s"], "object": null }]));
    }

    #[test]
    fn a_built_in_kind_has_its_columns_and_an_event_its_name_last() {
        let now = DateTime::from_timestamp(1_767_225_600 + 61, 0).unwrap();
        let row = |plural: &str, object: &Value| {
            let columns = Columns::of(None, ("", "v1", plural));
            table(&columns, object, now, Included::Object)["rows"][0].clone()
        };
        let object = json!({ "metadata": { "name": "a" }, "data": { "x": "1" }, "binaryData": { "y": "" } });
        let found = row("configmaps", &object);
        assert_eq!(
            (&found["cells"], &found["object"]),
            (&json!(["a", 2, "<unknown>"]), &object)
        );
        let event =
            json!({ "metadata": { "name": "e" }, "type": "Normal", "involvedObject": { "kind": "Pod", "name": "p" } });
        let cells = row("events", &event)["cells"].clone();
        assert_eq!(
            (&cells[3], cells.as_array().unwrap().last()),
            (&json!("pod/p"), Some(&json!("e")))
        );
    }

    #[test]
    fn paths_reach_members_places_and_conditions() {
        let object = json!({ "labels": { "x.io/y": "z" }, "status": {
            "conditions": [{ "type": "A", "status": "x" }, { "type": "Ready", "status": "True" }], "b": [{ "c": 1 }],
        } });
        for (path, expected) in [
            (".status.conditions[?(@.type==\"Ready\")].status", Some(json!("True"))),
            (".status.conditions[?(@.type=='A')].status", Some(json!("x"))),
            (".status.conditions[?(@.type==\"None\")].status", None),
            (".status.b[0].c", Some(json!(1))),
            (".status['b'][1].c", None),
            (".labels.x\\.io/y", Some(json!("z"))),
            (".status.absent", None),
            (".status.b[", None),
        ] {
            assert_eq!(find(&object, path).cloned(), expected, "{path}");
        }
    }

    #[test]
    fn ages_are_printed_like_kubectl() {
        for (seconds, text) in [
            (-1, "<invalid>"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (3_600, "60m"),
            (10_860, "3h1m"),
            (90_000, "25h"),
            (176_400, "2d1h"),
            (864_000, "10d"),
        ] {
            assert_eq!(age(seconds), text, "{seconds}");
        }
    }
}
