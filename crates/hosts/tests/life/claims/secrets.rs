//! Secrets of a claim: copied, rotated until the host is provisioned, and emptied when it is released.

use k8s_openapi::api::core::v1::Secret;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::tenant::{NAMESPACE, Tenant, condition, image, reason, status_of};
use super::{HOUR, MINUTES};

fn spec(image: &Value) -> Value {
    json!({ "poweredOn": true, "image": image, "userData": { "name": "user" }, "networkData": { "name": "net" },
        "metaData": { "name": "meta", "namespace": NAMESPACE } })
}

async fn secrets(tenant: &Tenant) {
    tenant
        .secret(
            NAMESPACE,
            "user",
            "Opaque",
            json!({ "userData": "#cloud-config canary-user" }),
        )
        .await;
    tenant
        .secret(NAMESPACE, "net", "Opaque", json!({ "networkData": "{\"links\":[]}" }))
        .await;
    tenant
        .secret(
            NAMESPACE,
            "meta",
            "Opaque",
            json!({ "metaData": "{\"name\":\"canary-meta\"}" }),
        )
        .await;
}

async fn copy(tenant: &Tenant, which: &str) -> Option<Secret> {
    let name = format!("host-1.claim-{which}");
    tenant.secrets("default").get_opt(&name).await.unwrap()
}

fn content(secret: &Secret) -> String {
    let values = secret.data.iter().flatten();
    values
        .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(&value.0)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn secrets_are_copied_reach_the_machine_and_are_emptied_at_the_release() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    secrets(&tenant).await;
    tenant.claim("c", spec(&image())).await;
    let claim = tenant.until_ready("c").await;
    let drive = tenant
        .env
        .machine(1, |machine| machine.disk.clone())
        .unwrap()
        .config_drive;
    let drive = serde_json::to_string(&drive).unwrap();
    assert!(
        drive.contains("canary-user") && drive.contains("canary-meta"),
        "{drive}"
    );
    let user = copy(&tenant, "user-data").await.unwrap();
    let owner = user.metadata.owner_references.clone().unwrap().remove(0);
    assert_eq!((owner.kind.as_str(), owner.controller), ("BareMetalHost", Some(true)));
    let shown = format!("{} {}", status_of(&claim), tenant.env.events());
    assert!(!shown.contains("canary-"), "{shown}");
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    for which in ["user-data", "network-data", "meta-data"] {
        let left = copy(&tenant, which).await.unwrap();
        assert_eq!(content(&left), "", "{which}");
        assert!(
            !left
                .metadata
                .annotations
                .unwrap_or_default()
                .contains_key("hostclaim.metal3.io/copy-of")
        );
    }
    let host = tenant.env.get(1).await.unwrap();
    assert_eq!(
        (host.spec.user_data, host.spec.network_data, host.spec.meta_data),
        (None, None, None)
    );
}

