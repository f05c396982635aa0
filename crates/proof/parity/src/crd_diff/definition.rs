//! Compares two `CustomResourceDefinition` documents: names, labels, versions, columns, and their schemas.
//!
//! Pure. Only parts with an effect on the API server or on users are compared, without the CA bundle of a conversion
//! webhook and the generator version.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::difference::{Difference, Direction, Node};
use super::schema;
use Direction::{Narrower, Other, Wider};

/// Generator version: a property of the file.
const GENERATOR: &str = "controller-gen.kubebuilder.io/version";

/// All differences of two CRDs of one kind, and the number of compared schema nodes of upstream.
pub(crate) fn compare(upstream: &Value, project: &Value) -> (Vec<Difference>, usize) {
    let kind = upstream
        .pointer("/spec/names/kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let shared = Node {
        kind: kind.to_owned(),
        version: None,
        path: String::new(),
    };
    let mut found = names(&shared, upstream, project);
    for (member, aspect) in [("labels", "label"), ("annotations", "annotation")] {
        let pairs = |crd: &Value| pairs(crd.pointer(&format!("/metadata/{member}")));
        let differences = sets(&shared, aspect, &pairs(upstream), &pairs(project));
        // Selectors match the value too: another one is a lost one.
        found.extend(differences.into_iter().map(|difference| match difference.direction {
            Wider => difference,
            Narrower | Other => Difference {
                direction: Narrower,
                ..difference
            },
        }));
    }
    found.extend(conversion(&shared, upstream, project));
    let (more, nodes) = versions(&shared, upstream, project);
    found.extend(more);
    (found, nodes)
}

fn names(node: &Node, upstream: &Value, project: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    let fields = [
        "/spec/group",
        "/spec/scope",
        "/spec/names/kind",
        "/spec/names/listKind",
        "/spec/names/plural",
        "/spec/names/singular",
        "/spec/preserveUnknownFields",
    ];
    for pointer in fields {
        let (expected, actual) = (upstream.pointer(pointer), project.pointer(pointer));
        if expected != actual {
            let aspect = pointer.rsplit('/').next().unwrap_or_default();
            found.push(node.difference(aspect, Narrower, expected, actual));
        }
    }
    for (member, aspect) in [("shortNames", "short-name"), ("categories", "category")] {
        let list = |crd: &Value| -> BTreeMap<String, Value> {
            schema::texts(crd.pointer(&format!("/spec/names/{member}")))
                .into_iter()
                .map(|name| (name.to_owned(), Value::Bool(true)))
                .collect()
        };
        found.extend(sets(node, aspect, &list(upstream), &list(project)));
    }
    found
}

fn pairs(map: Option<&Value>) -> BTreeMap<String, Value> {
    let members = map.and_then(Value::as_object).into_iter().flatten();
    members
        .filter(|(name, _)| *name != GENERATOR)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Named values: one missing here is narrower, an additional one is wider.
fn sets(
    node: &Node,
    aspect: &str,
    upstream: &BTreeMap<String, Value>,
    project: &BTreeMap<String, Value>,
) -> Vec<Difference> {
    let names: BTreeSet<&String> = upstream.keys().chain(project.keys()).collect();
    names
        .into_iter()
        .filter_map(|name| {
            let (expected, actual) = (upstream.get(name), project.get(name));
            let direction = match (expected, actual) {
                (Some(_), None) => Narrower,
                (None, Some(_)) => Wider,
                (expected, actual) if expected != actual => Other,
                _ => return None,
            };
            Some(node.child(name).difference(aspect, direction, expected, actual))
        })
        .collect()
}

fn conversion(node: &Node, upstream: &Value, project: &Value) -> Option<Difference> {
    let stanza = |crd: &Value| -> Value {
        let strategy = crd.pointer("/spec/conversion/strategy").cloned();
        let webhook = |part: &str| crd.pointer(&format!("/spec/conversion/webhook/{part}")).cloned();
        serde_json::json!({
            "strategy": strategy.unwrap_or_else(|| "None".into()),
            "service": webhook("clientConfig/service"),
            "reviews": webhook("conversionReviewVersions"),
        })
    };
    let (expected, actual) = (stanza(upstream), stanza(project));
    (expected != actual).then(|| node.difference("conversion", Other, Some(&expected), Some(&actual)))
}

fn versions(node: &Node, upstream: &Value, project: &Value) -> (Vec<Difference>, usize) {
    let named = |crd: &Value| -> BTreeMap<String, Value> {
        let list = crd.pointer("/spec/versions").and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|version| Some((version.get("name")?.as_str()?.to_owned(), version.clone())))
            .collect()
    };
    let (expected, actual) = (named(upstream), named(project));
    let mut found = Vec::new();
    let mut nodes = 0;
    for name in expected.keys().chain(actual.keys()).collect::<BTreeSet<_>>() {
        let node = Node {
            version: Some(name.clone()),
            ..node.clone()
        };
        match (expected.get(name), actual.get(name)) {
            (Some(expected), Some(actual)) => {
                let (more, compared) = version(&node, expected, actual);
                found.extend(more);
                nodes += compared;
            }
            (Some(_), None) => found.push(node.difference("version", Narrower, Some(&true.into()), None)),
            (None, _) => found.push(node.difference("version", Wider, None, Some(&true.into()))),
        }
    }
    (found, nodes)
}

