//! Bonds: what users write into hosts and claims, what interrupted processes leave, and how a bond ends.

use std::time::Duration;

use kube::api::{Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, HostDeployPolicy};
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::tenant::{NAMESPACE, Tenant, condition, image, reason, status_of};
use super::{HOUR, MINUTES};
use crate::env::CONTROLLER_USER;

const TRACE: &str = "hostclaim.metal3.io/host";
const RECORD: &str = "hostclaim.metal3.io/bond";
/// An identifier that this program might have written.
const ID: &str = "0123456789abcdef0123456789abcdef01234567";

fn consumer() -> Value {
    json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": "c", "namespace": NAMESPACE })
}

fn wanting() -> Value {
    json!({ "poweredOn": true, "image": image() })
}

fn member(text: Option<&str>, name: &str) -> String {
    let document: Value = serde_json::from_str(text.unwrap_or_default()).unwrap_or_default();
    document[name].as_str().unwrap_or_default().to_owned()
}

fn trace(claim: &HostClaim) -> Option<String> {
    claim.metadata.annotations.as_ref()?.get(TRACE).cloned()
}

async fn ready() -> Tenant {
    let tenant = Tenant::new().await;
    tenant.open(json!({ "names": [NAMESPACE] })).await;
    tenant.claim("c", wanting()).await;
    tenant.until_ready("c").await;
    tenant
}

/// Deletes the claim without a release of its host, as a tool does that strips finalizers.
async fn strip(tenant: &Tenant) {
    tenant.close().await;
    tenant.delete("c").await;
    sleep(MINUTES).await;
    tenant.patch("c", json!({ "metadata": { "finalizers": null } })).await;
    tenant.until_gone("c").await;
    tenant.open(json!({ "names": [NAMESPACE] })).await;
}

/// Replaces the claim by another object of its name.
async fn replace(tenant: &Tenant, annotations: Value) {
    strip(tenant).await;
    let document = json!({ "metadata": { "name": "c", "annotations": annotations }, "spec": wanting() });
    let claim = serde_json::from_value(document).unwrap();
    let claims = tenant.claims(NAMESPACE);
    claims.create(&PostParams::default(), &claim).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn record_of_a_stranger_in_any_namespace_neither_stops_nor_gets_a_claim() {
    let tenant = Tenant::new().await;
    tenant.namespace("aaa", json!({})).await;
    tenant.namespace(NAMESPACE, json!({})).await;
    let record =
        json!({ "claim": "tenant/c", "id": ID, "uid": "u", "cleaning": "disabled", "at": "2020-01-01T00:00:00Z" });
    let forged = json!({ "metadata": { "name": "aaa", "annotations": { RECORD: record.to_string() } },
        "spec": { "online": true, "consumerRef": consumer() } });
    let hosts: kube::Api<BareMetalHost> = kube::Api::namespaced(tenant.env.cluster.client("admin"), "aaa");
    let forged = serde_json::from_value(forged).unwrap();
    hosts.create(&PostParams::default(), &forged).await.unwrap();
    let policies: kube::Api<HostDeployPolicy> = kube::Api::namespaced(tenant.env.cluster.client("admin"), "aaa");
    let policy = json!({ "metadata": { "name": "p" }, "spec": { "hostClaimNamespaces": {} } });
    let policy = serde_json::from_value(policy).unwrap();
    policies.create(&PostParams::default(), &policy).await.unwrap();
    sleep(MINUTES).await;
    tenant.open(json!({})).await;
    tenant.claim("c", wanting()).await;
    let claim = tenant.until_ready("c").await;
    assert_eq!(claim.status.bare_metal_host.unwrap().namespace, "default");
    let found = hosts.get("aaa").await.unwrap();
    assert!(found.spec.image.is_none(), "it gets nothing");
    assert!(
        tenant.env.events().contains("nothing releases it"),
        "its administrators are notified"
    );
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert!(hosts.get("aaa").await.unwrap().spec.consumer_ref.is_some());
}

#[tokio::test(start_paused = true)]
async fn consumer_that_is_removed_by_hand_ends_the_promise_and_leaves_nothing() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant
        .secret(NAMESPACE, "user", "Opaque", json!({ "userData": "canary" }))
        .await;
    let spec = json!({ "poweredOn": true, "image": image(), "userData": { "name": "user" } });
    tenant.claim("c", spec).await;
    tenant.until_ready("c").await;
    tenant.annotate("c", json!({ "reboot.metal3.io/work": "" })).await;
    sleep(MINUTES).await;
    tenant.close().await;
    tenant.delete("c").await;
    sleep(MINUTES).await;
    assert_eq!(reason(&tenant.get("c").await, "Associated"), "HostClaimDeletionFailed");
    tenant.env.edit(1, json!({ "spec": { "consumerRef": null } })).await;
    tenant.until_gone("c").await;
    sleep(MINUTES).await;
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.spec.image.is_some() && host.annotation("reboot.metal3.io/hostclaim-work").is_none());
    let counts = || {
        tenant
            .env
            .machine(1, |machine| (machine.counts.erased, machine.disk.is_none()))
    };
    let (before, _) = counts();
    tenant
        .env
        .edit(1, json!({ "spec": { "image": null, "userData": null } }))
        .await;
    tenant.env.until_state(1, "available").await;
    let (after, is_clean) = counts();
    assert!(after > before && is_clean, "what the tenant left is cleaned once");
    sleep(MINUTES).await;
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.annotation(RECORD).is_none(), "{:?}", host.metadata.annotations);
    let copy = tenant.secrets("default").get("host-1.claim-user-data").await.unwrap();
    assert!(copy.data.unwrap_or_default().is_empty());
    let own = json!({ "spec": { "automatedCleaningMode": "disabled", "online": true, "image": image() } });
    tenant.env.edit(1, own).await;
    tenant.env.until_state(1, "provisioned").await;
    tenant.env.edit(1, json!({ "spec": { "image": null } })).await;
    tenant.env.until_state(1, "available").await;
    assert_eq!(counts().0, after, "the owner's disks are cleaned as he says");
}

