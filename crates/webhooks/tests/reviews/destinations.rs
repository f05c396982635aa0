//! Destinations that the administrator allows.

use metal3_domain::allowed::Allowed;
use metal3_webhooks::destinations::Destinations;
use metal3_webhooks::related_objects::RelatedObjects;
use metal3_webhooks::table::Task;
use serde_json::{Value, json};

use crate::api_server::{hook, review, send_review};

struct Flags(Destinations);

impl RelatedObjects for Flags {
    fn destinations(&self) -> Option<&Destinations> {
        Some(&self.0)
    }
}

fn host(image: &str, checksum: &str, bmc: &str) -> Value {
    json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
        "metadata": { "name": "node-0", "namespace": "metal" },
        "spec": { "online": true, "bootMACAddress": "52:54:00:00:00:01", "image": { "url": image, "checksum": checksum },
            "bmc": { "address": bmc, "credentialsName": "bmc" } },
    })
}

/// A machine kind with an image, and the path of the image.
fn machine(kind: &str, image: &str, checksum: &str) -> (Value, &'static str) {
    let spec = json!({ "image": { "url": image, "checksum": checksum }, "customDeploy": { "method": "install" } });
    let (spec, path) = match kind {
        "Metal3Machine" => (spec, "spec.image"),
        _ => (json!({ "template": { "spec": spec } }), "spec.template.spec.image"),
    };
    let document = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": { "name": "machine-0", "namespace": "metal" }, "spec": spec,
    });
    (document, path)
}

const MACHINES: [&str; 2] = ["Metal3Machine", "Metal3MachineTemplate"];

async fn reviewed(old: Option<&Value>, new: &Value) -> Value {
    let flags = Flags(Destinations {
        image_hosts: Allowed::parse(["images.example.org"]).unwrap(),
        bmc_networks: Allowed::parse_networks(["192.0.2.0/24"]).unwrap(),
    });
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    let hook = hook(Task::Validate, new["kind"].as_str().unwrap());
    send_review(flags, &hook.path(), &review(&hook, operation, old, Some(new))).await
}

const IMAGE: &str = "http://images.example.org/os";
const BMC: &str = "redfish://192.0.2.7/redfish/v1/Systems/1";

#[tokio::test]
async fn destination_that_is_not_allowed_is_rejected_with_field_and_flag() {
    assert_eq!(
        reviewed(None, &host(IMAGE, "http://images.example.org/sums", BMC)).await["allowed"],
        true
    );
    let other = "http://user:hunter2@192.0.2.7/os";
    for (image, checksum, bmc, field, flag) in [
        (other, "0", BMC, "spec.image.url", "--allowed-image-hosts"),
        (IMAGE, other, BMC, "spec.image.checksum", "--allowed-image-hosts"),
        (
            IMAGE,
            "0",
            "redfish://192.0.3.7/redfish/v1/Systems/1",
            "spec.bmc.address",
            "--allowed-bmc-networks",
        ),
        (
            IMAGE,
            "0",
            "redfish://bmc.example.org/redfish/v1/Systems/1",
            "spec.bmc.address",
            "--allowed-bmc-networks",
        ),
    ] {
        let new = host(image, checksum, bmc);
        // Also as a change of a host without image and BMC.
        let mut old = new.clone();
        old["spec"] = json!({ "online": true });
        for old in [None, Some(&old)] {
            let response = reviewed(old, &new).await;
            let message = response["status"]["message"].as_str().unwrap_or_default();
            assert_eq!(response["allowed"], false, "{response}");
            assert!(message.contains(field) && message.contains(flag), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}

#[tokio::test]
async fn host_that_is_older_than_the_flag_stays_writable() {
    let old = host("http://192.0.2.7/os", "0", "redfish://192.0.3.7/redfish/v1/Systems/1");
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "a": "b" });
    new["spec"]["online"] = json!(false);
    assert_eq!(reviewed(Some(&old), &new).await["allowed"], true);
}

#[tokio::test]
async fn image_of_a_machine_that_is_not_allowed_is_rejected_with_field_and_flag() {
    let other = "http://user:hunter2@192.0.2.7/os";
    for kind in MACHINES {
        let (allowed, path) = machine(kind, IMAGE, IMAGE);
        assert_eq!(reviewed(None, &allowed).await["allowed"], true);
        for (image, checksum, member) in [(other, "0", "url"), (IMAGE, other, "checksum")] {
            let (new, _) = machine(kind, image, checksum);
            for old in [None, Some(&allowed)] {
                let response = reviewed(old, &new).await;
                let message = response["status"]["message"].as_str().unwrap_or_default();
                assert_eq!(response["allowed"], false, "{response}");
                let expected = [format!("{path}.{member}"), "--allowed-image-hosts".to_owned()];
                assert!(expected.iter().all(|text| message.contains(text)), "{message}");
                assert!(!message.contains("hunter2"), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn machine_that_is_older_than_the_flag_stays_writable() {
    for kind in MACHINES {
        let (old, path) = machine(kind, "http://192.0.2.7/os", "0");
        let mut new = old.clone();
        new["metadata"]["labels"] = json!({ "a": "b" });
        let spec = format!("/{}", path.trim_end_matches(".image").replace('.', "/"));
        new.pointer_mut(&spec).unwrap()["automatedCleaningMode"] = json!("disabled");
        assert_eq!(reviewed(Some(&old), &new).await["allowed"], true);
    }
}
