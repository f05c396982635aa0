//! Telling the API server whom to trust: the authorities go into each configuration that names our Service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::mint::AUTHORITY;
use crate::manifest::INJECTION_ANNOTATION;

/// The Service under which the API server finds us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The JSON patch that makes a webhook configuration or a CRD carry the bundle; nothing when it does.
///
/// It fails if the object has changed since it was read: the places in it are known by position.
#[must_use]
pub fn injection(object: &Value, services: &[Service], bundle: &str) -> Option<Value> {
    let bundle = STANDARD.encode(bundle);
    let places = places(object).into_iter();
    let wrong = places.filter(|(_, client)| names(client, services) && client["caBundle"] != bundle.as_str());
    let mut patch: Vec<Value> = wrong
        .map(|(path, _)| json!({ "op": "add", "path": format!("{path}/caBundle"), "value": bundle }))
        .collect();
    if patch.is_empty() {
        return None;
    }
    patch.push(json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version(object) }));
    Some(patch.into())
}

/// Whether cert-manager is told to keep this object, and has: it names us, and carries a bundle that is not of our
/// making. Two that write one member would take it from each other for ever.
#[must_use]
pub fn is_kept_by_another(object: &Value, services: &[Service]) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    let told = annotations.is_some_and(|annotations| annotations.get(INJECTION_ANNOTATION).is_some());
    let bundles = places(object)
        .into_iter()
        .filter(|(_, client)| names(client, services))
        .filter_map(|(_, client)| client["caBundle"].as_str().filter(|bundle| !bundle.is_empty()));
    told && bundles.into_iter().any(|bundle| !is_ours(bundle))
}

/// Whether a bundle has an authority of ours in it, by its name.
fn is_ours(bundle: &str) -> bool {
    let Some(text) = STANDARD
        .decode(bundle)
        .ok()
        .and_then(|text| String::from_utf8(text).ok())
    else {
        return false;
    };
    text.split("-----").any(|block| {
        let certificate = STANDARD.decode(block.split_whitespace().collect::<String>());
        certificate.is_ok_and(|bytes| {
            bytes
                .windows(AUTHORITY.len())
                .any(|window| window == AUTHORITY.as_bytes())
        })
    })
}

/// The version a write is conditioned on. An object without one cannot be written: no precondition would be none.
pub(super) fn version(object: &Value) -> &str {
    let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.filter(|version| !version.is_empty()).unwrap_or("unknown")
}

/// Every `clientConfig` of the object, with its path.
fn places(object: &Value) -> Vec<(String, &Value)> {
    let conversion = "/spec/conversion/webhook/clientConfig";
    let converts = object.pointer(conversion).map(|client| (conversion.to_owned(), client));
    let webhooks = object
        .get("webhooks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .enumerate();
    let reviews = webhooks.filter_map(|(position, webhook)| {
        Some((
            format!("/webhooks/{position}/clientConfig"),
            webhook.get("clientConfig")?,
        ))
    });
    converts.into_iter().chain(reviews).collect()
}

fn names(client: &Value, services: &[Service]) -> bool {
    let named = |member: &str| client.pointer(&format!("/service/{member}")).and_then(Value::as_str);
    let (namespace, name) = (named("namespace"), named("name"));
    services
        .iter()
        .any(|service| namespace == Some(&service.namespace) && name == Some(&service.name))
}
