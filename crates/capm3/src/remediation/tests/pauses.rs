//! Pauses, and requests that wait for others, on the simulated API server.

use std::sync::Arc;
use std::time::Duration;

use metal3_capi::workload::{NodeRepair, NodeState, Repairs, Workloads};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::Key;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::write::Mode;
use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::case::{Case, check};
use super::lab::{Step, start_shared};
use super::refused::{Site, remediated};
use crate::data::reconciler::tests::lab::{HOSTS, INFRASTRUCTURE};
use crate::needs::Machines;
use crate::remediation::facts::Node;

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

fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

async fn taints(site: &Site) -> usize {
    let node = site.user.get("/api/v1", "nodes/n0").await;
    node["spec"]["taints"].as_array().map_or(0, Vec::len)
}

/// Starts the program again, with its access to workload clusters, which a machine keeps open.
fn restart(site: &mut Site) -> (JoinSet<()>, Repairs<Machines>) {
    site.stop();
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let (program, remote) = start_shared(&site.server.client("manager"), &clock, Mode::Perform);
    drop(remote.nodes(&key("alpha"), &key("m-1")));
    (program, Repairs::new(remote))
}

/// The neighbour sends one request after the other, and each takes long.
#[tokio::test(start_paused = true)]
async fn requests_of_others_delay_no_remediation_for_longer_than_one_of_them_lasts() {
    let mut site = Site::new("v1.31.0").await;
    let slow = Rule::random(1000, Fault::Delay(Duration::from_secs(4)));
    let slow = slow.verb("get").resource("nodes");
    site.server.inject_for(&["manager"], Plan::none().with(slow));
    let (mut program, repairs) = restart(&mut site);
    program.spawn(async move {
        let neighbour = key("w-1");
        loop {
            let begin = tokio::time::Instant::now();
            let reconciled = repairs.reconciled(&neighbour);
            drop(repairs.node(&key("alpha"), "n0", &neighbour).await);
            drop(reconciled);
            if begin.elapsed().is_zero() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    });
    site.take(&[], 30).await;
    site.take(&[Step::Power], 9).await;
    assert_eq!(taints(&site).await, 1);
    assert!(
        site.server.injected() > 5 && site.is_held().await,
        "{} {} {:?}",
        site.server.injected(),
        site.is_held().await,
        remediated(&site.remediation().await)
    );
    site.take(&[], 20).await;
    assert!(!site.is_held().await);
}

/// One request of the neighbour lasts longer than a deletion awaits its Node, and the next one fails.
#[tokio::test(start_paused = true)]
async fn wait_for_requests_of_others_is_no_time_of_a_deletion() {
    let mut site = Site::new("v1.31.0").await;
    site.take(&[Step::Power], 20).await;
    let (_program, repairs) = restart(&mut site);
    let failing = || Rule::random(1000, Fault::refused(500)).verb("get").resource("nodes");
    site.server.inject_for(&["manager"], Plan::none().with(failing()));
    site.take(&[Step::Power, Step::Delete], 5).await;
    assert_eq!(remediated(&site.remediation().await).0, "WorkloadClusterUnreachable");
    site.server.inject_for(&["manager"], Plan::none());
    let neighbour = key("w-1");
    let reconciled = repairs.reconciled(&neighbour);
    let read = repairs.node(&key("alpha"), "n0", &neighbour).await.unwrap();
    assert!(matches!(read, NodeState::Present(_)), "{read:?}");
    site.take(&[], 1300).await;
    assert_eq!(remediated(&site.remediation().await).0, "WaitingForRequests");
    site.server.inject_for(&["manager"], Plan::none().with(failing()));
    drop(reconciled);
    site.take(&[], 5).await;
    assert!(site.server.injected() > 0);
    site.server.inject_for(&["manager"], Plan::none());
    site.take(&[], 60).await;
    assert_eq!(taints(&site).await, 0);
    assert_eq!(site.user.list(INFRASTRUCTURE, "metal3remediations").await.len(), 0);
}

#[test]
fn request_that_waits_for_others_keeps_no_host_off_too_long_and_gives_no_node_up() {
    let busy_for = |case: Case, is_reported| case.facts(|facts| facts.node = Node::Busy { is_reported });
    let busy = |case| busy_for(case, true);
    let waits = "Remediated=Unknown WaitingForRequests, waits 5 s";
    let last = "Remediated=Unknown WaitingForRequests, waits 1 s";
    check(vec![
        ("off", busy(Case::off()), waits),
        ("off, not for long", busy_for(Case::off(), false), "waits 5 s"),
        ("waiting, not for long", busy_for(Case::waiting(), false), "waits 5 s"),
        (
            "given up, not for long",
            busy_for(Case::new("Deleting machine"), false),
            "waits 5 s",
        ),
        (
            "deleted, not for long",
            busy_for(Case::running(), false).deleted(),
            "waits 5 s",
        ),
        (
            "off for half of the time, not for long",
            busy_for(Case::off(), false).off_for(300),
            "phase Waiting, again",
        ),
        (
            "off, shortly before half of the time",
            busy(Case::off()).off_for(299),
            last,
        ),
        (
            "off for half of the time",
            busy(Case::off()).off_for(300),
            "phase Waiting, again",
        ),
        ("waiting, after its time", busy(Case::waiting()).after(9999), waits),
        ("given up", busy(Case::new("Deleting machine")), waits),
        ("deleted", busy(Case::running()).deleted(), waits),
        (
            "deleted, for twice the time",
            busy(Case::running()).deleted().awaited(9999),
            waits,
        ),
    ]);
    let events = busy(Case::off()).off_for(300).plan().events;
    let reasons: Vec<&str> = events.iter().map(|event| event.reason.as_str()).collect();
    assert_eq!(reasons, ["NodeNotFenced"]);
}
