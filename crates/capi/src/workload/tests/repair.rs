//! Access for remediations: their keys, and a server that does not answer them.

use std::convert::Infallible;

use kube::client::Body;

use super::*;
use crate::workload::{Drained, LiveNode, NodeChange, NodeChanged, NodeRepair as _, NodeState, Repairs, is_busy};

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
    let wake = Box::new(move |key: &Key| {
        enqueued.lock().insert(key.name.clone());
    });
    repairs.set_wake(wake, 10);
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
        let found = repairs.node(&key("edge"), "node-0", &key("m0")).await.unwrap();
        assert!(matches!(found, NodeState::Present(node) if node.labels.len() == 2));
        assert_eq!(
            repairs.node(&key("edge"), "node-9", &key("m0")).await.unwrap(),
            NodeState::Absent
        );
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
        let (first, second) = (key("m0"), key("m1"));
        let reconciled = repairs.reconciled(&first);
        let (node, drained) = tokio::join!(repairs.node(&edge, "n0", &first), repairs.drained(&edge, "n0", &second));
        assert!(matches!(node, Ok(NodeState::Unknown(_))), "{node:?}");
        assert!(drained.is_err_and(|fault| is_busy(&fault)), "it was not sent");
        assert_eq!(repairs.drained(&edge, "n0", &first).await.unwrap(), Drained::Unknown);
        let read = LiveNode {
            name: "n0".to_owned(),
            version: "1".to_owned(),
            ..LiveNode::default()
        };
        let changed = repairs.change(&edge, &read, &NodeChange::Delete, &first).await;
        assert!(matches!(changed, Ok(NodeChanged::Failed(_))), "{changed:?}");
        drop(reconciled);
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
    let changed = repairs
        .change(&key("edge"), &read, &NodeChange::Delete, &key("m0"))
        .await;
    assert!(matches!(changed, Ok(NodeChanged::NotSent(_))), "{changed:?}");
}

/// A server that answers after this time, and has one Node.
fn delayed(time: Duration) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| async move {
        let metadata = json!({ "name": "n0", "uid": "u", "resourceVersion": "1" });
        let body = match request.uri().path() {
            "/api/v1/nodes" => json!({ "metadata": { "resourceVersion": "1" }, "items": [] }),
            _ => {
                tokio::time::sleep(time).await;
                json!({ "metadata": metadata })
            }
        };
        Ok::<_, Infallible>(http::Response::new(Body::from(body.to_string().into_bytes())))
    });
    kube::Client::new(service, "default")
}

/// Each needs two requests in one reconcile.
#[tokio::test(start_paused = true)]
async fn remediations_of_a_slow_server_change_their_nodes_one_after_the_other() {
    let management = Cluster::start(&Options::seeded(1));
    create_kubeconfig(management.client("user")).await;
    let client = delayed(Duration::from_secs(2));
    let remote = Arc::new(remote(&management, move || client.clone()));
    let (repairs, stop) = (Repairs::new(Arc::clone(&remote)), CancellationToken::new());
    let enqueued: Arc<Mutex<Vec<String>>> = Arc::default();
    let woken = Arc::clone(&enqueued);
    // The watch enqueues the first one.
    let wake = Box::new(move |key: &Key| woken.lock().extend((key.name != "m0").then(|| key.name.clone())));
    repairs.set_wake(wake, 1);
    let edge = key("edge");
    let reconcile = async |name: &str| {
        let waiter = key(name);
        let _requests = repairs.reconciled(&waiter);
        let node = match repairs.node(&edge, "n0", &waiter).await {
            Ok(NodeState::Present(node)) => node,
            Ok(other) => panic!("{other:?}"),
            Err(fault) => return is_busy(&fault),
        };
        let changed = repairs.change(&edge, &node, &NodeChange::Delete, &waiter).await;
        assert_eq!(changed.unwrap(), NodeChanged::Done, "{name}");
        false
    };
    let actions = async {
        repairs.wait(&edge, &key("m0"));
        tokio::time::sleep(Duration::from_secs(20)).await;
        let waits = tokio::join!(reconcile("m0"), reconcile("m1"), reconcile("m2"));
        assert_eq!(waits, (false, true, true));
        assert_eq!(*enqueued.lock(), ["m1"]);
        let waits = tokio::join!(reconcile("m2"), reconcile("m1"));
        assert_eq!(waits, (true, false));
        assert_eq!(*enqueued.lock(), ["m1", "m2"]);
        assert!(!reconcile("m2").await);
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), actions);
}

/// A list of Pods with many pages takes long, and each of them not.
#[tokio::test(start_paused = true)]
async fn server_with_a_long_list_is_as_quick_as_its_pages() {
    const PAGES: usize = 20;
    for (page, places) in [(Duration::from_millis(100), 3), (Duration::from_millis(1100), 2)] {
        let service = tower::service_fn(move |request: http::Request<Body>| async move {
            let query = request.uri().query().unwrap_or_default();
            let rest = query.rsplit("continue=").next().and_then(|number| number.parse().ok());
            let number = rest.unwrap_or(0_usize) + 1;
            let list = |rest: String| json!({ "metadata": { "resourceVersion": "1", "continue": rest }, "items": [] });
            let body = match request.uri().path() {
                "/api/v1/pods" => {
                    tokio::time::sleep(page).await;
                    let rest = (number < PAGES).then(|| number.to_string());
                    list(rest.unwrap_or_default())
                }
                "/api/v1/nodes/n0" => {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    json!({ "metadata": { "name": "n0", "uid": "u", "resourceVersion": "1" } })
                }
                _ => list(String::new()),
            };
            Ok::<_, Infallible>(http::Response::new(Body::from(body.to_string().into_bytes())))
        });
        let client = kube::Client::new(service, "default");
        let management = Cluster::start(&Options::seeded(1));
        create_kubeconfig(management.client("user")).await;
        let remote = Arc::new(remote(&management, move || client.clone()));
        let (repairs, stop) = (Repairs::new(Arc::clone(&remote)), CancellationToken::new());
        repairs.set_wake(Box::new(|_| ()), 10);
        let edge = key("edge");
        let actions = async {
            let first = key("m0");
            repairs.wait(&edge, &first);
            tokio::time::sleep(Duration::from_secs(20)).await;
            let reconciled = repairs.reconciled(&first);
            let drained = repairs.drained(&edge, "n0", &first).await.unwrap();
            assert!(matches!(drained, Drained::Yes | Drained::Unknown), "{drained:?}");
            drop(reconciled);
            let waiters = ["m1", "m2", "m3", "m4", "m5"].map(key);
            let read = futures::future::join_all(waiters.iter().map(|waiter| repairs.node(&edge, "n0", waiter)));
            let sent = read.await.iter().filter(|read| read.is_ok()).count();
            assert_eq!(sent, places, "{page:?}");
            stop.cancel();
        };
        tokio::join!(remote.run(stop.clone()), actions);
    }
}
