//! Pauses, and requests that wait for others, on the simulated API server.

use std::sync::Arc;
use std::time::Duration;

use metal3_capi::workload::NodeRepair;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::write::Mode;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};

use super::lab::{Step, start_shared};
use super::refused::Site;
use crate::data::reconciler::tests::lab::{HOSTS, INFRASTRUCTURE};

const ORPHAN: &str = "reboot.metal3.io/metal3-remediation-9d1f0c5e";

async fn phase(site: &Site) -> Value {
    let remediation = site.user.get(INFRASTRUCTURE, "metal3remediations/w-0").await;
    remediation["status"]["phase"].clone()
}

#[tokio::test(start_paused = true)]
async fn pause_uses_up_no_time_of_an_attempt() {
    let site = Site::new("v1.31.0").await;
    site.take(&[Step::Power], 30).await;
    assert_eq!(phase(&site).await, "Waiting");
    site.take(&[Step::Pause(true)], 700).await;
    site.take(&[Step::Pause(false), Step::Power], 500).await;
    assert_eq!(phase(&site).await, "Waiting");
    site.take(&[], 100).await;
    assert_eq!(phase(&site).await, "Running", "the retry");
}

#[tokio::test(start_paused = true)]
async fn pause_of_a_deleted_remediation_loses_no_label_of_its_node() {
    let site = Site::new("v1.27.3").await;
    site.take(&[Step::Power], 20).await;
    site.take(&[Step::Delete, Step::Power], 20).await;
    site.take(&[Step::Pause(true)], 700).await;
    site.take(&[Step::Pause(false)], 60).await;
    site.take(&[Step::Register], 60).await;
    let node = site.user.get("/api/v1", "nodes/n0").await;
    assert_eq!(node["metadata"]["labels"]["rack"], "a", "{node:#}");
    assert_eq!(site.user.list(INFRASTRUCTURE, "metal3remediations").await.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn pause_that_ends_while_the_machine_is_read_leaves_no_host_off() {
    let site = Site::new("v1.31.0").await;
    let annotate = async |group: &str, object: &str, key: &str, value: Value| {
        let change = json!({ "metadata": { "annotations": { key: value } } });
        site.user.change(group, object, change).await;
    };
    let (host, machine) = ("baremetalhosts/h0", "metal3machines/w-0");
    let is_left = async || {
        site.user.get(HOSTS, host).await["metadata"]["annotations"]
            .get(ORPHAN)
            .is_some()
    };
    let paused = "cluster.x-k8s.io/paused";
    annotate(INFRASTRUCTURE, machine, paused, json!("")).await;
    let slow = Rule::random(1000, Fault::Delay(Duration::from_secs(5)));
    let slow = slow.verb("get").resource("metal3machines");
    site.server.inject_for(&["manager"], Plan::none().with(slow));
    annotate(HOSTS, host, ORPHAN, json!("{}")).await;
    site.take(&[], 2).await;
    assert!(site.server.injected() > 0);
    annotate(INFRASTRUCTURE, machine, paused, Value::Null).await;
    site.take(&[], 1).await;
    assert!(is_left().await, "the answer is on its way");
    site.take(&[], 60).await;
    assert!(!is_left().await);
}

#[tokio::test(start_paused = true)]
async fn requests_of_others_keep_no_host_off_longer_than_half_of_the_time() {
    let mut site = Site::new("v1.31.0").await;
    site.stop();
    let slow = Rule::random(1000, Fault::Delay(Duration::from_secs(4)));
    let slow = slow.verb("get").resource("nodes");
    site.server.inject_for(&["manager"], Plan::none().with(slow));
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let (mut program, repairs) = start_shared(&site.server.client("manager"), &clock, Mode::Perform);
    program.spawn(async move {
        let key = |name: &str| Key {
            namespace: "default".to_owned(),
            name: name.to_owned(),
        };
        repairs.wait(&key("alpha"), &key("w-1"));
        loop {
            let begin = tokio::time::Instant::now();
            drop(repairs.node(&key("alpha"), "n0").await);
            if begin.elapsed().is_zero() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    site.take(&[], 30).await;
    site.take(&[Step::Power], 290).await;
    assert!(site.server.injected() > 60 && site.is_held().await);
    site.take(&[], 15).await;
    assert!(!site.is_held().await);
}
