//! Names, labels, versions and columns.

use serde_json::{Value, json};

use super::super::difference::Direction::{self, Narrower, Other, Wider};
use super::super::{compare, definition};
use super::{Row, outline, row};

const THING: &str = r#"
metadata:
  name: things.example.com
  labels: { contract: v1 }
  annotations: { kept: "yes", controller-gen.kubebuilder.io/version: v1 }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: Thing, listKind: ThingList, plural: things, singular: thing, shortNames: [th], categories: [all] }
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: { caBundle: abc, service: { name: s, namespace: n, path: /convert } }
  versions:
  - name: v1
    served: true
    storage: true
    deprecated: false
    deprecationWarning: old
    subresources: { status: {}, scale: { specReplicasPath: .spec.replicas } }
    selectableFields: [{ jsonPath: .spec.a }]
    additionalPrinterColumns:
    - { name: Age, jsonPath: .metadata.creationTimestamp, type: date, description: upstream }
    - { name: Ready, jsonPath: .status.ready, type: string, priority: 0 }
    schema: { openAPIV3Schema: { type: object, properties: { status: { type: object } } } }
"#;

fn thing() -> Value {
    serde_saphyr::from_str(THING).unwrap()
}

/// Differences when the value of the project is replaced, and when the value of upstream is replaced.
fn replaced(pointer: &str, value: &Value) -> (Vec<Row>, Vec<Row>) {
    let mut changed = thing();
    *changed.pointer_mut(pointer).unwrap() = value.clone();
    (
        outline(&definition::compare(&thing(), &changed).0),
        outline(&definition::compare(&changed, &thing()).0),
    )
}

/// Pointer and new value; path and aspect of the difference; its direction when the project changes, when upstream changes.
const CASES: &str = r#"
- [/spec/scope, Cluster, "", scope, narrower, narrower]
- [/spec/group, example.org, "", group, narrower, narrower]
- [/spec/names/plural, thingies, "", plural, narrower, narrower]
- [/spec/names/singular, t, "", singular, narrower, narrower]
- [/spec/names/listKind, Things, "", listKind, narrower, narrower]
- [/spec/names/shortNames, [], th, short-name, narrower, wider]
- [/spec/names/categories, [], all, category, narrower, wider]
- [/metadata/labels, {}, contract, label, narrower, wider]
- [/metadata/labels/contract, v2, contract, label, narrower, narrower]
- [/metadata/annotations, {}, kept, annotation, narrower, wider]
- [/metadata/annotations/kept, "no", kept, annotation, narrower, narrower]
- [/spec/conversion, { strategy: None }, "", conversion, other, other]
- [/spec/conversion/webhook/conversionReviewVersions, [v2], "", conversion, other, other]
- [/spec/conversion/webhook/clientConfig/service/name, t, "", conversion, other, other]
- [/spec/versions, [], "", version, narrower, wider]
- [/spec/versions/0/served, false, "", served, narrower, wider]
- [/spec/versions/0/storage, false, "", storage, other, other]
- [/spec/versions/0/deprecated, true, "", deprecated, other, other]
- [/spec/versions/0/deprecationWarning, older, "", deprecation-warning, other, other]
- [/spec/versions/0/subresources, { scale: { specReplicasPath: .spec.replicas } }, status, subresource, narrower, narrower]
- [/spec/versions/0/subresources, { status: {} }, scale, subresource, narrower, wider]
- [/spec/versions/0/selectableFields, [], .spec.a, selectable-field, narrower, wider]
- [/spec/versions/0/additionalPrinterColumns/1, null, Ready, column, narrower, wider]
- [/spec/versions/0/additionalPrinterColumns/1/priority, 1, Ready, column, other, other]
- [/spec/versions/0/additionalPrinterColumns/1/jsonPath, .x, Ready, column, other, other]
- [/spec/versions/0/additionalPrinterColumns/1/type, boolean, Ready, column, other, other]
- [/spec/versions/0/schema, {}, "", schema, narrower, narrower]
"#;

#[test]
fn each_property_missing_on_one_side_is_reported() {
    type Case = (String, Value, String, String, String, String);
    let cases: Vec<Case> = serde_saphyr::from_str(CASES).unwrap();
    let direction = |name: &str| -> Direction {
        let all = [Narrower, Wider, Other];
        all.into_iter().find(|direction| direction.to_string() == name).unwrap()
    };
    for (pointer, value, path, aspect, project, upstream) in cases {
        let (project_changed, upstream_changed) = replaced(&pointer, &value);
        assert_eq!(
            project_changed,
            [row(&path, &aspect, direction(&project))],
            "{pointer}: project {value}"
        );
        assert_eq!(
            upstream_changed,
            [row(&path, &aspect, direction(&upstream))],
            "{pointer}: upstream {value}"
        );
    }
}

#[test]
fn status_that_only_the_project_has_is_wider() {
    let mut upstream = thing();
    let version = &mut upstream["spec"]["versions"][0];
    version["subresources"].as_object_mut().unwrap().remove("status");
    version["schema"]["openAPIV3Schema"] = json!({ "type": "object", "properties": {} });
    let found = outline(&definition::compare(&upstream, &thing()).0);
    assert_eq!(
        found,
        [row("status", "property", Wider), row("status", "subresource", Wider)]
    );
}

#[test]
fn status_that_upstream_keeps_without_naming_it_would_be_dropped() {
    let mut upstream = thing();
    let version = &mut upstream["spec"]["versions"][0];
    version["subresources"].as_object_mut().unwrap().remove("status");
    version["schema"]["openAPIV3Schema"] = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let found = outline(&definition::compare(&upstream, &thing()).0);
    assert!(found.contains(&row("status", "subresource", Narrower)), "{found:?}");
}

#[test]
fn the_order_of_columns_is_compared() {
    let columns = "/spec/versions/0/additionalPrinterColumns";
    let mut reversed = thing().pointer(columns).unwrap().clone();
    reversed.as_array_mut().unwrap().reverse();
    let expected = vec![row("", "column-order", Other)];
    assert_eq!(replaced(columns, &reversed), (expected.clone(), expected));
}

#[test]
fn generator_version_and_ca_bundle_are_not_compared() {
    let rows = [
        (
            "/metadata/annotations/controller-gen.kubebuilder.io~1version",
            json!("v2"),
        ),
        (
            "/spec/versions/0/additionalPrinterColumns/0/description",
            json!("project"),
        ),
        ("/spec/conversion/webhook/clientConfig/caBundle", json!("xyz")),
    ];
    for (pointer, value) in rows {
        assert_eq!(replaced(pointer, &value), (vec![], vec![]), "{pointer}");
    }
}

#[test]
fn kinds_are_found_missing_and_added() {
    let mut other = thing();
    other["spec"]["names"]["kind"] = json!("Other");
    let one = [("things".to_owned(), thing())].into();
    let both = [("things".to_owned(), thing()), ("others".to_owned(), other)].into();
    let found = |upstream, project| outline(&compare(upstream, project).differences);
    assert_eq!(found(&both, &one), [row("", "kind", Narrower)]);
    assert_eq!(found(&one, &both), [row("", "kind", Wider)]);
}
