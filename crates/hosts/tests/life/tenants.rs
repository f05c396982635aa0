//! What a user of one namespace can do to the machines of another.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::model::state::ProvisionState;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, PASSWORD, Setup, TestEnv};
use crate::phases::{Phase, runs};

const TENANT: &str = "tenant";

/// Creates a host of another namespace.
async fn tenant_host(env: &TestEnv, name: &str, annotations: Value, mac: &str) {
    let client = env.cluster.client("tenant");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": TENANT } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let login = json!({ "metadata": { "name": "bmc", "labels": { "environment.metal3.io": "baremetal" } }, "stringData": { "username": "mine", "password": "mine" } });
    let secrets: Api<Secret> = Api::namespaced(client.clone(), TENANT);
    let secret = serde_json::from_value(login).unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let host = json!({ "metadata": { "name": name, "annotations": annotations },
        "spec": { "online": true, "bootMACAddress": mac, "bmc": { "credentialsName": "bmc",
            "disableCertificateVerification": true,
            "address": "redfish-virtualmedia://198.51.100.66/redfish/v1/Systems/1" } } });
    let hosts: Api<BareMetalHost> = Api::namespaced(client, TENANT);
    let host = serde_json::from_value(host).unwrap();
    hosts.create(&PostParams::default(), &host).await.unwrap();
}

async fn tenant_status(env: &TestEnv, name: &str) -> Value {
    let hosts: Api<BareMetalHost> = Api::namespaced(env.cluster.client("tenant"), TENANT);
    serde_json::to_value(hosts.get(name).await.unwrap().status).unwrap()
}

async fn victim() -> TestEnv {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    Phase::Provision.begin(&env, 1).await;
    env.until(1, "provisioned host that runs", runs).await;
    env
}

/// The status of a new host can be restored from an annotation, where no webhook checks who may do that.
#[tokio::test(start_paused = true)]
async fn restored_status_does_not_make_a_secret_one_that_was_used_before() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    let reads = || env.cluster.audit().of(CONTROLLER_USER, "get", "secrets");
    let of_another_host = reads();
    let client = env.cluster.client("tenant");
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let other = json!({ "metadata": { "name": "other" }, "stringData": { "username": "a", "password": "b" } });
    let other: Secret = serde_json::from_value(other).unwrap();
    let before = secrets.create(&PostParams::default(), &other).await.unwrap();
    let used = json!({ "credentials": { "name": "other", "namespace": "default" }, "credentialsVersion": "0" });
    let saved = json!({ "provisioning": { "state": "registering", "ID": "" }, "operationalStatus": "OK",
        "errorMessage": "", "poweredOn": false, "triedCredentials": used, "goodCredentials": used });
    let host = json!({ "metadata": { "name": "thief", "annotations": { "baremetalhost.metal3.io/status": saved.to_string() } },
        "spec": { "online": true, "bootMACAddress": "52:54:00:66:00:01",
            "bmc": { "address": "redfish-virtualmedia://198.51.100.66/redfish/v1/Systems/1", "credentialsName": "other" } } });
    let hosts: Api<BareMetalHost> = Api::namespaced(client, "default");
    let host = serde_json::from_value(host).unwrap();
    hosts.create(&PostParams::default(), &host).await.unwrap();
    sleep(Duration::from_hours(1)).await;
    assert_eq!(secrets.get("other").await.unwrap(), before);
    assert_eq!(reads(), of_another_host, "content was read");
    let status = hosts.get("thief").await.unwrap().status;
    assert!(
        status.error_message.contains("kubectl label secret"),
        "{}",
        status.error_message
    );
}

/// The node as far as a tenant could change it.
async fn record(env: &TestEnv) -> Value {
    let node = env.node(1).await.unwrap();
    json!({ "name": node.name, "driver_info": node.driver_info.0, "state": node.provision_state.as_str(),
        "automated_clean": node.automated_clean })
}

