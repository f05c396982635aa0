//! A [`Definition`] as the document the API server reads. Members are sorted, so the text is the same on every run.

use serde_json::{Value, json};

use super::{Column, ConversionService, Definition, Version};

impl Definition {
    /// The `apiextensions.k8s.io/v1` document.
    #[must_use]
    pub fn manifest(&self) -> Value {
        let mut metadata = json!({ "name": self.name() });
        if let Value::Object(map) = &mut metadata {
            let annotations = self.all_annotations();
            if !annotations.is_empty() {
                map.insert("annotations".into(), pairs(&annotations));
            }
            if !self.labels.is_empty() {
                map.insert("labels".into(), pairs(self.labels));
            }
        }
        let mut spec = json!({
            "group": self.group,
            "names": self.names(),
            "scope": "Namespaced",
            "versions": self.versions.iter().map(version).collect::<Vec<_>>(),
        });
        if let (Value::Object(map), Some(service)) = (&mut spec, self.conversion) {
            map.insert("conversion".into(), conversion(service));
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": spec,
        })
    }

    fn all_annotations(&self) -> Vec<(&'static str, &'static str)> {
        let injected = self
            .conversion
            .map(|service| ("cert-manager.io/inject-ca-from", service.certificate));
        self.annotations.iter().copied().chain(injected).collect()
    }

    fn names(&self) -> Value {
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.singular,
        });
        if let Value::Object(map) = &mut names {
            if !self.short_names.is_empty() {
                map.insert("shortNames".into(), json!(self.short_names));
            }
            if !self.categories.is_empty() {
                map.insert("categories".into(), json!(self.categories));
            }
        }
        names
    }
}

fn pairs(entries: &[(&str, &str)]) -> Value {
    entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn conversion(service: ConversionService) -> Value {
    json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": { "name": service.name, "namespace": service.namespace, "path": "/convert" },
            },
            "conversionReviewVersions": ["v1", "v1beta1"],
        },
    })
}

fn version(version: &Version) -> Value {
    let mut document = json!({
        "name": version.name,
        "served": true,
        "storage": version.storage,
        "schema": { "openAPIV3Schema": (version.schema)() },
    });
    if let Value::Object(map) = &mut document {
        if version.deprecated {
            map.insert("deprecated".into(), true.into());
        }
        if version.status_subresource {
            map.insert("subresources".into(), json!({ "status": {} }));
        }
        if version.scale_subresource {
            let scale = json!({
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            });
            map.insert("subresources".into(), json!({ "scale": scale, "status": {} }));
        }
        if !version.columns.is_empty() {
            map.insert(
                "additionalPrinterColumns".into(),
                version.columns.iter().map(column).collect(),
            );
        }
    }
    document
}

fn column(column: &Column) -> Value {
    let mut document = json!({ "name": column.name, "jsonPath": column.path, "type": column.kind });
    if let Value::Object(map) = &mut document {
        if column.priority != 0 {
            map.insert("priority".into(), column.priority.into());
        }
        if !column.description.is_empty() {
            map.insert("description".into(), column.description.into());
        }
    }
    document
}
