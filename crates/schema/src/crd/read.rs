//! Parsing of manifests.

use serde_json::{Map, Value};

use super::{Column, Conversion, CrdError, CustomResource, Scale, Version};
use crate::model::Schema;
use crate::object_meta::Scope;
use crate::value_path::ValuePath;

pub(super) fn custom_resource(manifest: &Value) -> Result<CustomResource, CrdError> {
    let root = Node {
        value: Some(manifest),
        at: ValuePath::Root,
    };
    for (field, wanted) in [
        ("apiVersion", "apiextensions.k8s.io/v1"),
        ("kind", "CustomResourceDefinition"),
    ] {
        let node = root.child(field);
        if node.text()? != wanted {
            return Err(node.wrong(&format!("`{wanted}`")));
        }
    }
    let spec = root.child("spec");
    let names = spec.child("names");
    let (kind, plural) = (names.child("kind").required()?, names.child("plural").required()?);
    let scope = spec.child("scope");
    let scope = match scope.text()? {
        "Namespaced" => Scope::Namespaced,
        "Cluster" => Scope::Cluster,
        _ => return Err(scope.wrong("`Namespaced` or `Cluster`")),
    };
    let or = |text: &str, other: String| if text.is_empty() { other } else { text.to_owned() };
    let versions = spec.child("versions");
    Ok(CustomResource {
        group: spec.child("group").required()?.to_owned(),
        list_kind: or(names.child("listKind").text()?, format!("{kind}List")),
        singular: or(names.child("singular").text()?, kind.to_lowercase()),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        short_names: names.child("shortNames").texts()?,
        categories: names.child("categories").texts()?,
        scope,
        versions: versions
            .items()?
            .iter()
            .enumerate()
            .map(|(index, value)| version(value, versions.at.item(index)))
            .collect::<Result<_, _>>()?,
        conversion: conversion(&spec.child("conversion"))?,
    })
}

fn version(value: &Value, at: ValuePath<'_>) -> Result<Version, CrdError> {
    let node = Node { value: Some(value), at };
    let name = node.child("name").required()?.to_owned();
    let holder = node.child("schema");
    let schema = holder.child("openAPIV3Schema");
    let Some(source) = schema.value else {
        return Err(schema.wrong("a schema"));
    };
    let schema = Schema::parse(source).map_err(|problem| CrdError::Schema {
        version: name.clone(),
        problem,
    })?;
    let subresources = node.child("subresources");
    let scale = subresources.child("scale");
    let columns = node.child("additionalPrinterColumns");
    let fields = node.child("selectableFields");
    let warning = node.child("deprecationWarning").text()?;
    Ok(Version {
        name,
        served: node.child("served").flag()?,
        storage: node.child("storage").flag()?,
        deprecated: node.child("deprecated").flag()?,
        deprecation_warning: (!warning.is_empty()).then(|| warning.to_owned()),
        schema,
        status: subresources.child("status").value.is_some(),
        scale: if scale.value.is_some() {
            Some(scale_paths(&scale)?)
        } else {
            None
        },
        columns: columns
            .items()?
            .iter()
            .enumerate()
            .map(|(index, value)| column(value, columns.at.item(index)))
            .collect::<Result<_, _>>()?,
        selectable_fields: fields
            .items()?
            .iter()
            .enumerate()
            .map(|(index, value)| selectable(value, fields.at.item(index)))
            .collect::<Result<_, _>>()?,
    })
}

fn scale_paths(node: &Node<'_>) -> Result<Scale, CrdError> {
    let selector = node.child("labelSelectorPath").text()?;
    Ok(Scale {
        spec_replicas: node.child("specReplicasPath").required()?.to_owned(),
        status_replicas: node.child("statusReplicasPath").required()?.to_owned(),
        label_selector: (!selector.is_empty()).then(|| selector.to_owned()),
    })
}

fn column(value: &Value, at: ValuePath<'_>) -> Result<Column, CrdError> {
    let node = Node { value: Some(value), at };
    Ok(Column {
        name: node.child("name").required()?.to_owned(),
        ty: node.child("type").required()?.to_owned(),
        format: node.child("format").text()?.to_owned(),
        description: node.child("description").text()?.to_owned(),
        json_path: node.child("jsonPath").required()?.to_owned(),
        priority: node.child("priority").integer()?,
    })
}

fn selectable(value: &Value, at: ValuePath<'_>) -> Result<String, CrdError> {
    Ok(Node { value: Some(value), at }.child("jsonPath").required()?.to_owned())
}

fn conversion(node: &Node<'_>) -> Result<Conversion, CrdError> {
    let strategy = node.child("strategy");
    match strategy.text()? {
        "" | "None" => Ok(Conversion::None),
        "Webhook" => {
            let webhook = node.child("webhook");
            Ok(Conversion::Webhook {
                client_config: webhook.child("clientConfig").value.cloned().unwrap_or(Value::Null),
                review_versions: webhook.child("conversionReviewVersions").texts()?,
            })
        }
        _ => Err(strategy.wrong("`None` or `Webhook`")),
    }
}

/// A value of the manifest with its path. Null counts as absent.
struct Node<'a> {
    value: Option<&'a Value>,
    at: ValuePath<'a>,
}

impl<'a> Node<'a> {
    fn child<'b>(&'b self, name: &'b str) -> Node<'b> {
        let map: Option<&Map<String, Value>> = self.value.and_then(Value::as_object);
        Node {
            value: map.and_then(|map| map.get(name)).filter(|value| !value.is_null()),
            at: self.at.field(name),
        }
    }

    fn wrong(&self, expected: &str) -> CrdError {
        CrdError::Malformed {
            field: self.at.bracketed(),
            expected: expected.to_owned(),
        }
    }

    fn text(&self) -> Result<&'a str, CrdError> {
        self.value
            .map_or(Ok(""), |value| value.as_str().ok_or_else(|| self.wrong("a string")))
    }

    fn required(&self) -> Result<&'a str, CrdError> {
        let text = self.text()?;
        if text.is_empty() {
            Err(self.wrong("set"))
        } else {
            Ok(text)
        }
    }

    fn flag(&self) -> Result<bool, CrdError> {
        self.value.map_or(Ok(false), |value| {
            value.as_bool().ok_or_else(|| self.wrong("true or false"))
        })
    }

    fn integer(&self) -> Result<i64, CrdError> {
        self.value
            .map_or(Ok(0), |value| value.as_i64().ok_or_else(|| self.wrong("an integer")))
    }

    fn items(&self) -> Result<&'a [Value], CrdError> {
        match self.value {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong("a list")),
        }
    }

    fn texts(&self) -> Result<Vec<String>, CrdError> {
        let texts = self
            .items()?
            .iter()
            .map(|item| item.as_str().map(String::from))
            .collect::<Option<_>>();
        texts.ok_or_else(|| self.wrong("a list of strings"))
    }
}
