//! Two `CustomResourceDefinition` documents: names, labels, versions, columns, and their schemas.
//!
//! Pure: values in, differences out. It compares what the API server acts on and what users see. The bundle of a
//! conversion webhook and the version of the tool that wrote a file are not compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::difference::{Difference, Direction, Node};
use super::schema;
use Direction::{Narrower, Other, Wider};

/// Which release of a generator wrote the file: true of the file, not of the kind.
const GENERATOR: &str = "controller-gen.kubebuilder.io/version";

/// All differences of two definitions of one kind, and how many schema nodes of upstream's were compared.
pub(crate) fn compare(upstream: &Value, ours: &Value) -> (Vec<Difference>, usize) {
    let kind = upstream
        .pointer("/spec/names/kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let shared = Node {
        kind: kind.to_owned(),
        version: None,
        path: String::new(),
    };
    let mut found = names(&shared, upstream, ours);
    for (member, aspect) in [("labels", "label"), ("annotations", "annotation")] {
        let pairs = |crd: &Value| pairs(crd.pointer(&format!("/metadata/{member}")));
        found.extend(sets(&shared, aspect, &pairs(upstream), &pairs(ours)));
    }
    found.extend(conversion(&shared, upstream, ours));
    let (more, nodes) = versions(&shared, upstream, ours);
    found.extend(more);
    (found, nodes)
}

