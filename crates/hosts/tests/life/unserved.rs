//! Objects of kinds without a controller, which the Go manager left with finalizers.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::Resource;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostDeployPolicy, PreprovisioningImage};
use metal3_runtime::guard::HOSTS;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, NAMESPACE, Setup, TestEnv};
use crate::waits::Writes;

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
pub(crate) async fn leave<K: Object>(env: &TestEnv, name: &str, finalizers: &[&str], spec: Value, status: Value) {
    let document = json!({ "metadata": { "name": name, "finalizers": finalizers }, "spec": spec });
    env.make::<K>(document).await;
    let patch = Patch::Merge(json!({ "status": status }));
    let api = env.api::<K>();
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn leave_image(env: &TestEnv) {
    let finalizers = [
        "preprovisioningimage.metal3.io",
        "baremetalhost.metal3.io/preprovisioningImage",
    ];
    leave::<PreprovisioningImage>(env, "host-1", &finalizers, json!({}), json!({})).await;
}

pub(crate) async fn delete<K: Object>(env: &TestEnv, name: &str) {
    env.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
}

pub(crate) async fn is_gone<K: Object>(env: &TestEnv, name: &str) -> bool {
    env.api::<K>().get_opt(name).await.unwrap().is_none()
}

pub(crate) async fn until_gone<K: Object>(env: &TestEnv, name: &str) {
    let (mut waited, mut writes) = (Duration::ZERO, Writes::default());
    while !writes.are_new(env) || !is_gone::<K>(env, name).await {
        assert!(waited < HOUR, "{:?}", env.api::<K>().get_opt(name).await);
        sleep(Duration::from_secs(1)).await;
        waited += Duration::from_secs(1);
    }
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
    leave_image(&env).await;
    sleep(MINUTES).await;
    assert!(
        !is_gone::<PreprovisioningImage>(&env, "host-1").await,
        "it is not deleted"
    );
    delete::<PreprovisioningImage>(&env, "host-1").await;
    sleep(MINUTES).await;
    assert!(
        !is_gone::<PreprovisioningImage>(&env, "host-1").await,
        "its builder has time"
    );
    until_gone::<PreprovisioningImage>(&env, "host-1").await;
}

#[tokio::test(start_paused = true)]
async fn running_go_manager_keeps_its_objects() {
    let env = env_with_host().await;
    go_manager(&env, 1).await;
    leave_image(&env).await;
    delete::<PreprovisioningImage>(&env, "host-1").await;
    sleep(HOUR).await;
    assert!(!is_gone::<PreprovisioningImage>(&env, "host-1").await);
    go_manager(&env, 0).await;
    until_gone::<PreprovisioningImage>(&env, "host-1").await;
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
async fn objects_without_controller_are_reported_once_at_the_start() {
    let env = env().await;
    for number in 1..=3 {
        let settings = json!({ "metadata": { "name": format!("host-{number}") }, "spec": {} });
        env.make::<HostDeployPolicy>(settings).await;
    }
    leave_image(&env).await;
    // The report follows the first lists.
    sleep(MINUTES).await;
    drop(env.events());
    env.cluster.reset_audit();
    env.interceptor.kill();
    sleep(MINUTES).await;
    let events = env.events();
    for text in [
        "no controller serves a HostDeployPolicy without --hostclaims, and 3 exist",
        "no controller of this program serves a PreprovisioningImage, and one exists",
    ] {
        assert_eq!(events.matches(text).count(), 1, "{text}: {events}");
    }
    assert_eq!(events.matches("KindUnserved").count(), 2, "{events}");
    let audit = env.cluster.audit();
    let counts: Vec<_> = audit.counts().collect();
    for resource in ["hostdeploypolicies", "hostclaims", "preprovisioningimages"] {
        let of = |verb: &str| -> u64 {
            let own = counts
                .iter()
                .filter(|((user, found, kind), _)| *user == CONTROLLER_USER && *found == verb && *kind == resource);
            own.map(|(_, number)| *number).sum()
        };
        assert_eq!(of("list"), 1, "{resource}");
        assert_eq!(of("get") + of("patch") + of("update"), 0, "{resource}");
    }
    let api = env.api::<PreprovisioningImage>();
    assert_eq!(
        api.get("host-1").await.unwrap().metadata.namespace.as_deref(),
        Some(NAMESPACE)
    );
}

#[tokio::test(start_paused = true)]
async fn switches_are_reported_unless_a_controller_serves_them() {
    let text = "no controller serves a BareMetalSwitch without IRONIC_NETWORKING_ENABLED, and one exists";
    for (switches, reports) in [(None, 1), (Some(crate::switches::outputs()), 0)] {
        let env = TestEnv::new(Setup {
            unserved: true,
            switches,
            ..Setup::default()
        });
        crate::switches::switch(&env, "a", 1).await;
        sleep(MINUTES).await;
        drop(env.events());
        env.interceptor.kill();
        sleep(MINUTES).await;
        let events = env.events();
        assert_eq!(events.matches(text).count(), reports, "{events}");
        assert_eq!(events.matches("BareMetalSwitch").count() > 0, reports > 0, "{events}");
    }
}
