//! Properties of the conversion of all nine kinds.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a helper of a test fails the test"
)]

mod admitted;
mod documents;
#[path = "../generator/mod.rs"]
mod generator;
mod normal;

use documents::Draw;
use kube_core::Resource;
use metal3_api::infrastructure::conversion::{Hub, Version, convert, hub_from_spoke, repeated, spoke_from_hub};
use metal3_api::infrastructure::names::CONVERSION_DATA_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3ClusterTemplate, Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine,
    Metal3MachineTemplate, Metal3Remediation, Metal3RemediationTemplate,
};
use metal3_api::kind::Kind;
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema_of<K: Kind>() -> Value {
    let definitions = metal3_api::infrastructure::definitions();
    let definition = definitions
        .iter()
        .find(|definition| definition.kind == K::KIND)
        .unwrap();
    let version = definition
        .versions
        .iter()
        .find(|version| version.name == K::VERSION)
        .unwrap();
    (version.schema)()
}

fn draw<K: Kind>(seed: u64, schema: &Value) -> K {
    let drawn = documents::object(&mut Draw::new(seed), K::KIND, K::VERSION, schema);
    serde_json::from_value(drawn).unwrap()
}

fn without_annotation(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove(CONVERSION_DATA_ANNOTATION);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

/// Seeds of failures are printed and not written to a file.
fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: 10_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn stored_objects_survive<H: Hub>() {
    let schema = schema_of::<H>();
    proptest!(cases(), |(seed: u64)| {
        let stored: H = draw(seed, &schema);
        let shown = spoke_from_hub(&stored).unwrap();
        prop_assert_eq!(hub_from_spoke::<H>(&shown).unwrap(), stored);
    });
}

fn written_objects_become_normal<H: Hub>() {
    let schema = schema_of::<H::Spoke>();
    proptest!(cases(), |(seed: u64)| {
        let written: H::Spoke = draw(seed, &schema);
        let normal = normal::normal(H::KIND, serde_json::to_value(&written).unwrap());
        let normal: H::Spoke = serde_json::from_value(normal).unwrap();
        let mut back = spoke_from_hub(&hub_from_spoke::<H>(&written).unwrap()).unwrap();
        let annotations = back.meta_mut().annotations.get_or_insert_default();
        prop_assert!(annotations.remove(CONVERSION_DATA_ANNOTATION).is_some());
        if annotations.is_empty() {
            back.meta_mut().annotations = None;
        }
        prop_assert_eq!(back, normal);
    });
}

/// Both round trips of one kind, each over 10,000 objects. A failure prints its seed.
macro_rules! round_trips {
    ($name:ident, $kind:ident) => {
        mod $name {
            #[test]
            fn stored_object_survives_a_round_trip_through_the_older_version() {
                super::stored_objects_survive::<super::$kind>();
            }

            #[test]
            fn older_object_survives_a_round_trip_in_normal_form() {
                super::written_objects_become_normal::<super::$kind>();
            }
        }
    };
}

round_trips!(cluster, Metal3Cluster);
round_trips!(cluster_template, Metal3ClusterTemplate);
round_trips!(data, Metal3Data);
round_trips!(data_claim, Metal3DataClaim);
round_trips!(data_template, Metal3DataTemplate);
round_trips!(machine, Metal3Machine);
round_trips!(machine_template, Metal3MachineTemplate);
round_trips!(remediation, Metal3Remediation);
round_trips!(remediation_template, Metal3RemediationTemplate);

#[test]
fn every_kind_of_the_group_is_converted_both_ways() {
    let definitions = metal3_api::infrastructure::definitions();
    assert_eq!(definitions.len(), 9);
    for definition in definitions {
        let (kind, group) = (definition.kind, definition.group);
        for (from, to) in [
            (Version::V1Beta1, Version::V1Beta2),
            (Version::V1Beta2, Version::V1Beta1),
        ] {
            let version = definition.versions.iter().find(|version| version.name == from.name());
            let schema = (version.unwrap().schema)();
            let drawn = documents::object(&mut Draw::new(1), kind, from.name(), &schema);
            let converted = convert(&drawn, to).unwrap();
            assert_eq!(converted["kind"], kind);
            assert_eq!(converted["apiVersion"], format!("{group}/{}", to.name()));
        }
    }
}

fn machine(version: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("infrastructure.cluster.x-k8s.io/{version}"), "kind": "Metal3Machine",
        "metadata": { "name": "m", "namespace": "metal" }, "spec": spec,
    })
}

