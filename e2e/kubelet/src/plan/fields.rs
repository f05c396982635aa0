//! `fieldRef`: fields of a Pod in variables and downward API volumes.

use k8s_openapi::api::core::v1::Pod;

/// The values of a Pod that are not in its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    pub(crate) node_name: String,
    pub(crate) node_address: String,
    pub(crate) pod_address: String,
}

/// The value of a field; `None` for an unknown field.
pub(crate) fn field(pod: &Pod, placement: &Placement, path: &str) -> Option<String> {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    if let Some((map, key)) = subscript(path) {
        let values = match map {
            "metadata.labels" => meta.labels.as_ref(),
            "metadata.annotations" => meta.annotations.as_ref(),
            _ => return None,
        };
        return Some(values.and_then(|values| values.get(key)).cloned().unwrap_or_default());
    }
    match path {
        "metadata.name" => meta.name.clone(),
        "metadata.namespace" => meta.namespace.clone(),
        "metadata.uid" => meta.uid.clone(),
        "metadata.labels" => Some(lines(meta.labels.as_ref())),
        "metadata.annotations" => Some(lines(meta.annotations.as_ref())),
        "spec.nodeName" => Some(placement.node_name.clone()),
        "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
        "status.hostIP" | "status.hostIPs" => Some(placement.node_address.clone()),
        "status.podIP" | "status.podIPs" => Some(placement.pod_address.clone()),
        _ => None,
    }
}

/// Splits `metadata.labels['app']` into map and key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, rest) = path.split_once("['")?;
    Some((map, rest.strip_suffix("']")?))
}

/// One `key="value"` per line, the format of downward API volumes.
fn lines(values: Option<&std::collections::BTreeMap<String, String>>) -> String {
    let rows = values
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={value:?}"));
    rows.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{placement, pod};
    use super::*;

    #[test]
    fn each_supported_field_has_its_value() {
        let pod = pod(json!({"containers": [], "serviceAccountName": "robot"}));
        let table = [
            ("metadata.name", Some("web-1")),
            ("metadata.namespace", Some("team")),
            ("metadata.uid", Some("u-1")),
            ("metadata.labels['app']", Some("web")),
            ("metadata.labels['none']", Some("")),
            ("metadata.labels", Some("app=\"web\"")),
            ("metadata.annotations", Some("note=\"a\\\"b\"")),
            ("spec.nodeName", Some("n")),
            ("spec.serviceAccountName", Some("robot")),
            ("status.podIP", Some("10.0.0.7")),
            ("status.hostIP", Some("10.0.0.1")),
            ("status.phase", None),
            ("spec['x']", None),
        ];
        for (path, value) in table {
            assert_eq!(field(&pod, &placement(), path).as_deref(), value, "{path}");
        }
    }
}
