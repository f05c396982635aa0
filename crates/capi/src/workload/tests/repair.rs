//! Access for remediations: their keys, and a server that does not answer them.

use std::convert::Infallible;

use kube::client::Body;

use super::*;
use crate::workload::{Drained, LiveNode, NodeChange, NodeChanged, NodeRepair as _, NodeState, Repairs};

#[tokio::test(start_paused = true)]
async fn machine_and_remediation_of_one_name_wait_and_are_enqueued_apart() {
    let Watched {
        workload,
        remote,
        enqueued_keys: machines,
        _clusters,
    } = Watched::start().await;
    let (remote, remediations) = (Arc::new(remote), Arc::new(Mutex::new(BTreeSet::new())));
    let repairs = Repairs::new(Arc::clone(&remote));
    let enqueued = Arc::clone(&remediations);
    repairs.set_wake(Box::new(move |key| {
        enqueued.lock().insert(key.name.clone());
    }));
    let stop = CancellationToken::new();
    let woken = |number: usize| {
        let (workload, machines, remediations) = (&workload, &machines, &remediations);
        async move {
            machines.lock().clear();
            remediations.lock().clear();
            create_node(workload, &format!("new-{number}")).await;
            tokio::time::sleep(Duration::from_mins(1)).await;
            let count = |keys: &Mutex<BTreeSet<String>>| keys.lock().len();
            (count(machines), count(remediations))
        }
    };
    let actions = async {
        remote.nodes(&key("edge"), &key("m0"));
        repairs.wait(&key("edge"), &key("m0"));
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert_eq!(woken(0).await, (1, 1));
        assert_eq!(
            *remediations.lock(),
            BTreeSet::from(["m0".to_owned()]),
            "under its own name"
        );
        remote.remove_waiter(&key("m0"));
        assert_eq!(woken(1).await, (0, 1), "the other still waits");
        let found = repairs.node(&key("edge"), "node-0").await.unwrap();
        assert!(matches!(found, NodeState::Present(node) if node.labels.len() == 2));
        assert_eq!(repairs.node(&key("edge"), "node-9").await.unwrap(), NodeState::Absent);
        repairs.remove_waiter(&key("m0"));
        assert_eq!(woken(2).await, (0, 0));
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), actions);
}

/// Neither a request that was not sent nor a server that is silent is taken for an answer.
#[tokio::test(start_paused = true)]
async fn remediation_whose_server_does_not_answer_holds_a_worker_for_a_short_time() {
    let list = json!({ "metadata": { "resourceVersion": "1" }, "items": [] }).to_string();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let list = list.clone();
        async move {
            // The watch of Nodes is served, all else is silent.
            if request.uri().path() != "/api/v1/nodes" {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(http::Response::new(Body::from(list.into_bytes())))
        }
    });
    let client = kube::Client::new(service, "default");
    let management = Cluster::start(&Options::seeded(1));
    create_kubeconfig(management.client("user")).await;
    let remote = Arc::new(remote(&management, move || client.clone()));
    let (repairs, stop) = (Repairs::new(Arc::clone(&remote)), CancellationToken::new());
    let actions = async {
        let edge = key("edge");
        repairs.wait(&edge, &key("m0"));
        tokio::time::sleep(Duration::from_secs(20)).await;
        let begin = tokio::time::Instant::now();
        let (node, drained) = tokio::join!(repairs.node(&edge, "n0"), repairs.drained(&edge, "n0"));
        assert!(matches!(node, Ok(NodeState::Unknown(_))), "{node:?}");
        assert!(drained.is_err(), "it was not sent: {drained:?}");
        assert_eq!(repairs.drained(&edge, "n0").await.unwrap(), Drained::Unknown);
        let read = LiveNode {
            name: "n0".to_owned(),
            version: "1".to_owned(),
            ..LiveNode::default()
        };
        let changed = repairs.change(&edge, &read, &NodeChange::Delete).await;
        assert!(matches!(changed, Ok(NodeChanged::Failed(_))), "{changed:?}");
        assert!(begin.elapsed() <= Duration::from_secs(15));
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), actions);
}

#[tokio::test(start_paused = true)]
async fn change_that_was_not_sent_is_distinguished_from_one_without_an_answer() {
    let management = Cluster::start(&Options::seeded(1));
    let client = management.client("user");
    let repairs = Repairs::new(Arc::new(remote(&management, move || client.clone())));
    let read = LiveNode {
        name: "n0".to_owned(),
        version: "1".to_owned(),
        ..LiveNode::default()
    };
    let changed = repairs.change(&key("edge"), &read, &NodeChange::Delete).await;
    assert!(matches!(changed, Ok(NodeChanged::NotSent(_))), "{changed:?}");
}