#[test]
fn a_checksum_added_by_an_older_client_is_kept() {
    let stored = machine(
        "v1beta2",
        json!({ "image": { "url": "http://i/a" }, "metal3ClusterRef": { "name": "c" } }),
    );
    let mut shown = convert(&stored, Version::V1Beta1).unwrap();
    shown["spec"]["image"]["checksum"] = json!("http://i/a.sum");
    let back = convert(&shown, Version::V1Beta2).unwrap();
    assert_eq!(
        back["spec"],
        json!({
            "image": { "url": "http://i/a", "checksum": "http://i/a.sum" },
            "metal3ClusterRef": { "name": "c" },
        })
    );
}

#[test]
fn a_selector_edited_by_an_older_client_keeps_its_hidden_namespace() {
    let selector = json!({ "matchLabels": { "rack": "1" }, "inNamespace": "hosts" });
    let stored = machine("v1beta2", json!({ "hostSelector": selector }));
    let mut shown = convert(&stored, Version::V1Beta1).unwrap();
    assert_eq!(shown["spec"]["hostSelector"], json!({ "matchLabels": { "rack": "1" } }));
    shown["spec"]["hostSelector"]["matchLabels"]["rack"] = json!("2");
    let back = convert(&shown, Version::V1Beta2).unwrap();
    assert_eq!(
        back["spec"]["hostSelector"],
        json!({ "matchLabels": { "rack": "2" }, "inNamespace": "hosts" })
    );
}

fn data_template(spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3DataTemplate",
        "metadata": { "name": "t", "namespace": "metal" }, "spec": spec, "status": status,
    })
}

#[test]
fn tags_and_routes_that_occur_twice_are_kept() {
    let vlan = |id: &str| json!({ "id": id, "macAddress": { "string": "x" }, "vlanID": 10, "vlanLink": "e" });
    let route = |hop: &str| json!({ "network": "10.0.0.0", "prefix": 8, "gateway": { "string": hop } });
    let written = data_template(
        json!({ "clusterName": "c", "networkData": {
            "links": { "vlans": [vlan("a"), vlan("b")] },
            "networks": { "ipv4DHCP": [{ "id": "n", "link": "a", "routes": [route("10.0.0.1"), route("10.0.0.2")] }] },
        } }),
        json!({}),
    );
    let stored = convert(&written, Version::V1Beta2).unwrap();
    let data = &stored["spec"]["networkData"];
    assert_eq!(data["links"]["vlans"].as_array().unwrap().len(), 2);
    assert_eq!(data["networks"]["ipv4DHCP"][0]["routes"].as_array().unwrap().len(), 2);
    let back = without_annotation(convert(&stored, Version::V1Beta1).unwrap());
    assert_eq!(back["spec"], written["spec"]);
    let template: Metal3DataTemplate = serde_json::from_value(stored).unwrap();
    assert_eq!(
        repeated(&template),
        [
            "spec.networkData.links.vlans[1]",
            "spec.networkData.networks.ipv4DHCP[0].routes[1]",
        ]
    );
}

#[test]
fn more_than_512_indexes_are_kept_in_order_of_number() {
    let indexes: serde_json::Map<String, Value> = (0..600).map(|i| (format!("claim-{i}"), i.into())).collect();
    let written = data_template(json!({ "clusterName": "c" }), json!({ "indexes": indexes }));
    let stored = convert(&written, Version::V1Beta2).unwrap();
    let list = stored["status"]["indexes"].as_array().unwrap();
    assert_eq!(list.len(), 600);
    assert_eq!(list[599], json!({ "name": "claim-599", "index": 599 }));
    let back = convert(&stored, Version::V1Beta1).unwrap();
    assert_eq!(back["status"], written["status"]);
}

#[test]
fn a_number_that_is_too_large_is_rejected_with_its_path() {
    let index = |offset: i64| {
        data_template(
            json!({ "clusterName": "c", "metaData": { "indexes": [{ "key": "a" }, { "key": "b", "offset": offset }] } }),
            json!({}),
        )
    };
    let error = convert(&index(5_000_000_000), Version::V1Beta2).unwrap_err();
    assert_eq!(error.field, "spec.metaData.indexes[1].offset");
    assert!(error.to_string().contains("32 bits"), "{error}");
    assert!(convert(&index(2_147_483_647), Version::V1Beta2).is_ok());
}

#[test]
fn an_annotation_without_an_object_of_the_kind_is_rejected_with_a_cure() {
    for content in [
        "{not json",
        "[]",
        "3",
        "",
        r#"{"kind":"Metal3Cluster"}"#,
        r#"{"spec":{"image":7}}"#,
    ] {
        let mut written = machine("v1beta1", json!({}));
        written["metadata"]["annotations"] = json!({ CONVERSION_DATA_ANNOTATION: content });
        let error = convert(&written, Version::V1Beta2).unwrap_err();
        assert!(error.field.contains(CONVERSION_DATA_ANNOTATION), "{content}: {error}");
        assert!(error.cure.contains("remove the annotation"), "{content}: {error}");
    }
}

