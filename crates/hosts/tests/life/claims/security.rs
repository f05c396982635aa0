//! What a tenant, and who writes hosts, cannot do with claims.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use super::tenant::{NAMESPACE, Tenant, condition, image, reason, status_of};
use super::{HOUR, MINUTES};
use crate::env::PASSWORD;

#[tokio::test(start_paused = true)]
async fn consumer_that_a_user_wrote_into_a_host_is_not_served_without_a_policy() {
    let tenant = Tenant::new().await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    let record = json!({ "claim": "tenant/c", "cleaning": "disabled", "at": "2020-01-01T00:00:00Z" }).to_string();
    let consumer =
        json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": "tenant" });
    tenant
        .env
        .edit(
            1,
            json!({ "metadata": { "annotations": { "hostclaim.metal3.io/bond": record } }, "spec": { "consumerRef": consumer } }),
        )
        .await;
    sleep(HOUR).await;
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.spec.image.is_none(), "nothing is applied");
    assert!(tenant.get("c").await.status.bare_metal_host.is_none());
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert!(
        tenant.env.get(1).await.unwrap().spec.consumer_ref.is_some(),
        "nothing is changed"
    );
}

#[tokio::test(start_paused = true)]
async fn host_in_use_that_names_a_claim_is_not_erased_for_it() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.env.edit(1, json!({ "spec": { "image": image() } })).await;
    tenant.env.until_state(1, "provisioned").await;
    let consumer =
        json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": "tenant" });
    tenant.env.edit(1, json!({ "spec": { "consumerRef": consumer } })).await;
    tenant.claim("c", json!({ "poweredOn": false })).await;
    sleep(HOUR).await;
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.spec.image.is_some() && host.spec.online, "{:?}", host.spec);
}

#[tokio::test(start_paused = true)]
async fn revoked_policy_changes_and_erases_nothing_and_is_reported() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_ready("c").await;
    tenant.close().await;
    tenant
        .patch("c", json!({ "spec": { "poweredOn": false, "image": null } }))
        .await;
    sleep(HOUR).await;
    let claim = tenant.get("c").await;
    assert_eq!(
        reason(&claim, "Synchronized"),
        "HostDeployPolicyMissing",
        "{}",
        status_of(&claim)
    );
    let before = tenant.env.get(1).await.unwrap();
    assert!(
        before.spec.image.is_some() && before.spec.online,
        "nothing new is applied"
    );
    tenant.delete("c").await;
    tenant.env.interceptor.kill();
    sleep(HOUR).await;
    let after = tenant.env.get(1).await.unwrap();
    assert!(
        after.spec.image.is_some() && after.spec.consumer_ref.is_some(),
        "nothing is erased"
    );
    assert_eq!(reason(&tenant.get("c").await, "Associated"), "HostClaimDeletionFailed");
    tenant.open(json!({ "names": [NAMESPACE] })).await;
    tenant.until_gone("c").await;
    assert!(tenant.env.get(1).await.unwrap().spec.consumer_ref.is_none());
}

#[tokio::test(start_paused = true)]
async fn cleaning_that_is_disabled_during_the_use_does_not_hand_the_disk_on() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_ready("c").await;
    let erased = || {
        tenant
            .env
            .machine(1, |machine| (machine.counts.erased, machine.disk.is_none()))
    };
    let (before, _) = erased();
    tenant
        .env
        .edit(1, json!({ "spec": { "automatedCleaningMode": "disabled" } }))
        .await;
    sleep(MINUTES).await;
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    let (after, is_clean) = erased();
    assert!(after > before && is_clean, "{before} {after} {is_clean}");
}

#[tokio::test(start_paused = true)]
async fn cleaning_that_was_disabled_before_is_not_done() {
    let tenant = Tenant::new().await;
    tenant
        .env
        .edit(1, json!({ "spec": { "automatedCleaningMode": "disabled" } }))
        .await;
    sleep(MINUTES).await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_ready("c").await;
    let erased = tenant.env.machine(1, |machine| machine.counts.erased);
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert_eq!(tenant.env.machine(1, |machine| machine.counts.erased), erased);
}

