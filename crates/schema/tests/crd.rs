//! A whole definition: parsing it, and validating objects of its kind.

use metal3_schema::{Conversion, CustomResource, FieldError, Scope};
use serde_json::{Value, json};

fn manifest() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["w"], "categories": ["all"]},
            "conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": {"service": {"name": "s", "namespace": "n"}}, "conversionReviewVersions": ["v1"],
            }},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}],
                    "selectableFields": [{"jsonPath": ".spec.size"}],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
                        "status": {"type": "object", "properties": {
                            "phase": {"type": "string", "enum": ["Ready"]},
                            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                        }},
                    }}}},
                {"name": "v1alpha1", "served": false, "storage": false, "deprecated": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
            ],
        },
    })
}

fn widget(size: i64) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n", "resourceVersion": "1"}, "spec": {"size": size}})
}

fn lines(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

#[test]
fn a_definition_is_parsed_in_full() {
    let crd = CustomResource::parse(&manifest()).unwrap();
    assert_eq!(
        (crd.group.as_str(), crd.kind.as_str(), crd.plural.as_str()),
        ("example.org", "Widget", "widgets")
    );
    assert_eq!(
        (crd.list_kind.as_str(), crd.singular.as_str()),
        ("WidgetList", "widget")
    );
    assert_eq!(
        (crd.short_names.concat(), crd.categories.concat(), crd.scope),
        ("w".into(), "all".into(), Scope::Namespaced)
    );
    let v1 = crd.versions.iter().find(|version| version.storage).unwrap();
    assert_eq!(
        (v1.name.as_str(), v1.served, v1.status, v1.scale.is_none()),
        ("v1", true, true, true)
    );
    assert_eq!(
        (v1.columns[0].json_path.as_str(), v1.columns[0].priority),
        (".metadata.creationTimestamp", 0)
    );
    assert_eq!(v1.selectable_fields, [".spec.size"]);
    let old = crd.version("v1alpha1").unwrap();
    assert_eq!((old.served, old.deprecated, old.status), (false, true, false));
    assert!(matches!(&crd.conversion, Conversion::Webhook { review_versions, .. } if review_versions == &["v1"]));
    assert_eq!(crd.violations(), []);
}

#[test]
fn optional_members_of_a_version_are_parsed() {
    let mut full = manifest();
    let version = &mut full["spec"]["versions"][0];
    version["deprecationWarning"] = json!("use v2");
    version["additionalPrinterColumns"][0]["priority"] = json!(1);
    version["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector",
    });
    let crd = CustomResource::parse(&full).unwrap();
    let version = crd.version("v1").unwrap();
    assert_eq!(version.deprecation_warning.as_deref(), Some("use v2"));
    assert_eq!(version.columns[0].priority, 1);
    let scale = version.scale.as_ref().unwrap();
    assert_eq!(scale.label_selector.as_deref(), Some(".status.selector"));
    assert_eq!(
        (scale.spec_replicas.as_str(), scale.status_replicas.as_str()),
        (".spec.size", ".status.size")
    );
    let mut bare = full;
    bare["spec"]["versions"][0]["deprecationWarning"] = json!("");
    bare["spec"]["versions"][0]["subresources"]["scale"]["labelSelectorPath"] = json!("");
    let crd = CustomResource::parse(&bare).unwrap();
    let version = crd.version("v1").unwrap();
    assert_eq!(version.deprecation_warning, None);
    assert_eq!(version.scale.as_ref().unwrap().label_selector, None);
}

#[test]
fn an_invalid_definition_is_rejected_with_the_field() {
    let refusal = |pointer: &str, value: Value| {
        let mut broken = manifest();
        *broken.pointer_mut(pointer).unwrap() = value;
        CustomResource::parse(&broken).unwrap_err().to_string()
    };
    assert_eq!(
        refusal("/kind", json!("Pod")),
        "kind: must be `CustomResourceDefinition`"
    );
    assert_eq!(refusal("/spec/group", json!("")), "spec.group: must be set");
    assert_eq!(
        refusal("/spec/scope", json!("Both")),
        "spec.scope: must be `Namespaced` or `Cluster`"
    );
    assert_eq!(
        refusal("/spec/versions/0/served", json!(1)),
        "spec.versions[0].served: must be true or false"
    );
    assert_eq!(
        refusal("/spec/versions/1/schema", json!(null)),
        "spec.versions[1].schema.openAPIV3Schema: must be a schema"
    );
    assert_eq!(
        refusal("/spec/versions/0/schema/openAPIV3Schema", json!({"$ref": "x"})),
        "version v1: openAPIV3Schema: `$ref` is not supported; write the schema out where it is used"
    );
}

#[test]
fn one_version_is_stored_and_names_are_distinct() {
    let mut twice = manifest();
    twice["spec"]["versions"][1]["name"] = json!("v1");
    twice["spec"]["versions"][1]["storage"] = json!(true);
    assert_eq!(
        lines(&CustomResource::parse(&twice).unwrap().violations()),
        [
            "spec.versions[1].name: Duplicate value: \"v1\"",
            "spec.versions: Invalid value: [\"v1\",\"v1\"]: must have exactly one version marked as storage version",
        ]
    );
}

#[test]
fn an_object_of_another_type_has_no_further_errors() {
    let crd = CustomResource::parse(&manifest()).unwrap();
    let v1 = crd.version("v1").unwrap();
    assert_eq!(
        lines(&crd.create_errors(v1, &json!({"kind": "Gadget", "apiVersion": "v1"}))),
        [
            "kind: Invalid value: \"Gadget\": must be Widget",
            "apiVersion: Invalid value: \"v1\": must be example.org/v1",
        ]
    );
}

#[test]
fn create_update_and_status_update_check_what_they_change() {
    let crd = CustomResource::parse(&manifest()).unwrap();
    let v1 = crd.version("v1").unwrap();
    let bad_size = "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1";
    assert_eq!(lines(&crd.create_errors(v1, &widget(0))), [bad_size]);
    assert_eq!(lines(&crd.update_errors(v1, &widget(0), &widget(1))), [bad_size]);
    assert_eq!(crd.update_errors(v1, &widget(0), &widget(0)), []);

    let mut done = widget(0);
    done["status"] = json!({"phase": "Done", "set": ["a", "a"]});
    assert_eq!(
        lines(&crd.status_errors(v1, &done, &widget(0))),
        [
            "status.phase: Unsupported value: \"Done\": supported values: \"Ready\"",
            "status.set[1]: Duplicate value: \"a\"",
        ]
    );
    assert_eq!(crd.status_errors(v1, &done, &done), []);
    let mut shapeless = widget(1);
    shapeless["status"] = json!("ok");
    assert_eq!(
        lines(&crd.status_errors(v1, &shapeless, &widget(1))),
        ["status: Invalid value: \"string\":  in body must be of type object: \"string\""]
    );
}