fn names(node: &Node, upstream: &Value, ours: &Value) -> Vec<Difference> {
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
        let (theirs, own) = (upstream.pointer(pointer), ours.pointer(pointer));
        if theirs != own {
            let aspect = pointer.rsplit('/').next().unwrap_or_default();
            found.push(node.difference(aspect, Narrower, theirs, own));
        }
    }
    for (member, aspect) in [("shortNames", "short-name"), ("categories", "category")] {
        let list = |crd: &Value| -> BTreeMap<String, Value> {
            schema::texts(crd.pointer(&format!("/spec/names/{member}")))
                .into_iter()
                .map(|name| (name.to_owned(), Value::Bool(true)))
                .collect()
        };
        found.extend(sets(node, aspect, &list(upstream), &list(ours)));
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

/// Named values of both sides: one that only upstream has is missed, one that only ours has is more.
fn sets(
    node: &Node,
    aspect: &str,
    upstream: &BTreeMap<String, Value>,
    ours: &BTreeMap<String, Value>,
) -> Vec<Difference> {
    let names: BTreeSet<&String> = upstream.keys().chain(ours.keys()).collect();
    names
        .into_iter()
        .filter_map(|name| {
            let (theirs, own) = (upstream.get(name), ours.get(name));
            let direction = match (theirs, own) {
                (Some(_), None) => Narrower,
                (None, Some(_)) => Wider,
                (theirs, own) if theirs != own => Other,
                _ => return None,
            };
            Some(node.child(name).difference(aspect, direction, theirs, own))
        })
        .collect()
}

fn conversion(node: &Node, upstream: &Value, ours: &Value) -> Option<Difference> {
    let stanza = |crd: &Value| -> Value {
        let strategy = crd.pointer("/spec/conversion/strategy").cloned();
        let webhook = |part: &str| crd.pointer(&format!("/spec/conversion/webhook/{part}")).cloned();
        serde_json::json!({
            "strategy": strategy.unwrap_or_else(|| "None".into()),
            "service": webhook("clientConfig/service"),
            "reviews": webhook("conversionReviewVersions"),
        })
    };
    let (theirs, own) = (stanza(upstream), stanza(ours));
    (theirs != own).then(|| node.difference("conversion", Other, Some(&theirs), Some(&own)))
}

fn versions(node: &Node, upstream: &Value, ours: &Value) -> (Vec<Difference>, usize) {
    let named = |crd: &Value| -> BTreeMap<String, Value> {
        let list = crd.pointer("/spec/versions").and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(|version| Some((version.get("name")?.as_str()?.to_owned(), version.clone())))
            .collect()
    };
    let (theirs, own) = (named(upstream), named(ours));
    let mut found = Vec::new();
    let mut nodes = 0;
    for name in theirs.keys().chain(own.keys()).collect::<BTreeSet<_>>() {
        let node = Node {
            version: Some(name.clone()),
            ..node.clone()
        };
        match (theirs.get(name), own.get(name)) {
            (Some(theirs), Some(own)) => {
                let (more, compared) = version(&node, theirs, own);
                found.extend(more);
                nodes += compared;
            }
            (Some(_), None) => found.push(node.difference("version", Narrower, Some(&true.into()), None)),
            (None, _) => found.push(node.difference("version", Wider, None, Some(&true.into()))),
        }
    }
    (found, nodes)
}

fn version(node: &Node, upstream: &Value, ours: &Value) -> (Vec<Difference>, usize) {
    let mut found = flags(node, upstream, ours);
    found.extend(subresources(node, upstream, ours));
    found.extend(sets(node, "selectable-field", &selectable(upstream), &selectable(ours)));
    found.extend(columns(node, upstream, ours));
    let schema = |version: &Value| version.pointer("/schema/openAPIV3Schema").cloned();
    match (schema(upstream), schema(ours)) {
        (Some(theirs), Some(own)) => {
            let (more, nodes) = schema::compare(node, &theirs, &own);
            found.extend(more);
            (found, nodes)
        }
        _ => {
            found.push(node.difference("schema", Narrower, None, None));
            (found, 0)
        }
    }
}

fn flags(node: &Node, upstream: &Value, ours: &Value) -> Vec<Difference> {
    let flag = |version: &Value, name: &str| version.get(name).and_then(Value::as_bool).unwrap_or_default();
    let mut found = Vec::new();
    for name in ["served", "storage", "deprecated"] {
        let (theirs, own) = (flag(upstream, name), flag(ours, name));
        if theirs != own {
            let direction = match name {
                "served" if own => Wider,
                "served" => Narrower,
                _ => Other,
            };
            found.push(node.difference(name, direction, Some(&theirs.into()), Some(&own.into())));
        }
    }
    let (theirs, own) = (upstream.get("deprecationWarning"), ours.get("deprecationWarning"));
    if theirs != own {
        found.push(node.difference("deprecation-warning", Other, theirs, own));
    }
    found
}

/// A status subresource that only one side has is narrower either way: where it is missing, a write to it is refused;
/// where it is added, the status inside an ordinary write is dropped.
fn subresources(node: &Node, upstream: &Value, ours: &Value) -> Vec<Difference> {
    let part = |version: &Value, part: &str| version.get("subresources").and_then(|all| all.get(part)).cloned();
    let mut found = Vec::new();
    for name in ["status", "scale"] {
        let (theirs, own) = (part(upstream, name), part(ours, name));
        if theirs != own {
            let direction = if name == "scale" && theirs.is_none() {
                Wider
            } else {
                Narrower
            };
            found.push(
                node.child(name)
                    .difference("subresource", direction, theirs.as_ref(), own.as_ref()),
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

fn columns(node: &Node, upstream: &Value, ours: &Value) -> Vec<Difference> {
    let list = |version: &Value| -> Vec<(String, Value)> {
        let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
        columns.into_iter().flatten().filter_map(column).collect()
    };
    let (theirs, own) = (list(upstream), list(ours));
    let named = |columns: &[(String, Value)]| columns.iter().cloned().collect::<BTreeMap<_, _>>();
    let mut found = sets(node, "column", &named(&theirs), &named(&own));
    let order = |columns: &[(String, Value)], of: &[(String, Value)]| -> Vec<Value> {
        let shared = |name: &String| of.iter().any(|(other, _)| other == name);
        let names = columns.iter().map(|(name, _)| name).filter(|name| shared(name));
        names.map(|name| name.as_str().into()).collect()
    };
    let (theirs_order, own_order) = (order(&theirs, &own), order(&own, &theirs));
    if theirs_order != own_order {
        found.push(node.difference(
            "column-order",
            Other,
            Some(&theirs_order.into()),
            Some(&own_order.into()),
        ));
    }
    found
}

/// A column without its description, with the priority spelled out.
fn column(column: &Value) -> Option<(String, Value)> {
    let name = column.get("name")?.as_str()?;
    let mut shown = column.as_object()?.clone();
    shown.remove("description");
    shown.entry("priority").or_insert_with(|| 0.into());
    Some((name.to_owned(), shown.into()))
}
