//! The status of a host in an annotation, which `clusterctl move` takes along.

use serde_json::Value;

use super::{BareMetalHost, BareMetalHostStatus, ErrorType, OperationalStatus};
use crate::metal3::names::STATUS_ANNOTATION;
use crate::metal3::v1alpha1::ProvisioningState;

impl BareMetalHost {
    /// Saves the status in the annotation. A host without status and with the annotation arrived by a move: what it has is kept.
    pub fn save_status(&mut self) {
        let has_no_status = self.status.provisioning.state == ProvisioningState::None;
        if has_no_status && self.saved_status().is_some() {
            return;
        }
        let text = saved(&self.status).to_string();
        let annotations = self.metadata.annotations.get_or_insert_default();
        annotations.insert(STATUS_ANNOTATION.to_owned(), text);
    }
}

/// The status for the annotation. The webhook of each release of the Go managers rejects members and values that it does not know, with
/// every later write of the host; what is left out is found out again after a move.
// differs: `saved-status-plain`. The Go manager saves what its own release knows, and no service.
fn saved(status: &BareMetalHostStatus) -> Value {
    let mut status = status.clone();
    if status.error_type == Some(ErrorType::Servicing) {
        (status.error_type, status.error_count) = (None, 0);
        status.error_message.clear();
        status.operational_status = OperationalStatus::Ok;
    }
    if status.operational_status == OperationalStatus::Servicing {
        status.operational_status = OperationalStatus::Ok;
    }
    status.provisioning.image.oci_auth_secret_name = None;
    let mut saved = serde_json::to_value(&status).unwrap_or(Value::Null);
    if let Some(members) = saved.as_object_mut() {
        for newer in ["hardware", "conditions", "provisioningFailCount", "lastAttemptedImage"] {
            members.remove(newer);
        }
    }
    saved
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What the webhooks of BMO 0.9, the oldest one, decode without an error, by its Go types. Later ones know more.
    const KNOWN: [&str; 31] = [
        "operationalStatus",
        "errorType",
        "lastUpdated",
        "hardwareProfile",
        "provisioning",
        "provisioning/state",
        "provisioning/ID",
        "provisioning/image",
        "provisioning/image/url",
        "provisioning/image/checksum",
        "provisioning/image/checksumType",
        "provisioning/image/format",
        "provisioning/rootDeviceHints",
        "provisioning/bootMode",
        "provisioning/raid",
        "provisioning/firmware",
        "provisioning/customDeploy",
        "goodCredentials",
        "goodCredentials/credentials",
        "goodCredentials/credentialsVersion",
        "triedCredentials",
        "triedCredentials/credentials",
        "triedCredentials/credentialsVersion",
        "errorMessage",
        "poweredOn",
        "operationHistory",
        "operationHistory/register",
        "operationHistory/inspect",
        "operationHistory/provision",
        "operationHistory/deprovision",
        "errorCount",
    ];

    /// The members of a document to a depth that has all that differ between releases.
    fn members(value: &Value, path: &str, depth: usize, all: &mut Vec<String>) {
        for (name, inner) in value.as_object().into_iter().flatten() {
            let path = format!("{path}{name}");
            if depth > 0 && !["operationHistory", "rootDeviceHints", "raid"].contains(&name.as_str()) {
                members(inner, &format!("{path}/"), depth - 1, all);
            }
            all.push(path);
        }
    }

    fn status(change: Value) -> BareMetalHostStatus {
        let mut status = json!({
            "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": true, "provisioningFailCount": 2,
            "lastAttemptedImage": { "url": "oci://r/i" }, "lastUpdated": "2026-01-01T00:00:00Z", "hardwareProfile": "unknown",
            "hardware": { "hostname": "h" }, "goodCredentials": { "credentialsVersion": "1" },
            "provisioning": { "state": "provisioned", "ID": "n", "bootMode": "UEFI", "raid": { "softwareRAIDVolumes": [] },
                "image": { "url": "oci://r/i", "checksum": "c", "checksumType": "md5", "format": "raw", "ociAuthSecretName": "s" } },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }],
        });
        let (Some(all), Value::Object(change)) = (status.as_object_mut(), change) else {
            return BareMetalHostStatus::default();
        };
        all.extend(change);
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn saved_status_has_what_each_go_manager_decodes() {
        let mut all = Vec::new();
        members(&saved(&status(json!({}))), "", 2, &mut all);
        let unknown: Vec<&String> = all.iter().filter(|name| !KNOWN.contains(&name.as_str())).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(all.len() >= 20, "{all:?}");
    }

    /// Their webhooks know neither as a value.
    #[test]
    fn saved_status_has_no_service() {
        let failed = json!({ "operationalStatus": "error", "errorType": "servicing error", "errorMessage": "m", "errorCount": 3 });
        for change in [json!({ "operationalStatus": "servicing" }), failed] {
            let saved = saved(&status(change));
            assert_eq!(
                (
                    &saved["operationalStatus"],
                    &saved["errorMessage"],
                    &saved["errorCount"]
                ),
                (&json!("OK"), &json!(""), &json!(0))
            );
            assert_eq!(saved.get("errorType"), None);
        }
        let other = json!({ "operationalStatus": "error", "errorType": "power management error", "errorMessage": "m", "errorCount": 3 });
        let saved = saved(&status(other));
        assert_eq!(
            (&saved["operationalStatus"], &saved["errorMessage"]),
            (&json!("error"), &json!("m"))
        );
    }
}