#[tokio::test(start_paused = true)]
async fn missing_secret_holds_the_deployment_up_and_a_rotated_one_is_copied_until_then() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant
        .claim(
            "c",
            json!({ "poweredOn": true, "image": image(), "userData": { "name": "user" } }),
        )
        .await;
    sleep(MINUTES).await;
    let claim = tenant.get("c").await;
    assert_eq!(reason(&claim, "Synchronized"), "UserDataSecretSyncFailure");
    assert!(tenant.env.get(1).await.unwrap().spec.image.is_none());
    tenant
        .secret(NAMESPACE, "user", "Opaque", json!({ "userData": "first" }))
        .await;
    sleep(std::time::Duration::from_secs(2)).await;
    assert_eq!(content(&copy(&tenant, "user-data").await.unwrap()), "userData=first");
    let rotated = json!({ "data": null, "stringData": { "value": "second" } });
    let patch = kube::api::Patch::Merge(rotated);
    let secrets = tenant.secrets(NAMESPACE);
    secrets
        .patch("user", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    sleep(std::time::Duration::from_secs(2)).await;
    let rotated = content(&copy(&tenant, "user-data").await.unwrap());
    assert!(rotated.contains("second"), "{rotated}");
    tenant.until_ready("c").await;
    secrets
        .delete("user", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    sleep(HOUR).await;
    assert_eq!(condition(&tenant.get("c").await, "Ready"), "True", "it is deployed");
}

#[tokio::test(start_paused = true)]
async fn planted_secret_is_neither_written_nor_used() {
    let tenant = Tenant::without_host();
    tenant
        .secret(
            "default",
            "host-1.claim-user-data",
            "Opaque",
            json!({ "userData": "planted" }),
        )
        .await;
    tenant.env.host(1, json!({})).await;
    tenant.env.until_state(1, "available").await;
    tenant.open(json!({})).await;
    tenant
        .secret(NAMESPACE, "user", "Opaque", json!({ "userData": "own" }))
        .await;
    tenant
        .claim(
            "c",
            json!({ "poweredOn": true, "image": image(), "userData": { "name": "user" } }),
        )
        .await;
    sleep(HOUR).await;
    let claim = tenant.get("c").await;
    assert!(
        status_of(&claim).contains("a Secret with the name of the copy exists"),
        "{}",
        status_of(&claim)
    );
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.spec.image.is_none() && host.spec.user_data.is_none());
    assert_eq!(content(&copy(&tenant, "user-data").await.unwrap()), "userData=planted");
}

#[tokio::test(start_paused = true)]
async fn secret_of_a_bmc_of_a_copy_or_of_another_namespace_is_not_copied() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    // A claim in the namespace of the hosts: the login of a BMC would reach its machine.
    let own = |name: &str, secret: &str| {
        json!({ "metadata": { "name": name }, "spec": { "poweredOn": true, "image": image(),
            "userData": { "name": secret } } })
    };
    tenant
        .env
        .make::<metal3_api::metal3::v1alpha1::HostClaim>(own("c", "bmc-1"))
        .await;
    sleep(HOUR).await;
    let claim = tenant.claims("default").get("c").await.unwrap();
    assert!(
        status_of(&claim).contains("is the login of a BMC"),
        "{}",
        status_of(&claim)
    );
    assert!(copy(&tenant, "user-data").await.is_none());
    let elsewhere = json!({ "spec": { "userData": { "name": "user", "namespace": "kube-system" } } });
    let patch = kube::api::Patch::Merge(elsewhere);
    let claims = tenant.claims("default");
    claims
        .patch("c", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    sleep(MINUTES).await;
    let claim = claims.get("c").await.unwrap();
    assert!(
        status_of(&claim).contains("names another namespace"),
        "{}",
        status_of(&claim)
    );
}

#[tokio::test(start_paused = true)]
async fn registry_login_is_that_of_the_claim_and_never_one_of_the_hosts() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    let login = json!({ ".dockerconfigjson": "{\"auths\":{\"registry.example\":{\"auth\":\"dTpw\"}}}" });
    let kind = "kubernetes.io/dockerconfigjson";
    tenant.secret("default", "pull", kind, login.clone()).await;
    let image = json!({ "url": "oci://registry.example/os:1", "ociAuthSecretName": "pull" });
    tenant.claim("c", json!({ "poweredOn": true, "image": image })).await;
    sleep(MINUTES).await;
    let claim = tenant.get("c").await;
    assert_eq!(
        reason(&claim, "Synchronized"),
        "RegistryLoginSecretSyncFailure",
        "{}",
        status_of(&claim)
    );
    assert!(tenant.env.get(1).await.unwrap().spec.image.is_none());
    tenant.secret(NAMESPACE, "pull", kind, login).await;
    tenant
        .until("c", "a copy", |claim| condition(claim, "Synchronized") == "True")
        .await;
    let host: BareMetalHost = tenant.env.get(1).await.unwrap();
    let name = host.spec.image.unwrap().oci_auth_secret_name;
    assert_eq!(name.as_deref(), Some("host-1.claim-registry-login"));
}