#[tokio::test(start_paused = true)]
async fn claim_without_its_finalizer_is_shown_to_the_administrators_of_its_host() {
    let tenant = ready().await;
    drop(tenant.env.events());
    strip(&tenant).await;
    sleep(MINUTES).await;
    let events = tenant.env.events();
    assert!(
        events.contains("HostClaimAbsent") && events.contains("host-1"),
        "{events}"
    );
    sleep(2 * HOUR).await;
    assert!(tenant.env.events().contains("HostClaimAbsent"), "again, while it lasts");
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.spec.image.is_some(), "nothing is erased because of an absence");
}

#[tokio::test(start_paused = true)]
async fn new_claim_of_the_name_gets_another_host_and_never_the_former_disk() {
    let tenant = ready().await;
    replace(&tenant, json!({})).await;
    sleep(HOUR).await;
    let claim = tenant.get("c").await;
    assert_eq!(reason(&claim, "Ready"), "NoBareMetalHost", "{}", status_of(&claim));
    tenant.env.host(2, json!({})).await;
    let claim = tenant.until_ready("c").await;
    assert_eq!(claim.status.bare_metal_host.unwrap().name, "host-2");
    let former = tenant.env.get(1).await.unwrap();
    assert!(former.spec.image.is_some() && former.spec.consumer_ref.is_some());
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert!(tenant.env.get(1).await.unwrap().spec.image.is_some());
}

#[tokio::test(start_paused = true)]
async fn restored_claim_has_its_host_and_nothing_is_deployed_again() {
    let tenant = ready().await;
    let text = trace(&tenant.get("c").await).unwrap();
    replace(&tenant, json!({ TRACE: text })).await;
    tenant.env.host(2, json!({})).await;
    let claim = tenant.until_ready("c").await;
    assert_eq!(claim.status.bare_metal_host.unwrap().name, "host-1");
    assert_eq!(tenant.env.machine(1, |machine| machine.counts.written), 1);
    let host = tenant.env.get(1).await.unwrap();
    assert_eq!(member(host.annotation(RECORD), "uid"), claim.metadata.uid.unwrap());
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert!(tenant.env.machine(1, |machine| machine.disk.is_none()));
}

