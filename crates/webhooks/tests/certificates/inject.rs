//! Injection of the CA bundle.

use base64::Engine as _;
use metal3_api::catalog;
use metal3_webhooks::certificates::inject::{Service, injection_patch};
use metal3_webhooks::manifest::configurations;
use metal3_webhooks::table::IPAM;
use serde_json::{Value, json};

fn services() -> Vec<Service> {
    vec![Service {
        namespace: "metal3-ipam-system".into(),
        name: "ipam-webhook-service".into(),
    }]
}

fn apply(object: &mut Value, patch: &Value) {
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
    json_patch::patch(object, &patch).unwrap();
}

#[test]
fn the_bundle_is_injected_into_each_webhook_once() {
    for mut configuration in configurations(&IPAM) {
        configuration["metadata"]["resourceVersion"] = "7".into();
        let patch = injection_patch(&configuration, &services(), "bundle").unwrap();
        apply(&mut configuration, &patch);
        for webhook in configuration["webhooks"].as_array().unwrap() {
            let bundle = base64::engine::general_purpose::STANDARD.encode("bundle");
            assert_eq!(webhook["clientConfig"]["caBundle"], bundle);
        }
        assert_eq!(injection_patch(&configuration, &services(), "bundle"), None);
        assert_ne!(injection_patch(&configuration, &services(), "another"), None);
    }
}

#[test]
fn the_bundle_is_injected_into_the_conversion_of_a_definition() {
    let definitions = catalog::definitions();
    let pool = definitions
        .iter()
        .find(|definition| definition.kind == "IPPool")
        .unwrap();
    let mut document = pool.manifest();
    document["metadata"]["resourceVersion"] = "7".into();
    let patch = injection_patch(&document, &services(), "bundle").unwrap();
    apply(&mut document, &patch);
    assert!(
        document
            .pointer("/spec/conversion/webhook/clientConfig/caBundle")
            .is_some()
    );
}

#[test]
fn webhooks_of_other_services_are_not_changed() {
    let webhook =
        |client: Value| json!({ "metadata": { "resourceVersion": "7" }, "webhooks": [{ "clientConfig": client }] });
    let others = [
        json!({ "url": "https://example.org/" }),
        json!({ "service": { "namespace": "other", "name": "ipam-webhook-service" } }),
        json!({ "service": { "namespace": "metal3-ipam-system", "name": "other" } }),
        json!({}),
    ];
    for client in others {
        assert_eq!(injection_patch(&webhook(client), &services(), "bundle"), None);
    }
    assert_eq!(
        injection_patch(
            &json!({ "webhooks": 7, "spec": { "conversion": { "strategy": "None" } } }),
            &services(),
            "b"
        ),
        None
    );
}

#[test]
fn a_patch_has_the_resource_version_as_precondition() {
    let mut configuration = configurations(&IPAM).remove(0);
    configuration["metadata"]["resourceVersion"] = "7".into();
    let patch = injection_patch(&configuration, &services(), "bundle").unwrap();
    let version = json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": "7" });
    assert!(
        patch.as_array().unwrap().contains(&version),
        "the server compares the version with the stored one"
    );
}
