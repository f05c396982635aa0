//! Metadata of objects and of embedded resources.

use metal3_schema::{FieldError, Schema, Scope, metadata_errors, metadata_update_errors};
use serde_json::{Value, json};

fn lines(errors: &[FieldError]) -> Vec<String> {
    errors
        .iter()
        .map(|error| error.to_string().split(" (").next().unwrap_or_default().to_owned())
        .collect()
}

fn create(metadata: Value, scope: Scope) -> Vec<String> {
    lines(&metadata_errors(&json!({"metadata": metadata}), scope))
}

fn update(metadata: Value, old: Value) -> Vec<String> {
    lines(&metadata_update_errors(
        &json!({"metadata": metadata}),
        &json!({"metadata": old}),
    ))
}

#[test]
fn an_object_has_a_name_and_if_namespaced_a_namespace() {
    assert_eq!(
        create(json!({"name": "a.b", "namespace": "n"}), Scope::Namespaced),
        Vec::<String>::new()
    );
    assert_eq!(
        create(json!({}), Scope::Namespaced),
        [
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value",
        ]
    );
    assert_eq!(
        create(json!({"name": "a", "namespace": "n"}), Scope::Cluster),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
    assert_eq!(
        create(json!({"name": "a_b", "namespace": "n.m"}), Scope::Namespaced),
        [
            "metadata.name: Invalid value: \"a_b\": a lowercase RFC 1123 subdomain must consist of lower case \
             alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
            "metadata.namespace: Invalid value: \"n.m\": must not contain dots",
        ]
    );
}

#[test]
fn labels_annotations_and_finalizers_follow_their_grammar() {
    assert_eq!(
        create(
            json!({"name": "a", "labels": {"a/": "-"}, "annotations": {"B": "any ☂"}, "finalizers": ["/x"]}),
            Scope::Cluster
        ),
        [
            "metadata.labels: Invalid value: \"a/\": name part must be non-empty",
            "metadata.labels: Invalid value: \"a/\": name part must consist of alphanumeric characters, '-', '_' or \
             '.', and must start and end with an alphanumeric character",
            "metadata.labels: Invalid value: \"-\": a valid label must be an empty string or consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "metadata.finalizers: Invalid value: \"/x\": prefix part must be non-empty",
        ]
    );
    assert_eq!(
        create(
            json!({"name": "a", "annotations": {"a": "x".repeat(262_144)}}),
            Scope::Cluster
        ),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
    assert_eq!(
        create(
            json!({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}),
            Scope::Cluster
        ),
        [
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
          foregroundDeletion cannot be both set"
        ]
    );
}

#[test]
fn owners_are_complete_and_at_most_one_is_the_controller() {
    let owner =
        |name: &str| json!({"apiVersion": "example.org/v1", "kind": "W", "name": name, "uid": "u", "controller": true});
    assert_eq!(
        create(json!({"name": "a", "ownerReferences": [owner("x")]}), Scope::Cluster),
        Vec::<String>::new()
    );
    assert_eq!(
        create(
            json!({"name": "a", "ownerReferences": [{"kind": "W", "apiVersion": "a/"}]}),
            Scope::Cluster
        ),
        [
            "metadata.ownerReferences.apiVersion: Invalid value: \"a/\": version must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ]
    );
    let two = create(
        json!({"name": "a", "ownerReferences": [owner("x"), owner("y")]}),
        Scope::Cluster,
    );
    assert!(
        two.len() == 1 && two.concat().ends_with("Found \"true\" in references for W/x and W/y"),
        "{two:?}"
    );
}

#[test]
fn an_update_keeps_identity_and_adds_no_finalizer_while_deleting() {
    let old = json!({"name": "a", "uid": "u", "generation": 3, "deletionTimestamp": "t", "finalizers": ["a.b/c"]});
    assert_eq!(
        update(
            json!({"name": "b", "generation": 2, "deletionTimestamp": "t", "finalizers": ["a.b/c", "a.b/d"]}),
            old.clone()
        ),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
             finalizers []string{\"a.b/d\"}",
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
            "metadata.generation: Invalid value: 2: must not be decremented",
            "metadata.name: Invalid value: \"b\": field is immutable",
            "metadata.uid: Invalid value: \"\": field is immutable",
        ]
    );
    let mut same = old.clone();
    same["resourceVersion"] = json!("7");
    assert_eq!(update(same, old), Vec::<String>::new());
    let empty = json!({"name": "a", "namespace": "", "uid": null, "resourceVersion": "7"});
    assert_eq!(update(empty, json!({"name": "a"})), Vec::<String>::new());
    assert_eq!(
        update(json!({"resourceVersion": "7"}), json!({"name": "a", "namespace": "n"})),
        [
            "metadata.name: Invalid value: \"\": field is immutable",
            "metadata.namespace: Invalid value: \"\": field is immutable",
        ]
    );
}

#[test]
fn metadata_of_the_wrong_shape_is_one_error_that_names_the_field() {
    assert_eq!(
        create(json!([]), Scope::Cluster),
        ["metadata: Invalid value: []: must be an object"]
    );
    assert_eq!(
        create(json!({"labels": {"a": 1}}), Scope::Cluster),
        ["metadata: Invalid value: {\"labels\":{\"a\":1}}: labels must be a map of strings"]
    );
    assert_eq!(
        create(json!({"ownerReferences": [{"controller": "yes"}]}), Scope::Cluster).len(),
        1
    );
}

#[test]
fn embedded_resources_have_a_type_and_valid_metadata() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }}}}))
    .unwrap();
    let errors = |template: Value| lines(&schema.validate(&json!({"spec": {"template": template}})));
    assert_eq!(
        errors(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}})),
        Vec::<String>::new()
    );
    assert_eq!(
        errors(json!({"apiVersion": "a/b/c", "metadata": {"name": "a/b"}})),
        [
            "spec.template.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
            "spec.template.kind: Required value",
            "spec.template.metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ]
    );
    assert_eq!(
        errors(json!({"apiVersion": "", "kind": "1"})),
        [
            "spec.template.apiVersion: Invalid value: \"\": must not be empty",
            "spec.template.kind: Invalid value: \"1\": may have mixed case, but should otherwise match: a DNS-1035 \
             label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and \
             end with an alphanumeric character",
        ]
    );
}