#[tokio::test(start_paused = true)]
async fn trace_that_a_tool_removes_comes_back_and_no_second_host_is_bound() {
    let tenant = ready().await;
    tenant.env.host(2, json!({})).await;
    tenant.env.until_state(2, "available").await;
    let before = trace(&tenant.get("c").await);
    for forged in [
        Value::Null,
        json!("{"),
        json!({ "claim": "tenant/c", "host": "default/host-2", "id": ID, "uid": "y" })
            .to_string()
            .into(),
        json!({ "claim": "tenant/c", "host": "default/host-1", "id": ID, "uid": "y" })
            .to_string()
            .into(),
        json!({ "claim": "tenant/c", "host": "kube-system/x", "id": ID, "uid": "y" })
            .to_string()
            .into(),
    ] {
        tenant.annotate("c", json!({ TRACE: forged })).await;
        sleep(MINUTES).await;
        let claim = tenant.get("c").await;
        let ids = |text: &Option<String>| member(text.as_deref(), "id");
        assert_eq!(ids(&trace(&claim)), ids(&before), "{forged}");
        assert_eq!(condition(&claim, "Ready"), "True", "{forged}");
    }
    assert!(tenant.env.get(2).await.unwrap().spec.consumer_ref.is_none());
    tenant.annotate("c", json!({ TRACE: null })).await;
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert!(tenant.env.get(1).await.unwrap().spec.image.is_none());
}

#[tokio::test(start_paused = true)]
async fn claim_is_not_let_go_when_a_crash_kept_its_host_out_of_its_status() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    // The bind of this controller; the status is written next, before the host gets anything.
    let rule = Rule::at(1, Fault::CrashBefore)
        .verb("patch")
        .resource("hostclaims/status");
    tenant
        .env
        .cluster
        .inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    tenant.claim("c", wanting()).await;
    sleep(Duration::from_millis(200)).await;
    tenant.close().await;
    tenant.delete("c").await;
    sleep(HOUR).await;
    let claim = tenant.get("c").await;
    assert_eq!(
        reason(&claim, "Associated"),
        "HostClaimDeletionFailed",
        "{}",
        status_of(&claim)
    );
    tenant.open(json!({})).await;
    tenant.until_gone("c").await;
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.spec.consumer_ref.is_none() && host.spec.image.is_none());
    assert!(tenant.env.machine(1, |machine| machine.disk.is_none()));
}

#[tokio::test(start_paused = true)]
async fn host_that_may_not_be_powered_off_is_released() {
    let tenant = Tenant::new().await;
    tenant.env.admit();
    tenant
        .env
        .edit(1, json!({ "spec": { "disablePowerOff": true, "online": true } }))
        .await;
    tenant.open(json!({})).await;
    tenant.claim("c", wanting()).await;
    tenant.until_ready("c").await;
    tenant.patch("c", json!({ "spec": { "poweredOn": false } })).await;
    tenant
        .until("c", "a condition", |claim| condition(claim, "Synchronized") == "False")
        .await;
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    let host = tenant.env.get(1).await.unwrap();
    assert!(host.spec.image.is_none() && host.spec.online);
}

#[tokio::test(start_paused = true)]
async fn host_that_an_overtaken_process_bound_is_given_back_and_one_in_use_is_not() {
    let tenant = ready().await;
    let first = tenant.env.get(1).await.unwrap();
    let record = first.annotation(RECORD).unwrap().to_owned();
    let stolen = json!({ "metadata": { "annotations": { RECORD: record } }, "spec": { "consumerRef": consumer() } });
    tenant.env.host(2, json!({})).await;
    tenant.env.until_state(2, "available").await;
    tenant.env.edit(2, stolen.clone()).await;
    sleep(MINUTES).await;
    let second = tenant.env.get(2).await.unwrap();
    assert!(second.spec.consumer_ref.is_none() && second.annotation(RECORD).is_none());
    tenant
        .env
        .edit(2, json!({ "spec": { "online": true, "image": image() } }))
        .await;
    tenant.env.until_state(2, "provisioned").await;
    tenant.env.edit(2, stolen).await;
    sleep(MINUTES).await;
    let second = tenant.env.get(2).await.unwrap();
    assert!(second.spec.consumer_ref.is_some() && second.spec.image.is_some());
    let claim = tenant.get("c").await;
    assert!(
        status_of(&claim).contains("another host carries the bond"),
        "{}",
        status_of(&claim)
    );
    assert_eq!(claim.status.bare_metal_host.unwrap().name, "host-1");
}

