//! What machines that wait cost while hosts come for some of them.

use metal3_runtime::work::BRIEF;

use super::calm::{Run, US};
use super::site::Step::{Cluster, Data, Host, Machine, State};

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
    assert_eq!(each, [5, 5], "one write of each of five that wait: there are hosts now");
}

#[tokio::test(start_paused = true)]
async fn wait_that_ends_in_a_moment_is_not_written_and_one_that_lasts_is() {
    let run = Run::start();
    run.take(&[Cluster, Host("h0")]).await;
    run.cluster.reset_audit();
    let written = || run.cluster.audit().of(US, "patch", "metal3machines/status");
    Machine("m0").take(&run.user).await;
    tokio::time::sleep(BRIEF / 2).await;
    assert_eq!(written(), 0, "its data may come at once");
    run.take(&[Data("m0")]).await;
    assert_eq!(written(), 1, "that it has its host and its data");
    run.take(&[Host("h1"), Machine("m1")]).await;
    assert_eq!(written(), 2, "that it waits for its data");
}