fn version(node: &Node, upstream: &Value, project: &Value) -> (Vec<Difference>, usize) {
    let mut found = flags(node, upstream, project);
    found.extend(subresources(node, upstream, project));
    found.extend(sets(
        node,
        "selectable-field",
        &selectable(upstream),
        &selectable(project),
    ));
    found.extend(columns(node, upstream, project));
    let schema = |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned();
    match (schema(upstream), schema(project)) {
        (Some(expected), Some(actual)) => {
            let (more, nodes) = schema::compare(node, &expected, &actual);
            found.extend(more);
            (found, nodes)
        }
        _ => {
            found.push(node.difference("schema", Narrower, None, None));
            (found, 0)
        }
    }
}

fn flags(node: &Node, upstream: &Value, project: &Value) -> Vec<Difference> {
    let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
    let mut found = Vec::new();
    for name in ["served", "storage", "deprecated"] {
        let (expected, actual) = (flag(upstream, name), flag(project, name));
        if expected != actual {
            let direction = match name {
                "served" if actual => Wider,
                "served" => Narrower,
                _ => Other,
            };
            found.push(node.difference(name, direction, Some(&expected.into()), Some(&actual.into())));
        }
    }
    let (expected, actual) = (upstream.get("deprecationWarning"), project.get("deprecationWarning"));
    if expected != actual {
        found.push(node.difference("deprecation-warning", Other, expected, actual));
    }
    found
}

/// A status subresource on one side only is narrower in both directions: without it, status writes are rejected; with
/// it, the status of ordinary writes is dropped. Where upstream's schema prunes the status, there is none to drop.
fn subresources(node: &Node, upstream: &Value, project: &Value) -> Vec<Difference> {
    let part = |version: &Value, part: &str| version.get("subresources").and_then(|all| all.get(part)).cloned();
    let schema = upstream.pointer("/schema/openAPIV3Schema");
    let has = |at: &str| {
        schema
            .and_then(|schema| schema.pointer(at))
            .is_some_and(|value| *value != false)
    };
    let has_status = has("/properties/status") || has("/x-kubernetes-preserve-unknown-fields");
    let mut found = Vec::new();
    for name in ["status", "scale"] {
        let (expected, actual) = (part(upstream, name), part(project, name));
        if expected != actual {
            let is_new = expected.is_none() && (name == "scale" || !has_status);
            let direction = if is_new { Wider } else { Narrower };
            found.push(
                node.child(name)
                    .difference("subresource", direction, expected.as_ref(), actual.as_ref()),
            );
        }
    }
    found
}

fn selectable(version: &Value) -> BTreeMap<String, Value> {
    let fields = version.get("selectableFields").and_then(Value::as_array);
    fields
        .into_iter()
        .flatten()
        .filter_map(|field| Some((field.get("jsonPath")?.as_str()?.to_owned(), true.into())))
        .collect()
}

fn columns(node: &Node, upstream: &Value, project: &Value) -> Vec<Difference> {
    let list = |version: &Value| -> Vec<(String, Value)> {
        let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
        columns.into_iter().flatten().filter_map(column).collect()
    };
    let (expected, actual) = (list(upstream), list(project));
    let named = |columns: &[(String, Value)]| columns.iter().cloned().collect::<BTreeMap<_, _>>();
    let mut found = sets(node, "column", &named(&expected), &named(&actual));
    let order = |columns: &[(String, Value)], of: &[(String, Value)]| -> Vec<Value> {
        let shared = |name: &String| of.iter().any(|(other, _)| other == name);
        let names = columns.iter().map(|(name, _)| name).filter(|name| shared(name));
        names.map(|name| name.as_str().into()).collect()
    };
    let (expected_order, actual_order) = (order(&expected, &actual), order(&actual, &expected));
    if expected_order != actual_order {
        found.push(node.difference(
            "column-order",
            Other,
            Some(&expected_order.into()),
            Some(&actual_order.into()),
        ));
    }
    found
}

/// A column without its description, with explicit priority.
fn column(column: &Value) -> Option<(String, Value)> {
    let name = column.get("name")?.as_str()?;
    let mut shown = column.as_object()?.clone();
    shown.remove("description");
    shown.entry("priority").or_insert_with(|| 0.into());
    Some((name.to_owned(), shown.into()))
}
