//! Tables and properties of the translation. [`record`] simulates Ironic's record of a node, with masked secrets.

mod agent;
mod config_drive;
mod deployment;
mod instance;
mod invalid_hosts;
mod inventory;
mod kept;
mod members;
mod ports;
mod properties;
mod pull_secret;
mod raid;
mod ramdisk;
mod record;
mod registration;
mod small;

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};

use super::{AgentNetwork, Credentials, InvalidHost, NodeRecord, NodeSettings};

const UID: &str = "ffc435b2-48e0-495d-947c-d1d427749274";
/// A password that must not appear anywhere.
const PASSWORD: &str = "canary-p4ssw0rd";
/// A BMC that boots virtual media.
const VIRTUAL_MEDIA: &str = "redfish-virtualmedia+http://192.0.2.10:8000/redfish/v1/Systems/1";

/// A host with this spec, in addition to `online`.
fn host(spec: Value) -> BareMetalHost {
    with_status(spec, &json!({}))
}

/// A host with this spec and this part of `status.provisioning`.
fn with_status(mut spec: Value, provisioning: &Value) -> BareMetalHost {
    let mut status = json!({"state": "registering", "ID": ""});
    merge(&mut status, provisioning);
    merge(&mut spec, &json!({"online": true}));
    let status = json!({
        "operationalStatus": "OK", "errorMessage": "", "errorCount": 0, "poweredOn": false, "provisioning": status,
    });
    let metadata = json!({"namespace": "metal", "name": "host-0", "uid": UID});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
}

fn bmc(address: &str) -> Value {
    json!({"address": address, "credentialsName": "bmc"})
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
    let value = |(key, value): &(&str, &str)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec()));
    pairs.iter().map(value).collect()
}

fn credentials(username: &str, password: &str) -> Credentials {
    Credentials::of(&values(&[("username", username), ("password", password)])).unwrap()
}

/// The desired node of a host without hardware details and network data.
fn record_of(host: &BareMetalHost, login: &Credentials, settings: &NodeSettings) -> Result<NodeRecord, InvalidHost> {
    NodeRecord::of(host, Some(login), None, &AgentNetwork::None, settings)
}

/// Settings of a laboratory with a known architecture.
fn settings() -> NodeSettings {
    NodeSettings {
        fake_hardware: true,
        own_architecture: "x86_64".to_owned(),
        ..NodeSettings::default()
    }
}
