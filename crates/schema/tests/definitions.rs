//! All available definitions: one in this file, those of the project, and with `FIXTURES` set those in its folder
//! `upstream`.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use metal3_schema::CustomResource;
use serde_json::{Map, Value, json};

const GADGET: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.org}
spec:
  group: example.org
  scope: Cluster
  names: {kind: Gadget, plural: gadgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          metadata: {type: object}
          spec:
            type: object
            properties:
              mode: {type: string, enum: [fast, slow], default: slow}
              parts: {type: array, items: {type: object, properties: {weight: {type: number, format: double}}}}
              labels: {type: object, additionalProperties: {type: string}}
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: example}
"#;

/// The definitions in a file of YAML documents. `FIXTURES` and the project's own manifests hold other kinds too.
fn definitions(text: &str) -> Vec<Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).expect("the file is YAML");
    documents
        .into_iter()
        .filter(|document| document["kind"] == "CustomResourceDefinition")
        .collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn all_definitions() -> Vec<(String, Value)> {
    // A test runs in the folder of its package. The path of the build may be that of another checkout.
    let shipped = Path::new("../../manifests");
    let mut files = files_below(shipped);
    assert!(
        !files.is_empty(),
        "the project ships its definitions in {}",
        shipped.display()
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "an environment variable names the folder of recorded manifests"
    )]
    if let Ok(fixtures) = std::env::var("FIXTURES") {
        let upstream = files_below(&Path::new(&fixtures).join("upstream"));
        assert!(!upstream.is_empty(), "FIXTURES={fixtures} has no upstream/*.yaml");
        files.extend(upstream);
    }
    let mut found: Vec<(String, Value)> = definitions(GADGET)
        .into_iter()
        .map(|crd| ("GADGET".to_owned(), crd))
        .collect();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the file is readable");
        // Templates with variables are no valid YAML.
        if text.contains("kind: CustomResourceDefinition") {
            found.extend(
                definitions(&text)
                    .into_iter()
                    .map(|crd| (file.display().to_string(), crd)),
            );
        }
    }
    found
}

/// A value with all declared fields.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let mut map = Map::new();
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                map.insert(name.clone(), sample(property));
            }
            if schema["additionalProperties"].is_object() {
                map.insert("some-key".into(), sample(&schema["additionalProperties"]));
            }
            map.into()
        }
        Some("array") => json!([sample(&schema["items"])]),
        Some("boolean") => true.into(),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        _ => "a".into(),
    }
}

#[test]
fn every_definition_is_valid_for_the_api_server() {
    for (file, manifest) in all_definitions() {
        let crd = CustomResource::parse(&manifest).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(crd.violations(), [], "{file}: {}", crd.kind);
        assert!(
            crd.versions.iter().any(|version| version.storage && version.served),
            "{file}: {}",
            crd.kind
        );
    }
}

#[test]
fn an_object_with_declared_fields_only_is_unchanged() {
    for (file, manifest) in all_definitions() {
        let crd = CustomResource::parse(&manifest).unwrap_or_else(|error| panic!("{file}: {error}"));
        for (version, raw) in crd
            .versions
            .iter()
            .zip(manifest["spec"]["versions"].as_array().into_iter().flatten())
        {
            let full = sample(&raw["schema"]["openAPIV3Schema"]);
            let mut object = full.clone();
            assert_eq!(
                version.schema.prune(&mut object),
                Vec::<String>::new(),
                "{file}: {} {}",
                crd.kind,
                version.name
            );
            version.schema.default(&mut object);
            assert_eq!(object, full, "{file}: {} {}", crd.kind, version.name);
        }
    }
}
