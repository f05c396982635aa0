//! Canaries in all places of objects reach no file.

mod kinds;
mod work;

use serde_json::json;

use super::*;
use crate::offline::answer;

fn snapshot(objects: &[Value]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for read in reads() {
        let found = answer(objects, &read);
        snapshot.insert(read, Ok(found));
    }
    snapshot
}

fn objects() -> Vec<Value> {
    let meta = |name: &str| {
        json!({ "name": name, "namespace": "lab", "managedFields": [{ "x": "canary" }], "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": "{\"x\":\"canary\"}", "example.com/note": "canary",
        "baremetalhost.metal3.io/status": "{\"errorMessage\":\"https://u:canary@h\",\"password\":\"canary\"}" } })
    };
    vec![
        json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": meta("h0"),
            "spec": { "online": true, "image": { "url": "http://u:canary@i.example/os?X-Signature=canary" },
                "bmc": { "address": "redfish://u:canary@192.0.2.1/x", "credentialsName": "bmc" } },
            "status": { "operationalStatus": "error", "errorType": "registration error", "errorCount": 1, "poweredOn": false,
                "errorMessage": "GET https://u:canary@192.0.2.1/x?token=canary failed, password=canary, Authorization: Basic canary",
                "provisioning": { "state": "registering", "ID": "", "image": { "url": "" } } } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": meta("bmc"), "data": { "password": "canary" } }),
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": meta("edge"),
            "spec": { "topology": { "variables": [{ "name": "login", "value": { "pull": "canary" } }] } } }),
        json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataTemplate", "metadata": meta("t"),
            "spec": { "clusterName": "edge", "metaData": { "strings": [{ "key": "k", "value": "canary" }] } } }),
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment", "metadata": meta("md"),
            "spec": { "clusterName": "edge", "template": { "metadata": { "annotations": { "example.com/note": "canary" } } } } }),
        // The annotations of a Node, which were the tenant's.
        json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Remediation", "metadata": { "name": "r",
            "namespace": "lab", "annotations": { "remediation.metal3.io/node-annotations-backup":
                "{\"example.com/note\":\"canary\",\"kubectl.kubernetes.io/last-applied-configuration\":\"{\\\"x\\\":\\\"canary\\\"}\"}" } } }),
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": meta("other"), "reason": "Unhealthy",
            "involvedObject": { "kind": "Pod", "name": "p" }, "message": "the probe printed canary" }),
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": meta("e"), "reason": "RegistrationError",
            "involvedObject": { "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "name": "h0" }, "message": "https://u:canary@h, token: canary" }),
    ]
}

/// One log, and one that the viewer may not read.
fn logs() -> Logs {
    let log = Log {
        namespace: "capm3-system".to_owned(),
        pod: "capm3-0".to_owned(),
        container: "manager".to_owned(),
        text: "{\"message\":\"get https://u:canary@h/x?sig=canary\",\"password\":\"canary\"}\n\u{1b}[2Jnext line\n"
            .to_owned(),
    };
    let without = NotRead {
        what: Read::Object(ObjectId::foreign("", "Pod", "capm3-1")),
        why: Unread::Forbidden {
            verb: "get".to_owned(),
            resource: "pods/log".to_owned(),
        },
    };
    (vec![log], vec![without])
}

#[test]
fn no_file_has_a_canary_and_all_that_waits_is_explained() {
    let files = files(&snapshot(&objects()), &logs(), Some("lab"), Time::default());
    for (name, text) in &files {
        assert!(!text.contains("canary"), "{name}: {text}");
    }
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    for name in [
        "objects/lab/BareMetalHost/h0.yaml",
        "objects/lab/Metal3DataTemplate/t.yaml",
        "secrets/lab/bmc.yaml",
        "why/lab/BareMetalHost-h0.txt",
        "why/lab/Cluster-edge.txt",
        "events.yaml",
        "logs/capm3-system/capm3-0/manager.log",
        "hosts.txt",
        "not-read.txt",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let text = |wanted: &str| {
        files
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, text)| text.as_str())
    };
    let why = text("why/lab/BareMetalHost-h0.txt").unwrap_or_default();
    assert!(
        why.contains("RegistrationError") && why.contains("***@192.0.2.1"),
        "{why}"
    );
    let log = text("logs/capm3-system/capm3-0/manager.log").unwrap_or_default();
    assert!(log.contains("next line") && !log.contains('\u{1b}'), "{log:?}");
    assert!(text("secrets/lab/bmc.yaml").is_some_and(|text| !text.contains("\ndata:")));
}

#[test]
fn what_may_not_be_read_is_named_and_never_absent() {
    let mut snapshot = snapshot(&objects());
    let secrets = Read::List {
        kind: ObjectId::secret(""),
        labels: String::new(),
    };
    let (verb, resource) = ("list".to_owned(), "secrets".to_owned());
    snapshot.insert(secrets, Err(Unread::Forbidden { verb, resource }));
    let files = files(&snapshot, &logs(), None, Time::default());
    let text = |wanted: &str| {
        files
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, text)| text.clone())
    };
    let not_read = text("not-read.txt").unwrap_or_default();
    assert!(
        not_read.contains("you may not list secrets in all namespaces"),
        "{not_read}"
    );
    assert!(
        not_read.contains("Not read: Pod/capm3-1, because you may not get pods/log in all namespaces"),
        "{not_read}"
    );
    let why = text("why/lab/BareMetalHost-h0.txt").unwrap_or_default();
    assert!(!why.contains("Secret/bmc: does not exist"), "{why}");
}
