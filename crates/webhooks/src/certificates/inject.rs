//! Injection of the CA bundle into each configuration that refers to the webhook Service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::issue::AUTHORITY;
use crate::manifest::INJECTION_ANNOTATION;

/// The Service of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The JSON patch that adds the bundle to a webhook configuration or a CRD; `None` when it is up to date.
///
/// The resource version is a precondition, because the paths in the patch contain list positions.
#[must_use]
pub fn injection_patch(object: &Value, services: &[Service], bundle: &str) -> Option<Value> {
    let bundle = STANDARD.encode(bundle);
    let client_configs = client_configs(object).into_iter();
    let outdated =
        client_configs.filter(|(_, client)| names(client, services) && client["caBundle"] != bundle.as_str());
    let mut patch: Vec<Value> = outdated
        .map(|(path, _)| json!({ "op": "add", "path": format!("{path}/caBundle"), "value": bundle }))
        .collect();
    if patch.is_empty() {
        return None;
    }
    patch.push(json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version(object) }));
    Some(patch.into())
}

/// Whether cert-manager manages the bundle of this object: it has the annotation, and a bundle that is not from this
/// project. Two writers of one member would overwrite each other forever.
#[must_use]
pub fn is_managed_by_cert_manager(object: &Value, services: &[Service]) -> bool {
    let annotations = object.pointer("/metadata/annotations");
    let annotated = annotations.is_some_and(|annotations| annotations.get(INJECTION_ANNOTATION).is_some());
    let bundles = client_configs(object)
        .into_iter()
        .filter(|(_, client)| names(client, services))
        .filter_map(|(_, client)| client["caBundle"].as_str().filter(|bundle| !bundle.is_empty()));
    annotated && bundles.into_iter().any(|bundle| !has_own_authority(bundle))
}

/// Whether a bundle contains a self-managed authority, by its name.
fn has_own_authority(bundle: &str) -> bool {
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

/// The resource version for the precondition. Without one, the precondition always fails.
pub(super) fn version(object: &Value) -> &str {
    let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    version.filter(|version| !version.is_empty()).unwrap_or("unknown")
}

/// Every `clientConfig` of the object, with its path.
fn client_configs(object: &Value) -> Vec<(String, &Value)> {
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