#[test]
fn the_annotation_of_the_go_manager_is_read() {
    let mut written = machine(
        "v1beta1",
        json!({ "hostSelector": {}, "image": { "url": "http://i/a", "checksumType": "", "format": "" } }),
    );
    let content = r#"{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"Metal3Machine","spec":{"image":{"url":"http://i/a"}},"status":{"initialization":{"provisioned":false}}}"#;
    written["metadata"]["annotations"] = json!({ CONVERSION_DATA_ANNOTATION: content });
    let stored = convert(&written, Version::V1Beta2).unwrap();
    assert_eq!(stored["spec"], json!({ "image": { "url": "http://i/a" } }));
    assert_eq!(stored["status"], json!({ "initialization": { "provisioned": false } }));
    assert_eq!(stored["metadata"], json!({ "name": "m", "namespace": "metal" }));
}

#[test]
fn an_image_that_the_go_manager_stored_without_location_is_read_and_not_shown() {
    let stored = machine(
        "v1beta2",
        json!({ "customDeploy": { "method": "install" }, "image": { "checksum": "" } }),
    );
    let shown = convert(&stored, Version::V1Beta1).unwrap();
    assert_eq!(shown["spec"], json!({ "customDeploy": { "method": "install" } }));
    assert_eq!(convert(&shown, Version::V1Beta2).unwrap()["spec"], stored["spec"]);
}

#[test]
fn metadata_is_passed_through_unchanged() {
    let mut stored = machine("v1beta2", json!({}));
    stored["metadata"]["somethingNew"] = json!({ "unknown": [1.5, null] });
    stored["metadata"]["annotations"] = json!({ "keep": "me" });
    let shown = convert(&stored, Version::V1Beta1).unwrap();
    assert_eq!(without_annotation(shown)["metadata"], stored["metadata"]);
}

#[test]
fn a_document_that_is_no_object_of_the_group_is_rejected() {
    let with = |member: &str, value: Value| {
        let mut document = machine("v1beta1", json!({}));
        document[member] = value;
        document
    };
    for (document, field) in [
        (json!(null), "apiVersion"),
        (json!({ "apiVersion": "v1", "kind": "Secret" }), "apiVersion"),
        (
            json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha5" }),
            "apiVersion",
        ),
        (
            json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Secret" }),
            "kind",
        ),
        (machine("v1beta1", json!(7)), "spec"),
        (machine("v1beta1", json!({ "image": 7 })), "spec"),
        (with("status", json!({ "ready": "yes" })), "status"),
        (
            with("metadata", json!({ "annotations": { CONVERSION_DATA_ANNOTATION: 7 } })),
            "metadata",
        ),
    ] {
        let error = convert(&document, Version::V1Beta2).unwrap_err();
        assert_eq!(error.field, field, "{document}");
    }
}

/// Any member may be of any type: the result is an object or an error, never a panic.
fn wrong_values_do_not_panic<H: Hub>() {
    let schemas = [schema_of::<H::Spoke>(), schema_of::<H>()];
    let wrong = [
        json!(null),
        json!(-1),
        json!(9e99),
        json!("x"),
        json!([[]]),
        json!({ "": {} }),
    ];
    let config = ProptestConfig { cases: 500, ..cases() };
    proptest!(config, |(seed: u64, place in 0_usize..100, choice in 0_usize..6)| {
        let [older, stored] = &schemas;
        for (version, schema, to) in [("v1beta1", older, Version::V1Beta2), ("v1beta2", stored, Version::V1Beta1)] {
            let mut document = documents::object(&mut Draw::new(seed), H::KIND, version, schema);
            put(&mut document, &wrong[choice], &mut place.clone());
            let _ = convert(&document, to);
        }
    });
}

#[test]
fn a_document_with_a_wrong_value_does_not_panic() {
    wrong_values_do_not_panic::<Metal3Cluster>();
    wrong_values_do_not_panic::<Metal3DataTemplate>();
    wrong_values_do_not_panic::<Metal3Machine>();
    wrong_values_do_not_panic::<Metal3RemediationTemplate>();
}

/// Replaces the value that is `left` steps away in document order.
fn put(value: &mut Value, wrong: &Value, left: &mut usize) {
    if *left == 0 {
        *value = wrong.clone();
    }
    *left = left.wrapping_sub(1);
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| put(value, wrong, left)),
        Value::Array(items) => items.iter_mut().for_each(|value| put(value, wrong, left)),
        _ => {}
    }
}
