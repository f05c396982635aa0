//! Objects of kinds without a controller, which the Go manager left with finalizers.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::Resource;
use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage, HostUpdatePolicy, PreprovisioningImage};
use metal3_ironic::transport::Transport as _;
use metal3_runtime::guard::HOSTS;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, NAMESPACE, Setup, TestEnv};

const HOUR: Duration = Duration::from_hours(1);
/// More than a retry of a wait.
const MINUTES: Duration = Duration::from_mins(3);

async fn env() -> TestEnv {
    TestEnv::new(Setup {
        unserved: true,
        ..Setup::default()
    })
}

async fn env_with_host() -> TestEnv {
    let env = env().await;
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    env
}

pub(crate) trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Serialize + DeserializeOwned + Debug
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Serialize + DeserializeOwned + Debug
{
}

/// Creates an object with finalizers and a status, as the Go manager leaves it.
async fn leave<K: Object>(env: &TestEnv, name: &str, finalizers: &[&str], spec: Value, status: Value) {
    let document = json!({ "metadata": { "name": name, "finalizers": finalizers }, "spec": spec });
    env.make::<K>(document).await;
    let patch = Patch::Merge(json!({ "status": status }));
    let api = env.api::<K>();
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn leave_image(env: &TestEnv, recorded: bool) {
    let url = "http://images.example/data.iso";
    let status = if recorded {
        json!({ "attachedImage": { "url": url } })
    } else {
        json!({})
    };
    leave::<DataImage>(env, "host-1", &["dataimage.metal3.io"], json!({ "url": url }), status).await;
}

pub(crate) async fn delete<K: Object>(env: &TestEnv, name: &str) {
    env.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
}

pub(crate) async fn is_gone<K: Object>(env: &TestEnv, name: &str) -> bool {
    env.api::<K>().get_opt(name).await.unwrap().is_none()
}

pub(crate) async fn until_gone<K: Object>(env: &TestEnv, name: &str) {
    let mut waited = Duration::ZERO;
    while !is_gone::<K>(env, name).await {
        assert!(waited < HOUR, "{:?}", env.api::<K>().get_opt(name).await);
        sleep(Duration::from_secs(1)).await;
        waited += Duration::from_secs(1);
    }
}

async fn image_error(env: &TestEnv) -> String {
    let image = env.api::<DataImage>().get("host-1").await.unwrap();
    image.status.error.unwrap_or_default().message
}

/// Whether the report says that something is not known, or, for a driver without a virtual drive, what is recorded.
fn is_report(error: &str) -> bool {
    let is_unknown = error.contains("is not known") && error.contains("; this is read again every minute");
    is_unknown || (error.contains("the status records") && error.contains("; eject the image at the BMC"))
}

/// Scales the Deployment of the Go manager.
pub(crate) async fn go_manager(env: &TestEnv, replicas: u32) {
    let (namespace, name) = HOSTS;
    let client = env.cluster.client("user");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let document = serde_json::from_value(json!({ "metadata": { "name": namespace } })).unwrap();
    drop(namespaces.create(&PostParams::default(), &document).await);
    let labels = json!({ "app": "go" });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name },
        "spec": { "replicas": replicas, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "manager", "image": "i" }] } } },
    });
    let api: Api<Deployment> = Api::namespaced(client, namespace);
    let apply = PatchParams::default();
    if api.get_opt(name).await.unwrap().is_some() {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        api.patch(name, &apply, &patch).await.unwrap();
    } else {
        let deployment = serde_json::from_value(deployment).unwrap();
        api.create(&PostParams::default(), &deployment).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_objects_that_the_go_manager_left_disappear() {
    let env = env_with_host().await;
    leave_image(&env, true).await;
    let finalizers = [
        "preprovisioningimage.metal3.io",
        "baremetalhost.metal3.io/preprovisioningImage",
    ];
    leave::<PreprovisioningImage>(&env, "host-1", &finalizers, json!({}), json!({})).await;
    sleep(MINUTES).await;
    assert!(!is_gone::<DataImage>(&env, "host-1").await, "it is not deleted");
    delete::<DataImage>(&env, "host-1").await;
    delete::<PreprovisioningImage>(&env, "host-1").await;
    until_gone::<DataImage>(&env, "host-1").await;
    assert!(
        !is_gone::<PreprovisioningImage>(&env, "host-1").await,
        "its builder has time"
    );
    until_gone::<PreprovisioningImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_deleted_host_disappear() {
    let env = env_with_host().await;
    env.machine(1, |machine| {
        machine.media = Some("http://ironic.example/boot.iso".to_owned())
    });
    leave_image(&env, true).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    env.delete(1).await;
    until_gone::<BareMetalHost>(&env, "host-1").await;
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn disc_in_the_drive_keeps_the_finalizer_and_the_status_says_what_to_do() {
    let env = env_with_host().await;
    env.machine(1, |machine| {
        machine.media = Some("http://ironic.example/boot.iso".to_owned())
    });
    leave_image(&env, false).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    let error = image_error(&env).await;
    assert!(
        error.contains("an image is in the virtual drive") && error.contains("; eject it"),
        "{error}"
    );
    let image = env.api::<DataImage>().get("host-1").await.unwrap();
    assert_eq!(image.status.error.unwrap().count, 1, "one write for an hour");
    env.machine(1, |machine| machine.media = None);
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn running_go_manager_keeps_its_objects() {
    let env = env_with_host().await;
    go_manager(&env, 1).await;
    leave_image(&env, true).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert_eq!(image_error(&env).await, "");
    go_manager(&env, 0).await;
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn silence_of_ironic_or_the_bmc_keeps_the_finalizer() {
    let env = env_with_host().await;
    leave_image(&env, true).await;
    for (rejected, status) in [
        ("GET nodes/_/vmedia", 500),
        ("GET nodes/_", 503),
        ("GET nodes/_/vmedia", 400),
    ] {
        env.interceptor.log().rejected = Some((rejected, status));
        if is_gone::<DataImage>(&env, "host-1").await {
            leave_image(&env, true).await;
        }
        delete::<DataImage>(&env, "host-1").await;
        sleep(HOUR).await;
        let error = image_error(&env).await;
        assert!(is_report(&error), "{rejected}: {error}");
        env.interceptor.log().rejected = None;
        until_gone::<DataImage>(&env, "host-1").await;
    }
}

/// Marks an object as clusterctl does before it deletes it: all other annotations are gone.
pub(crate) async fn mark_as_moved<K: Object>(env: &TestEnv, name: &str) {
    let annotations =
        json!({ "baremetalhost.metal3.io/paused": null, "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
    let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
    env.api::<K>()
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

pub(crate) async fn pause(env: &TestEnv) {
    let paused = json!({ "baremetalhost.metal3.io/paused": "" });
    env.edit(1, json!({ "metadata": { "annotations": paused } })).await;
}

/// Deletes the host as clusterctl does after the host was created in another cluster.
pub(crate) async fn move_host(env: &TestEnv) {
    pause(env).await;
    mark_as_moved::<BareMetalHost>(env, "host-1").await;
    env.delete(1).await;
    env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
    assert!(env.get(1).await.is_none() && env.node(1).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn object_that_is_deleted_for_a_move_is_not_looked_for_in_ironic() {
    let env = env_with_host().await;
    leave_image(&env, true).await;
    mark_as_moved::<DataImage>(&env, "host-1").await;
    let asked = env.interceptor.log().asked.len();
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert_eq!(env.interceptor.log().asked.split_off(asked), Vec::<String>::new());
    let error = image_error(&env).await;
    assert!(error.contains("clusterctl moves it") && error.contains("; "), "{error}");
}

#[tokio::test(start_paused = true)]
async fn disc_of_a_host_that_is_deleted_for_a_move_is_kept() {
    let env = env_with_host().await;
    leave_image(&env, true).await;
    pause(&env).await;
    mark_as_moved::<BareMetalHost>(&env, "host-1").await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(HOUR).await;
    let error = image_error(&env).await;
    assert!(
        error.contains("clusterctl moves its host") && error.contains("; "),
        "{error}"
    );
}

/// During a move back, or while a backup is restored, the host exists later than its objects.
#[tokio::test(start_paused = true)]
async fn host_without_node_that_is_absent_for_a_moment_is_not_gone() {
    let env = env_with_host().await;
    leave_image(&env, true).await;
    move_host(&env).await;
    env.ironic.lose_database();
    delete::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    assert!(!is_gone::<DataImage>(&env, "host-1").await);
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn wait_for_a_paused_host_that_lasts_is_reported() {
    let env = env_with_host().await;
    pause(&env).await;
    leave_image(&env, true).await;
    delete::<DataImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    assert_eq!(image_error(&env).await, "", "a pause may be short");
    sleep(HOUR).await;
    let error = image_error(&env).await;
    assert!(
        error.contains("its host is paused; ") && error.contains("baremetalhost.metal3.io/paused"),
        "{error}"
    );
}

/// A node with the name of the host alone may be of a host in any namespace.
#[tokio::test(start_paused = true)]
async fn node_with_the_plain_name_of_an_absent_host_is_not_its_node() {
    let env = TestEnv::new(Setup {
        unserved: true,
        plain_node_names: true,
        ..Setup::default()
    });
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    env.machine(1, |machine| {
        machine.media = Some("http://ironic.example/boot.iso".to_owned())
    });
    leave_image(&env, true).await;
    let node = env.node(1).await.unwrap();
    move_host(&env).await;
    let body = json!([{ "op": "add", "path": "/name", "value": "host-1" }]).to_string();
    let request = http::Request::patch(format!("/v1/nodes/{}", node.uuid))
        .header("X-OpenStack-Ironic-API-Version", "1.95")
        .header("Content-Type", "application/json");
    let renamed = env.ironic.exchange(request.body(body.into_bytes()).unwrap()).await;
    assert!(renamed.unwrap().status().is_success());
    delete::<DataImage>(&env, "host-1").await;
    until_gone::<DataImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn objects_without_controller_are_reported_once_at_the_start() {
    let env = env().await;
    for number in 1..=3 {
        let settings = json!({ "metadata": { "name": format!("host-{number}") }, "spec": {} });
        env.make::<HostUpdatePolicy>(settings).await;
    }
    leave_image(&env, false).await;
    // The report follows the first lists.
    sleep(MINUTES).await;
    drop(env.events());
    env.cluster.reset_audit();
    env.interceptor.kill();
    sleep(MINUTES).await;
    let events = env.events();
    for text in [
        "no controller of this program serves a HostUpdatePolicy, and 3 exist",
        "no controller of this program serves a DataImage, and one exists",
    ] {
        assert_eq!(events.matches(text).count(), 1, "{text}: {events}");
    }
    assert_eq!(events.matches("KindUnserved").count(), 2, "{events}");
    let audit = env.cluster.audit();
    let counts: Vec<_> = audit.counts().collect();
    for resource in [
        "hostupdatepolicies",
        "hostclaims",
        "dataimages",
        "preprovisioningimages",
    ] {
        let of = |verb: &str| -> u64 {
            let own = counts
                .iter()
                .filter(|((user, found, kind), _)| *user == CONTROLLER_USER && *found == verb && *kind == resource);
            own.map(|(_, number)| *number).sum()
        };
        assert_eq!(of("list"), 1, "{resource}");
        assert_eq!(of("get") + of("patch") + of("update"), 0, "{resource}");
    }
    let api = env.api::<DataImage>();
    assert_eq!(
        api.get("host-1").await.unwrap().metadata.namespace.as_deref(),
        Some(NAMESPACE)
    );
}