#[tokio::test(start_paused = true)]
async fn copied_status_does_not_take_the_node_of_another_namespace() {
    let env = victim().await;
    let (before, counts) = (record(&env).await, env.machine(1, |machine| machine.counts));
    let mut saved = serde_json::to_value(env.get(1).await.unwrap().status).unwrap();
    saved["provisioning"]["image"] = json!({ "url": "http://images.example/other.raw" });
    saved["triedCredentials"]["credentials"] = json!({ "name": "bmc", "namespace": TENANT });
    let annotations = json!({ "baremetalhost.metal3.io/status": saved.to_string() });
    tenant_host(&env, "thief", annotations, "52:54:00:66:00:01").await;
    sleep(Duration::from_hours(12)).await;
    assert_eq!(record(&env).await, before);
    assert_eq!(env.machine(1, |machine| machine.counts), counts);
    let status = tenant_status(&env, "thief").await;
    assert_eq!(status["errorType"], json!("registration error"), "{status}");
    assert!(!status.to_string().contains("default~"), "{status}");
}

/// Who may write the status of his hosts writes any state, and then orders what erases: a deletion.
#[tokio::test(start_paused = true)]
async fn written_status_does_not_erase_the_node_of_another_namespace() {
    for state in [
        "provisioned",
        "deprovisioning",
        "powering off before delete",
        "deleting",
    ] {
        let env = victim().await;
        let (before, counts) = (record(&env).await, env.machine(1, |machine| machine.counts));
        let uuid = env.node(1).await.unwrap().uuid;
        tenant_host(&env, "thief", json!({}), "52:54:00:66:00:01").await;
        let hosts: Api<BareMetalHost> = Api::namespaced(env.cluster.client("tenant"), TENANT);
        let status = Patch::Merge(json!({ "status": { "provisioning": { "state": state, "ID": uuid.as_str() } } }));
        let options = PatchParams::default();
        hosts.patch_status("thief", &options, &status).await.unwrap();
        sleep(Duration::from_mins(10)).await;
        hosts.patch_status("thief", &options, &status).await.unwrap();
        hosts.delete("thief", &DeleteParams::default()).await.unwrap();
        sleep(Duration::from_hours(2)).await;
        assert_eq!(record(&env).await, before, "{state}");
        assert_eq!(env.machine(1, |machine| machine.counts), counts, "{state}");
    }
}

#[tokio::test(start_paused = true)]
async fn name_of_a_host_of_another_namespace_does_not_take_its_node() {
    let env = victim().await;
    let plain = env.node(1).await.unwrap().uuid;
    let rename = metal3_ironic::calls::patch::Patch::new().set(&["name"], "old");
    let rename = metal3_ironic::calls::node::patch(&(&plain).into(), rename).unwrap();
    env.ironic.client().unwrap().send(&rename).await.unwrap();
    tenant_host(&env, "old", json!({}), "52:54:00:66:00:01").await;
    sleep(Duration::from_hours(1)).await;
    let read = metal3_ironic::calls::node::get(&(&plain).into());
    let node = env.ironic.client().unwrap().send(&read).await.unwrap().value;
    assert_eq!(
        (node.name.as_deref(), node.provision_state),
        (Some("old"), ProvisionState::Active)
    );
    assert_ne!(
        tenant_status(&env, "old").await["provisioning"]["ID"],
        json!(plain.as_str())
    );
}

/// The first releases of the Go manager named nodes so.
#[tokio::test(start_paused = true)]
async fn node_with_the_plain_name_of_a_host_is_taken_only_with_the_flag() {
    for plain_node_names in [true, false] {
        let env = TestEnv::new(Setup {
            plain_node_names,
            ..Setup::default()
        });
        let new = metal3_ironic::calls::node::NewNode {
            name: "host-1".to_owned(),
            driver: "redfish".to_owned(),
            driver_info: Map::default(),
            properties: Map::default(),
            more: Map::default(),
            disable_power_off: None,
        };
        let create = metal3_ironic::calls::node::create(new).unwrap();
        let older = env.ironic.client().unwrap().send(&create).await.unwrap().value;
        env.host(1, json!({})).await;
        env.until_state(1, "available").await;
        let id = env.get(1).await.unwrap().status.provisioning.id;
        assert_eq!(id == older.uuid.as_str(), plain_node_names, "{id}");
    }
}

