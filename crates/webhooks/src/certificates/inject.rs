//! Telling the API server whom to trust: the authorities go into each configuration that names our Service.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

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
