//! Images from registries.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};

const IMAGE: &str = "oci://registry.example/team/os:v1";

fn image(url: &str, secret: Option<&str>) -> Value {
    json!({ "online": true, "image": { "url": url, "ociAuthSecretName": secret, "checksum": null, "checksumType": null } })
}

fn logins(password: &str) -> Value {
    let logins = json!({ "auths": { "https://registry.example/": { "username": "u", "password": password } } });
    json!({ "stringData": { ".dockerconfigjson": logins.to_string() } })
}

async fn make_logins(env: &TestEnv, password: &str) {
    let mut secret = logins(password);
    secret["metadata"] = json!({ "name": "registry" });
    secret["type"] = json!("kubernetes.io/dockerconfigjson");
    env.make::<Secret>(secret).await;
}

async fn change_logins(env: &TestEnv, password: &str) {
    let changed = Patch::Merge(logins(password));
    let secrets = env.api::<Secret>();
    secrets
        .patch("registry", &PatchParams::default(), &changed)
        .await
        .unwrap();
}

async fn until_error(env: &TestEnv, words: &str) {
    let has = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_message.contains(words));
    env.until(1, words, has).await;
}

async fn runs(env: &TestEnv, source: &str) {
    env.until_state(1, "provisioned").await;
    let disk = env.machine(1, |machine| machine.disk.clone()).unwrap();
    assert_eq!(disk.source, source);
    let node = env.node(1).await.unwrap();
    assert_eq!(node.instance_info.text("image_source"), Some(source));
}

#[tokio::test(start_paused = true)]
async fn image_of_a_registry_needs_neither_checksum_nor_secret_and_may_be_named_in_any_case() {
    for url in ["oci://registry.example/os", "OCI://registry.example/os"] {
        let env = TestEnv::new(Setup::default());
        env.host(1, image(url, None)).await;
        runs(&env, "oci://registry.example/os").await;
        let before = env.node(1).await.unwrap().updated_at;
        sleep(Duration::from_mins(30)).await;
        assert_eq!(env.node(1).await.unwrap().updated_at, before, "it is left alone");
    }
}

#[tokio::test(start_paused = true)]
async fn image_of_a_registry_with_a_login_is_deployed_once_the_secret_has_it() {
    let env = TestEnv::new(Setup::default());
    env.ironic.require_login("registry.example", "u:right");
    env.host(1, image(IMAGE, Some("registry"))).await;
    until_error(&env, "Secret registry for the image does not exist").await;
    make_logins(&env, "wrong").await;
    until_error(&env, "requires another login").await;
    change_logins(&env, "right").await;
    runs(&env, IMAGE).await;
    let status = serde_json::to_string(&env.get(1).await).unwrap();
    assert!(!status.contains("u:right"), "{status}");
}

/// The node has the old login, which Ironic does not show, and its deployment has not begun.
#[tokio::test(start_paused = true)]
async fn login_that_changes_between_its_request_and_the_deployment_is_sent_again() {
    let env = TestEnv::new(Setup::default());
    env.ironic.require_login("registry.example", "u:right");
    make_logins(&env, "wrong").await;
    env.host(1, json!({ "online": true })).await;
    env.until_state(1, "available").await;
    let before = env.interceptor.log().asked.len();
    env.interceptor.log().late = Some("GET nodes/_/validate");
    env.edit(1, json!({ "spec": image(IMAGE, Some("registry")) })).await;
    let is_validation = |asked: &String| asked.ends_with("validate");
    while !env.interceptor.log().asked[before..].iter().any(is_validation) {
        sleep(Duration::from_millis(100)).await;
    }
    change_logins(&env, "right").await;
    runs(&env, IMAGE).await;
    assert_eq!(env.machine(1, |machine| machine.counts.written), 1);
    let events = env.events();
    assert!(!events.contains("ProvisioningError"), "{events}");
}