/// Ironic finds a node by its UUID where it finds it by its name, and a UUID is a valid name of a host.
#[tokio::test(start_paused = true)]
async fn host_that_is_named_as_a_node_of_another_namespace_does_not_take_it() {
    let env = TestEnv::new(Setup {
        plain_node_names: true,
        ..Setup::default()
    });
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    let (before, uuid) = (record(&env).await, env.node(1).await.unwrap().uuid);
    tenant_host(&env, uuid.as_str(), json!({}), "52:54:00:66:00:01").await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(record(&env).await, before);
    let status = tenant_status(&env, uuid.as_str()).await;
    assert_ne!(status["provisioning"]["ID"], json!(uuid.as_str()), "{status}");
}

#[tokio::test(start_paused = true)]
async fn address_of_a_machine_of_another_namespace_reveals_no_name() {
    let env = victim().await;
    let mac = env.machine(1, |machine| machine.macs().remove(0));
    tenant_host(&env, "curious", json!({}), &mac).await;
    sleep(Duration::from_mins(10)).await;
    let (status, events) = (tenant_status(&env, "curious").await, env.events());
    let message = status["errorMessage"].as_str().unwrap();
    assert!(message.contains("not of this namespace"), "{message}");
    for text in [&status.to_string(), &events] {
        assert!(!text.contains("default~") && !text.contains(PASSWORD), "{text}");
    }
}

/// A host of the same namespace that names a Secret of another user.
async fn host_with_secret_of_another(env: &TestEnv) -> Api<Secret> {
    let (secrets, document) = (env.api::<Secret>(), env.document(1, &json!({})));
    let other = json!({ "metadata": { "name": "bmc-1" }, "stringData": { "username": "admin", "password": PASSWORD } });
    env.make::<Secret>(other).await;
    env.make::<BareMetalHost>(document).await;
    secrets
}

#[tokio::test(start_paused = true)]
async fn secret_without_the_label_is_neither_read_nor_changed_until_it_is_labelled() {
    let env = TestEnv::new(Setup::default());
    let secrets = host_with_secret_of_another(&env).await;
    let before = secrets.get("bmc-1").await.unwrap();
    sleep(Duration::from_hours(1)).await;
    let status = env.get(1).await.unwrap().status;
    let message = &status.error_message;
    let cure = "kubectl label secret --namespace default bmc-1 environment.metal3.io=baremetal";
    assert!(message.contains(cure), "{message}");
    assert_eq!(secrets.get("bmc-1").await.unwrap(), before);
    let reads = || env.cluster.audit().of(CONTROLLER_USER, "get", "secrets");
    assert_eq!(reads(), 0, "content was read");
    assert!(
        env.node(1).await.is_none(),
        "a node was created with the login of another"
    );
    let labels = json!({ "metadata": { "labels": { "environment.metal3.io": "baremetal" } } });
    let change = Patch::Merge(labels);
    secrets.patch("bmc-1", &PatchParams::default(), &change).await.unwrap();
    env.until_state(1, "available").await;
    assert!(reads() > 0, "reads are counted under another name");
    let owners = secrets.get("bmc-1").await.unwrap().metadata.owner_references;
    assert_eq!(owners, None);
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_host_does_not_delete_the_secret_that_it_names() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    Phase::Delete.begin(&env, 1).await;
    sleep(Duration::from_hours(1)).await;
    assert!(env.get(1).await.is_none());
    let secret = env.api::<Secret>().get("bmc-1").await.unwrap();
    assert_eq!(
        (secret.metadata.owner_references, secret.metadata.finalizers),
        (None, None)
    );
}
