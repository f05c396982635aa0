//! Converts objects to the Table format of `kubectl get`, with the columns of their kind.

use chrono::{DateTime, Utc};
use metal3_api::crd::{AGE, Column, Definition};
use serde_json::{Value, json};

/// A table of one object or of a list, with the columns of a version of its kind; the default is the age.
pub(super) fn table(definition: Option<&Definition>, version: &str, document: &Value, now: DateTime<Utc>) -> Value {
    let of = definition.and_then(|kind| kind.versions.iter().find(|known| known.name == version));
    let stated = of.map(|version| version.columns).unwrap_or_default();
    let columns: &[Column] = if stated.is_empty() { &[AGE] } else { stated };
    let items = document.get("items").and_then(Value::as_array);
    let rows: Vec<Value> = match items {
        Some(items) => items.iter().map(|item| row(columns, item, now)).collect(),
        None => vec![row(columns, document, now)],
    };
    let name = json!({ "name": "Name", "type": "string", "format": "name", "description": "Name.", "priority": 0 });
    let definitions = std::iter::once(name).chain(columns.iter().map(|column| {
        json!({
            "name": column.name, "type": column.kind, "format": "", "description": column.description,
            "priority": column.priority,
        })
    }));
    let version = document
        .pointer("/metadata/resourceVersion")
        .cloned()
        .unwrap_or_default();
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": { "resourceVersion": version },
        "columnDefinitions": definitions.collect::<Vec<_>>(), "rows": rows,
    })
}

fn row(columns: &[Column], object: &Value, now: DateTime<Utc>) -> Value {
    let name = object.pointer("/metadata/name").cloned().unwrap_or_default();
    let cells = std::iter::once(name).chain(columns.iter().map(|column| cell(column, object, now)));
    json!({
        "cells": cells.collect::<Vec<_>>(),
        "object": {
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object.get("metadata").cloned().unwrap_or_default(),
        },
    })
}

fn cell(column: &Column, object: &Value, now: DateTime<Utc>) -> Value {
    let Some(found) = find(object, column.path) else {
        return Value::Null;
    };
    match (column.kind, found) {
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
fn age(seconds: i64) -> String {
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
        let table = table(
            Some(kind),
            "v1alpha1",
            &json!({ "items": [host()], "metadata": { "resourceVersion": "9" } }),
            now,
        );
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
        assert_eq!(table["metadata"]["resourceVersion"], "9");
    }

    #[test]
    fn a_kind_without_columns_has_its_age() {
        let now = DateTime::from_timestamp(1_767_225_600 + 61, 0).unwrap();
        assert_eq!(
            table(None, "v1", &host(), now)["rows"][0]["cells"],
            json!(["host-1", "61s"])
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