#[tokio::test(start_paused = true)]
async fn names_that_are_paths_are_not_read() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    let consumer = json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "../secrets/x",
        "namespace": "a/../kube-system" });
    tenant.env.edit(1, json!({ "spec": { "consumerRef": consumer } })).await;
    tenant
        .claim(
            "c",
            json!({ "poweredOn": true, "image": image(), "userData": { "name": "../x" } }),
        )
        .await;
    let forged = json!({ "status": { "bareMetalHost": { "namespace": "a/../kube-system", "name": "../secrets/x" } } });
    let claims = tenant.claims(NAMESPACE);
    claims
        .patch_status("c", &PatchParams::default(), &Patch::Merge(forged))
        .await
        .unwrap();
    sleep(HOUR).await;
    let audit = tenant.env.cluster.audit();
    let asked: Vec<String> = audit.counts().map(|(count, _)| format!("{count:?}")).collect();
    assert!(!asked.iter().any(|one| one.contains("..")), "{asked:?}");
    tenant.delete("c").await;
    tenant.until_gone("c").await;
}

#[tokio::test(start_paused = true)]
async fn errors_and_bmc_of_the_host_are_in_no_object_of_the_tenant() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_bound("c").await;
    tenant.env.set_faults(1, &[metal3_sim_bmc::fault::Fault::DeadBmc]);
    sleep(HOUR).await;
    let host = tenant.env.get(1).await.unwrap();
    assert!(!host.status.error_message.is_empty(), "the host has an error");
    let claim = tenant.get("c").await;
    let events = tenant.env.events();
    let of_claim: Vec<&str> = events.split("Event").filter(|one| one.contains("HostClaim")).collect();
    let shown = format!("{} {of_claim:?}", serde_json::to_string(&claim).unwrap());
    for canary in ["10.0.0", "redfish", "bmc-1", PASSWORD, &host.status.error_message] {
        assert!(!shown.contains(canary), "{canary}: {shown}");
    }
    assert_eq!(condition(&claim, "Ready"), "False");
}

#[tokio::test(start_paused = true)]
async fn bad_policy_hurts_only_itself_and_expressions_match_whole_names() {
    let tenant = Tenant::new().await;
    for (number, expression) in ["(", "a)|(tenant", "tena", "(((x{1000}){1000}){1000})"]
        .iter()
        .enumerate()
    {
        let accepted = json!({ "hostClaimNamespaces": { "nameMatches": expression } });
        tenant.policy(&format!("p{number}"), accepted).await;
    }
    tenant.claim("c", json!({ "poweredOn": true })).await;
    sleep(HOUR).await;
    assert!(tenant.get("c").await.status.bare_metal_host.is_none());
    tenant.open(json!({ "nameMatches": "ten.*t" })).await;
    tenant.until_bound("c").await;
}

#[tokio::test(start_paused = true)]
async fn labels_of_a_namespace_count_as_they_are_now() {
    let tenant = Tenant::new().await;
    tenant.namespace(NAMESPACE, json!({ "team": "blue" })).await;
    tenant
        .open(json!({ "hasLabels": [{ "name": "team", "value": "blue" }] }))
        .await;
    tenant.claim("c", json!({ "poweredOn": true })).await;
    tenant.until_bound("c").await;
    let all: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(tenant.env.cluster.client("admin"));
    let relabelled = Patch::Merge(json!({ "metadata": { "labels": { "team": "red" } } }));
    all.patch(NAMESPACE, &PatchParams::default(), &relabelled)
        .await
        .unwrap();
    tenant.patch("c", json!({ "spec": { "image": image() } })).await;
    sleep(HOUR).await;
    assert!(tenant.env.get(1).await.unwrap().spec.image.is_none());
    assert_eq!(
        reason(&tenant.get("c").await, "Synchronized"),
        "HostDeployPolicyMissing"
    );
}