#[test]
fn metadata_at_the_limits_is_accepted() {
    for metadata in [
        json!({"name": "a", "generation": 1}),
        json!({"name": "a", "annotations": {"a": "x".repeat(262_143)}}),
        json!({"name": "a", "finalizers": ["orphan"]}),
        json!({"name": "a", "finalizers": ["foregroundDeletion"]}),
        json!({"name": "a", "managedFields": [
            {"operation": "Apply", "fieldsType": "FieldsV1", "manager": "m".repeat(128)},
            {"operation": "Update", "subresource": "s".repeat(256)},
        ]}),
    ] {
        assert_eq!(create(metadata, Scope::Cluster), Vec::<String>::new());
    }
    assert_eq!(
        create(json!({"name": "a", "generation": -1}), Scope::Cluster),
        ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]
    );
}

#[test]
fn entries_of_managed_fields_have_an_operation() {
    let entry = json!({
        "operation": "Patch", "fieldsType": "V2", "manager": "m".repeat(129), "subresource": "s".repeat(257),
    });
    assert_eq!(
        create(
            json!({"name": "a", "managedFields": [{"operation": "Apply"}, entry]}),
            Scope::Cluster
        ),
        [
            "metadata.managedFields[1].operation: Invalid value: \"Patch\": must be `Apply` or `Update`",
            "metadata.managedFields[1].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
            "metadata.managedFields[1].manager: Too long: may not be more than 128 bytes",
            "metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes",
        ]
    );
}

#[test]
fn an_event_of_the_core_group_owns_nothing() {
    let owned = |version: &str, kind: &str| {
        let owner = json!({"apiVersion": version, "kind": kind, "name": "o", "uid": "u"});
        create(json!({"name": "a", "ownerReferences": [owner]}), Scope::Cluster)
    };
    for (version, kind) in [("v1", "Pod"), ("events.k8s.io/v1", "Event"), ("apps/v1", "ReplicaSet")] {
        assert_eq!(owned(version, kind), Vec::<String>::new(), "{version} {kind}");
    }
    let event = owned("v1", "Event").concat();
    assert!(
        event.ends_with("/v1, Kind=Event is disallowed from being an owner"),
        "{event}"
    );
    assert_eq!(
        owned("a/b/c", "K"),
        ["metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty"]
    );
}

#[test]
fn embedded_resources_in_a_list_are_checked_and_need_no_name() {
    let schema = Schema::parse(
        &json!({"type": "object", "properties": {"spec": {"type": "array", "items": {
            "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
        }}}}),
    )
    .unwrap();
    let sound = json!({"apiVersion": "apps/v1", "kind": "K", "metadata": {"generateName": "a-"}});
    let wrong = json!({"apiVersion": "v1", "kind": "K", "metadata": {"generateName": "a/"}});
    assert_eq!(
        lines(&schema.validate(&json!({"spec": [sound, wrong]}))),
        ["spec[1].metadata.generateName: Invalid value: \"a/\": may not contain '/'"]
    );
}
