//! `clusterctl move` of a claim and its host, and what administrators take back.

use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::json;
use tokio::time::sleep;

use super::tenant::{NAMESPACE, Tenant, image, status_of};
use super::{HOUR, MINUTES};

const PAUSE: &str = "cluster.x-k8s.io/paused";

#[tokio::test(start_paused = true)]
async fn claim_and_host_that_clusterctl_moves_to_another_ironic_keep_what_runs() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_ready("c").await;
    tenant.annotate("c", json!({ PAUSE: "" })).await;
    sleep(MINUTES).await;
    let (claim, host) = (tenant.get("c").await, tenant.env.get(1).await.unwrap());
    let counts = |tenant: &Tenant| {
        tenant.env.machine(1, |machine| {
            (machine.counts.erased, machine.counts.written, machine.counts.started)
        })
    };
    let before = counts(&tenant);
    // The source: all annotations replaced, deleted, finalizers emptied.
    let mark =
        json!({ PAUSE: null, "hostclaim.metal3.io/host": null, "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
    tenant.annotate("c", mark).await;
    tenant.delete("c").await;
    tenant.patch("c", json!({ "metadata": { "finalizers": null } })).await;
    tenant.env.delete(1).await;
    tenant.env.edit(1, json!({ "metadata": { "finalizers": null } })).await;
    tenant.env.until(1, "end", |host| host.is_none()).await;
    // The target: metadata and spec, no status, an Ironic of its own.
    tenant.env.ironic.lose_database();
    let document =
        json!({ "metadata": { "name": "host-1", "annotations": host.metadata.annotations }, "spec": host.spec });
    tenant.env.make::<BareMetalHost>(document).await;
    let document = json!({ "metadata": { "name": "c", "annotations": claim.metadata.annotations,
        "finalizers": claim.metadata.finalizers }, "spec": claim.spec });
    let moved = serde_json::from_value(document).unwrap();
    tenant
        .claims(NAMESPACE)
        .create(&PostParams::default(), &moved)
        .await
        .unwrap();
    sleep(MINUTES).await;
    tenant.annotate("c", json!({ PAUSE: null })).await;
    sleep(HOUR).await;
    tenant.until_ready("c").await;
    assert_eq!(counts(&tenant), before, "nothing is erased, deployed or restarted");
}

#[tokio::test(start_paused = true)]
async fn consumer_and_image_are_all_that_administrators_remove_to_release_a_host() {
    let tenant = Tenant::new().await;
    tenant.open(json!({})).await;
    tenant
        .secret(NAMESPACE, "user", "Opaque", json!({ "userData": "canary" }))
        .await;
    let spec = json!({ "poweredOn": true, "image": image(), "userData": { "name": "user" } });
    tenant.claim("c", spec).await;
    tenant.until_ready("c").await;
    tenant.delete("c").await;
    tenant.patch("c", json!({ "metadata": { "finalizers": null } })).await;
    sleep(MINUTES).await;
    let none = json!({ "spec": { "consumerRef": null, "image": null } });
    tenant.env.edit(1, none).await;
    tenant.env.until_state(1, "available").await;
    sleep(HOUR).await;
    let copy = tenant.secrets("default").get("host-1.claim-user-data").await.unwrap();
    assert!(
        copy.data.unwrap_or_default().is_empty(),
        "the user data of the tenant are gone"
    );
    let host = tenant.env.get(1).await.unwrap();
    assert!(
        host.annotation("hostclaim.metal3.io/bond").is_none(),
        "{:?}",
        host.metadata.annotations
    );
    tenant.claim("d", json!({ "poweredOn": true, "image": image() })).await;
    tenant.until_ready("d").await;
}

#[tokio::test(start_paused = true)]
async fn network_data_of_the_agent_of_a_host_reach_no_machine_of_a_claim() {
    let tenant = Tenant::without_host();
    let secret = json!({ "metadata": { "name": "agent-net", "labels": { "environment.metal3.io": "baremetal" } },
        "stringData": { "networkData": "{\"links\":[{\"id\":\"canary-net\"}]}" } });
    tenant.env.make::<Secret>(secret).await;
    tenant
        .env
        .host(1, json!({ "preprovisioningNetworkDataName": "agent-net" }))
        .await;
    tenant.env.until_state(1, "available").await;
    tenant.open(json!({})).await;
    tenant.claim("c", json!({ "poweredOn": true, "image": image() })).await;
    let claim = tenant.until_ready("c").await;
    let disk = tenant.env.machine(1, |machine| machine.disk.clone()).unwrap();
    let drive = serde_json::to_string(&disk.config_drive.unwrap()).unwrap();
    assert!(!drive.contains("canary-net"), "{drive}");
    let host = tenant.env.get(1).await.unwrap();
    let [of_claim, of_host] = [claim.metadata.uid.unwrap(), host.metadata.uid.unwrap()];
    assert!(drive.contains(&of_claim) && !drive.contains(&of_host), "{drive}");
}

#[tokio::test(start_paused = true)]
async fn namespace_that_leaves_hosts_behind_gets_no_further_ones() {
    let tenant = Tenant::without_host();
    for number in 1..=4 {
        tenant.env.host(number, json!({})).await;
        tenant.env.until_state(number, "available").await;
    }
    tenant.open(json!({})).await;
    for name in ["a", "b", "c"] {
        tenant.claim(name, json!({ "poweredOn": true, "image": image() })).await;
        tenant.until_ready(name).await;
        tenant.annotate(name, json!({ PAUSE: "" })).await;
        sleep(MINUTES).await;
        tenant.delete(name).await;
        tenant.patch(name, json!({ "metadata": { "finalizers": null } })).await;
        assert!(tenant.find(name).await.is_none());
    }
    tenant.claim("d", json!({ "poweredOn": true })).await;
    sleep(HOUR).await;
    let last = tenant.get("d").await;
    assert!(last.status.bare_metal_host.is_none(), "{}", status_of(&last));
    // Once one is released, it is served.
    for number in 1..=4 {
        let host = tenant.env.get(number).await.unwrap();
        if host.spec.consumer_ref.is_some() {
            let none = json!({ "metadata": { "annotations": { "baremetalhost.metal3.io/paused": null } },
                "spec": { "consumerRef": null, "image": null } });
            tenant.env.edit(number, none).await;
            break;
        }
    }
    tenant.until_bound("d").await;
}
