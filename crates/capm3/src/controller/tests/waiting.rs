//! What machines that wait cost while hosts come for some of them.

use kube::Api;
use metal3_api::cluster::Machine as Owner;
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::work::DEBOUNCE;
use serde_json::json;

use super::calm::{Run, US};
use super::site::Step::{Cluster, Data, Host, Machine, State};
use super::site::{CLUSTER, edit};

/// Writes while so many machines wait and hosts come one after another, each to be taken by one of them.
async fn writes(machines: usize, hosts: usize) -> u64 {
    let run = Run::start();
    run.take(&[Cluster]).await;
    for number in 0..machines {
        run.take(&[Machine(format!("m{number}").leak())]).await;
    }
    run.cluster.reset_audit();
    for number in 0..hosts {
        let name = format!("h{number}").leak();
        // Hosts are there before they can be taken.
        run.take(&[Host(name), State(name, "inspecting")]).await;
        run.take(&[State(name, "available")]).await;
    }
    let audit = run.cluster.audit();
    let ours = audit
        .counts()
        .filter(|((user, verb, _), _)| user == US && ["patch", "create", "update", "delete"].contains(verb));
    ours.map(|(_, number)| number).sum()
}

#[tokio::test(start_paused = true)]
async fn machine_that_waits_costs_the_same_however_many_hosts_come_for_others() {
    let mut each = Vec::new();
    for hosts in [1, 4] {
        let (few, many) = (writes(5, hosts).await, writes(10, hosts).await);
        each.push(many - few);
    }
    assert_eq!(each[0], each[1], "hosts that come for others");
    // That there are hosts now. The one that loses a host to another says it in the write that it makes anyway.
    assert!(
        (4..=5).contains(&each[0]),
        "one write of each of five that wait, not {each:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn wait_that_ends_in_a_moment_is_not_written_and_one_that_lasts_is() {
    let run = Run::start();
    run.take(&[Cluster, Host("h0")]).await;
    run.cluster.reset_audit();
    let written = || run.cluster.audit().of(US, "patch", "metal3machines/status");
    Machine("m0").take(&run.user).await;
    tokio::time::sleep(DEBOUNCE / 2).await;
    assert_eq!(written(), 0, "its data may come at once");
    run.take(&[Data("m0")]).await;
    assert_eq!(written(), 1, "that it has its host and its data");
    run.take(&[Host("h1"), Machine("m1")]).await;
    assert_eq!(written(), 2, "that it waits for its data");
}

#[tokio::test(start_paused = true)]
async fn host_that_was_kept_for_the_owner_is_told_although_a_wait_follows() {
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
