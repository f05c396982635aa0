//! The writes of waiting machines while hosts are created for some of them.

use std::time::Duration;

use kube::Api;
use metal3_api::cluster::Machine as Owner;
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::work::DEBOUNCE;
use serde_json::json;

use super::steps::Step::{Cluster, Data, Host, Machine, State};
use super::steps::{CLUSTER, edit};
use super::without_faults::{PROGRAM, Run, SETTLED};

/// Counts the writes while machines wait and hosts become available one after another.
async fn writes(machines: usize, hosts: usize, at_once: bool) -> u64 {
    let run = Run::start();
    run.take(&[Cluster]).await;
    for number in 0..machines {
        run.take(&[Machine(format!("m{number}").leak())]).await;
    }
    run.cluster.reset_audit();
    // Hosts exist before they are available.
    let pause = if at_once { Duration::from_millis(100) } else { SETTLED };
    for state in ["inspecting", "available"] {
        for number in 0..hosts {
            let name = format!("h{number}").leak();
            if state == "inspecting" {
                Host(name).take(&run.user).await;
            }
            State(name, state).take(&run.user).await;
            tokio::time::sleep(pause).await;
        }
    }
    tokio::time::sleep(SETTLED).await;
    let audit = run.cluster.audit();
    let writes = audit
        .counts()
        .filter(|((user, verb, _), _)| user == PROGRAM && ["patch", "create", "update", "delete"].contains(verb));
    writes.map(|(_, number)| number).sum()
}

/// The writes of each of five more machines that wait, while hosts become available for the others.
async fn writes_of_a_waiting_machine(hosts: usize, at_once: bool) -> u64 {
    let (few, many) = (writes(5, hosts, at_once).await, writes(10, hosts, at_once).await);
    (many - few).div_ceil(5)
}

#[tokio::test(start_paused = true)]
async fn waiting_machine_counts_many_changes_of_hosts_in_a_few_writes() {
    for hosts in [1, 2, 4] {
        // That hosts exist, and what became of them a minute later.
        let at_once = writes_of_a_waiting_machine(hosts, true).await;
        assert!(at_once <= 3, "{at_once} for {hosts} hosts");
    }
    // The numbers change with each host that appears, and that is claimed.
    let one_by_one = writes_of_a_waiting_machine(4, false).await;
    assert!(one_by_one <= 9, "{one_by_one}");
}

#[tokio::test(start_paused = true)]
async fn short_wait_is_not_written_and_a_long_one_is() {
    let run = Run::start();
    run.take(&[Cluster, Host("h0")]).await;
    run.cluster.reset_audit();
    let written = || run.cluster.audit().of(PROGRAM, "patch", "metal3machines/status");
    Machine("m0").take(&run.user).await;
    tokio::time::sleep(DEBOUNCE / 2).await;
    assert_eq!(written(), 0, "its data may be ready soon");
    run.take(&[Data("m0")]).await;
    assert_eq!(written(), 1, "the host and the data");
    run.take(&[Host("h1"), Machine("m1")]).await;
    assert_eq!(written(), 2, "the wait for its data");
}

#[tokio::test(start_paused = true)]
async fn reused_host_is_reported_although_a_wait_follows() {
    let run = Run::start();
    run.take(&[Host("h0"), State("h0", "inspecting")]).await;
    let consumer =
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": CLUSTER, "namespace": "default" });
    let kept = json!({
        "metadata": { "labels": { NODE_REUSE_LABEL: "md-workers" } }, "spec": { "consumerRef": consumer },
    });
    edit::<BareMetalHost>(&run.user, "h0", kept).await;
    run.take(&[Cluster, Machine("m0")]).await;
    let group = json!({ "metadata": { "labels": { "cluster.x-k8s.io/deployment-name": "workers" } } });
    edit::<Owner>(&run.user, "m0", group).await;
    run.take(&[State("h0", "available")]).await;
    let machines: Api<Metal3Machine> = Api::default_namespaced(run.user.clone());
    let conditions = serde_json::to_string(&machines.get("m0").await.unwrap().status.conditions).unwrap();
    assert!(
        conditions.contains("AssociateBareMetalHostViaNodeReuseSuccess"),
        "{conditions}"
    );
}
