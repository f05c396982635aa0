//! The writes of waiting machines while hosts are created for some of them.

use kube::Api;
use metal3_api::cluster::Machine as Owner;
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::work::DEBOUNCE;
use serde_json::json;

use super::steps::Step::{Cluster, Data, Host, Machine, State};
use super::steps::{CLUSTER, edit};
use super::without_faults::{PROGRAM, Run};

/// Counts the writes while machines wait and hosts become available one after another.
async fn writes(machines: usize, hosts: usize) -> u64 {
    let run = Run::start();
    run.take(&[Cluster]).await;
    for number in 0..machines {
        run.take(&[Machine(format!("m{number}").leak())]).await;
    }
    run.cluster.reset_audit();
    for number in 0..hosts {
        let name = format!("h{number}").leak();
        // Hosts exist before they are available.
        run.take(&[Host(name), State(name, "inspecting")]).await;
        run.take(&[State(name, "available")]).await;
    }
    let audit = run.cluster.audit();
    let writes = audit
        .counts()
        .filter(|((user, verb, _), _)| user == PROGRAM && ["patch", "create", "update", "delete"].contains(verb));
    writes.map(|(_, number)| number).sum()
}

#[tokio::test(start_paused = true)]
async fn waiting_machine_has_constant_writes_for_any_number_of_hosts_for_others() {
    let mut each = Vec::new();
    for hosts in [1, 4] {
        let (few, many) = (writes(5, hosts).await, writes(10, hosts).await);
        each.push(many - few);
    }
    assert_eq!(each[0], each[1], "hosts for other machines");
    // Each waiting machine writes once that hosts exist. A machine that loses the race for a host reports this in a
    // write that it makes anyway.
    assert!(
        (4..=5).contains(&each[0]),
        "one write of each of five that wait, not {each:?}"
    );
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
