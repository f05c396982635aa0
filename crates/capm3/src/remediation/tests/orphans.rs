//! Hosts that are kept off for a remediation that does not exist.

use metal3_runtime::write::Mode;
use serde_json::{Value, json};

use super::refused::Site;
use crate::data::reconciler::tests::lab::{CLUSTER_API, HOSTS, INFRASTRUCTURE};

const ORPHAN: &str = "reboot.metal3.io/metal3-remediation-9d1f0c5e";
const HOST: &str = "baremetalhosts/h0";

async fn annotate(site: &Site, key: &str, value: Value) {
    let change = json!({ "metadata": { "annotations": { key: value } } });
    site.user.change(HOSTS, HOST, change).await;
}

#[tokio::test(start_paused = true)]
async fn host_is_not_kept_off_for_a_remediation_that_does_not_exist() {
    let site = Site::new("v1.31.0").await;
    annotate(&site, ORPHAN, json!("{}")).await;
    site.take(&[], 5).await;
    let host = site.user.get(HOSTS, HOST).await;
    let annotations = host["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(
        annotations.len(),
        1,
        "that of the existing remediation: {annotations:?}"
    );
    assert!(!annotations.contains_key(ORPHAN));
}

#[tokio::test(start_paused = true)]
async fn host_of_a_remediation_whose_finalizer_is_removed_by_hand_is_powered_on() {
    let mut site = Site::new("v1.31.0").await;
    site.stop();
    let change = json!({ "metadata": { "finalizers": null } });
    let object = "metal3remediations/w-0";
    site.user.change(INFRASTRUCTURE, object, change).await;
    site.user.delete(INFRASTRUCTURE, object).await;
    site.take(&[], 5).await;
    assert!(site.is_held().await);
    site.start(Mode::Perform);
    site.take(&[], 5).await;
    assert!(!site.is_held().await);
}

#[tokio::test(start_paused = true)]
async fn pause_keeps_the_request_to_keep_a_host_off_until_it_ends() {
    let site = Site::new("v1.31.0").await;
    let is_left = async || {
        let host = site.user.get(HOSTS, HOST).await;
        host["metadata"]["annotations"].get(ORPHAN).is_some()
    };
    let pause = |paused| json!({ "spec": { "paused": paused } });
    site.user.change(CLUSTER_API, "clusters/alpha", pause(true)).await;
    annotate(&site, ORPHAN, json!("{}")).await;
    site.take(&[], 5).await;
    assert!(is_left().await, "the Cluster is paused");
    annotate(&site, "baremetalhost.metal3.io/paused", json!("")).await;
    site.user.change(CLUSTER_API, "clusters/alpha", pause(false)).await;
    site.take(&[], 5).await;
    assert!(is_left().await, "the host is paused");
    annotate(&site, "baremetalhost.metal3.io/paused", Value::Null).await;
    site.take(&[], 5).await;
    assert!(!is_left().await);
    site.user.change(CLUSTER_API, "clusters/alpha", pause(true)).await;
    annotate(&site, ORPHAN, json!("{}")).await;
    site.take(&[], 5).await;
    assert!(is_left().await, "the Cluster is paused again");
    site.user.change(CLUSTER_API, "clusters/alpha", pause(false)).await;
    site.take(&[], 5).await;
    assert!(!is_left().await, "the end of the pause is enough");
}
