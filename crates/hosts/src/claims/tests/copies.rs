use k8s_openapi::api::core::v1::Secret;
use metal3_runtime::cache::Key;
use serde_json::{Value, json};

use super::super::copies::{Named, Use, emptied, filled, host_of, is_of, of_what, version};
use super::{claim, host, key};

fn secret(document: Value) -> Secret {
    serde_json::from_value(document).unwrap()
}

fn source() -> Secret {
    secret(
        json!({ "metadata": { "namespace": "tenant", "name": "user", "uid": "u", "resourceVersion": "3",
        "annotations": { "a": "b" } }, "type": "cluster.x-k8s.io/secret", "data": { "value": "eA==" } }),
    )
}

#[test]
fn names_follow_from_the_host_and_never_collide() {
    let host = key("metal", "h");
    assert_eq!(Use::UserData.name(&host), "h.claim-user-data");
    let long = |end: char| key("metal", &format!("{}{end}", "x".repeat(250)));
    let names: std::collections::BTreeSet<String> = Use::ALL
        .into_iter()
        .flat_map(|which| [which.name(&host), which.name(&long('a')), which.name(&long('b'))])
        .collect();
    assert_eq!(names.len(), 12);
    assert!(names.iter().all(|name| name.len() <= 253));
    let copy = Key {
        name: Use::MetaData.name(&host),
        ..host.clone()
    };
    assert_eq!(host_of(&copy), Some(host));
}

#[test]
fn reference_names_a_secret_of_the_own_namespace_or_none() {
    let named = |reference: Value| {
        let claim = claim(&json!({ "spec": { "userData": reference } }));
        Use::UserData.named(&claim.spec, "tenant")
    };
    assert_eq!(named(json!(null)), None);
    assert_eq!(named(json!({ "name": "" })), None);
    assert_eq!(named(json!({ "name": "s" })), Some(Named::Own("s".to_owned())));
    assert_eq!(
        named(json!({ "name": "s", "namespace": "tenant" })),
        Some(Named::Own("s".to_owned()))
    );
    assert_eq!(
        named(json!({ "name": "s", "namespace": "metal" })),
        Some(Named::Elsewhere)
    );
    assert_eq!(named(json!({ "name": "../s" })), Some(Named::Invalid));
}

#[test]
fn copy_has_the_content_and_the_owner_and_nothing_else_of_the_source() {
    let copy = filled(Use::UserData, &host(&json!({})), &source(), None).unwrap();
    assert_eq!(copy.data, source().data);
    assert_eq!(copy.type_.as_deref(), Some("Opaque"));
    assert!(is_of(&copy.metadata, &host(&json!({}))));
    assert_eq!(of_what(&copy.metadata), version(&source().metadata));
    let annotations = copy.metadata.annotations.clone().unwrap();
    assert!(!annotations.contains_key("a"), "{annotations:?}");
    let empty = emptied(Use::UserData, &copy);
    assert_eq!((empty.data.unwrap().len(), of_what(&empty.metadata)), (0, None));
}

#[test]
fn only_a_secret_that_the_host_controls_is_its_copy() {
    let owned = |uid: &str, controller: Value| {
        let owner = json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h", "uid": uid,
            "controller": controller });
        secret(json!({ "metadata": { "ownerReferences": [owner] } })).metadata
    };
    let host = host(&json!({}));
    assert!(is_of(&owned("host-uid", json!(true)), &host));
    assert!(!is_of(&owned("host-uid", json!(null)), &host));
    assert!(!is_of(&owned("former-uid", json!(true)), &host));
    assert!(!is_of(&secret(json!({ "metadata": {} })).metadata, &host));
}

#[test]
fn content_of_another_type_is_no_copy() {
    let host = host(&json!({}));
    let typed = |kind: &str| Secret {
        type_: Some(kind.to_owned()),
        ..source()
    };
    let login = "kubernetes.io/dockerconfigjson";
    assert!(filled(Use::RegistryLogin, &host, &typed("Opaque"), None).is_none());
    let copy = filled(Use::RegistryLogin, &host, &typed(login), None).unwrap();
    assert_eq!(copy.type_.as_deref(), Some(login));
    assert!(
        emptied(Use::RegistryLogin, &copy)
            .data
            .unwrap()
            .contains_key(".dockerconfigjson")
    );
    let token = typed("kubernetes.io/service-account-token");
    assert!(filled(Use::UserData, &host, &token, None).is_none());
}