#[tokio::test(start_paused = true)]
async fn unreadable_record_keeps_a_claim_until_its_host_is_cleaned() {
    let tenant = ready().await;
    let disabled =
        json!({ "metadata": { "annotations": { RECORD: "{" } }, "spec": { "automatedCleaningMode": "disabled" } });
    tenant.env.edit(1, disabled).await;
    sleep(MINUTES).await;
    assert_eq!(reason(&tenant.get("c").await, "Associated"), "BareMetalHostNotBound");
    let erased = tenant.env.machine(1, |machine| machine.counts.erased);
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert!(tenant.env.machine(1, |machine| machine.counts.erased) > erased);
    let tenant = ready().await;
    tenant
        .env
        .edit(1, json!({ "metadata": { "annotations": { RECORD: null } } }))
        .await;
    tenant.delete("c").await;
    sleep(HOUR).await;
    let claim = tenant.get("c").await;
    assert_eq!(reason(&claim, "Associated"), "HostClaimDeletionFailed");
    tenant.env.edit(1, json!({ "spec": { "image": null } })).await;
    tenant.until_gone("c").await;
    assert!(tenant.env.get(1).await.unwrap().spec.consumer_ref.is_none());
}

#[tokio::test(start_paused = true)]
async fn policies_of_a_namespace_count_up_to_a_number() {
    let tenant = Tenant::new().await;
    for number in 0..40 {
        let closed = json!({ "hostClaimNamespaces": { "nameMatches": "(\\w{9}|x){40}" } });
        tenant.policy(&format!("p{number:02}"), closed).await;
    }
    tenant.policy("z", json!({ "hostClaimNamespaces": {} })).await;
    tenant.claim("c", json!({ "poweredOn": true })).await;
    sleep(HOUR).await;
    assert_eq!(reason(&tenant.get("c").await, "Associated"), "NoBareMetalHost");
    tenant.policy("a", json!({ "hostClaimNamespaces": {} })).await;
    tenant.until_bound("c").await;
}

#[tokio::test(start_paused = true)]
async fn name_of_a_host_in_a_trace_alone_shows_nothing_of_it() {
    let tenant = Tenant::new().await;
    tenant.open(json!({ "names": ["other"] })).await;
    tenant.claim("c", json!({ "poweredOn": true })).await;
    let uid = tenant.get("c").await.metadata.uid.unwrap();
    let mut shown = Vec::new();
    for host in ["default/host-1", "default/absent"] {
        let forged = json!({ "claim": "tenant/c", "host": host, "id": ID, "uid": uid }).to_string();
        tenant.annotate("c", json!({ TRACE: forged })).await;
        sleep(MINUTES).await;
        let conditions = tenant.get("c").await.status.conditions;
        let texts = conditions.into_iter().map(|one| (one.type_, one.reason, one.message));
        shown.push(texts.collect::<Vec<_>>());
    }
    assert_eq!(shown.first(), shown.last());
    let patch = Patch::Merge(json!({ "status": { "bareMetalHost": { "namespace": "default", "name": "host-1" } } }));
    let claims = tenant.claims(NAMESPACE);
    claims.patch_status("c", &PatchParams::default(), &patch).await.unwrap();
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    assert!(tenant.env.get(1).await.unwrap().spec.consumer_ref.is_none());
}

#[tokio::test(start_paused = true)]
async fn refused_bind_is_no_bond_and_another_host_is_bound() {
    let tenant = Tenant::new().await;
    // A rule of admission that the stored host breaks.
    tenant
        .env
        .edit(1, json!({ "spec": { "disablePowerOff": true, "online": false } }))
        .await;
    sleep(MINUTES).await;
    tenant.env.admit();
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true })).await;
    sleep(MINUTES).await;
    let claim = tenant.get("c").await;
    assert!(status_of(&claim).contains("refuses to bind"), "{}", status_of(&claim));
    assert!(claim.status.bare_metal_host.is_none());
    tenant.env.cluster.reset_audit();
    sleep(HOUR).await;
    let writes = |resource| tenant.env.cluster.audit().of(CONTROLLER_USER, "patch", resource);
    assert_eq!([writes("hostclaims"), writes("hostclaims/status")], [0, 0]);
    tenant.env.host(2, json!({})).await;
    let claim = tenant.until_bound("c").await;
    assert_eq!(claim.status.bare_metal_host.unwrap().name, "host-2");
    tenant.env.edit(1, json!({ "spec": { "online": true } })).await;
    tenant.claim("d", json!({ "poweredOn": true })).await;
    tenant.until_bound("d").await;
}
