//! The way into a workload cluster, between two simulated API servers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_runtime::cache::Key;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::role;
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{ConnectFn, NodeList, Remote, Workloads};

role! {
    /// What a controller needs to get into workload clusters.
    pub struct Reading {
        Secret: Get;
    }
}

/// An outage of a server.
const REFUSED: Fault = Fault::Refused {
    code: 503,
    retry_after: None,
};
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                          clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443'}}]\nusers: [{name: u, user: {token: t}}]\n";

fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

async fn node(client: &kube::Client, name: &str) {
    let labels = json!({ "metal3.io/uuid": format!("uid-{name}"), "kubernetes.io/hostname": name });
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &node)
        .await
        .unwrap();
}

/// The Node changes in its metadata.
async fn mark(client: &kube::Client, name: &str, metadata: serde_json::Value) {
    let change = Patch::Merge(json!({ "metadata": metadata }));
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.patch(name, &PatchParams::default(), &change).await.unwrap();
}

async fn kubeconfig(user: kube::Client) {
    let data = [("value".to_owned(), ByteString(KUBECONFIG.as_bytes().to_vec()))];
    let mut secret = Secret {
        data: Some(data.into()),
        ..Secret::default()
    };
    secret.metadata.name = Some("edge-kubeconfig".to_owned());
    let secrets: Api<Secret> = Api::default_namespaced(user);
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

/// Names and provider IDs of what is seen.
fn seen(nodes: &NodeList) -> Vec<String> {
    match nodes {
        NodeList::Listed(nodes) => nodes
            .iter()
            .map(|node| format!("{}={}", node.name, node.provider_id))
            .collect(),
        NodeList::Unknown(why) => vec![why.clone()],
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_watched_while_a_key_waits_and_waiting_keys_are_enqueued() {
    let (near, far) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
    let (user, workload) = (near.client("user"), far.client("user"));
    let client = far.client("capm3");
    let open: ConnectFn = Box::new(move |_| {
        let client = client.clone();
        Box::pin(async move { Ok(client) })
    });
    let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let reader: Writer<Reading> = Writer::new(near.client("capm3"), Mode::Perform);
    let remote = Remote::new(reader, open, clock);
    let (woken, stop) = (Arc::new(Mutex::new(BTreeSet::new())), CancellationToken::new());
    let heard = Arc::clone(&woken);
    remote.set_wake(Box::new(move |key| {
        heard.lock().insert(key.name.clone());
    }));
    let pause = || tokio::time::sleep(Duration::from_secs(60));
    let look = || seen(&remote.nodes(&key("edge"), &key("m0")));
    let user_acts = async {
        remote.nodes(&key("edge"), &key("m0"));
        pause().await;
        let missing = look();
        assert!(missing[0].contains("edge-kubeconfig"), "{missing:?}");
        assert!(woken.lock().contains("m0"), "trouble is news");
        kubeconfig(user).await;
        pause().await;
        assert_eq!(look(), [""; 0]);
        woken.lock().clear();
        node(&workload, "node-0").await;
        pause().await;
        assert!(woken.lock().contains("m0"), "a Node is news");
        assert_eq!(look(), ["node-0="]);
        woken.lock().clear();
        mark(&workload, "node-0", json!({ "annotations": { "beat": "1" } })).await;
        pause().await;
        assert!(woken.lock().is_empty(), "a Node that is still there is no news");
        mark(&workload, "node-0", json!({ "labels": { "metal3.io/uuid": "other" } })).await;
        pause().await;
        assert!(woken.lock().contains("m0"), "another host is news");
        remote
            .set_provider_id(&key("edge"), "node-0", "metal3://default/h0/m0")
            .await
            .unwrap();
        assert_eq!(look(), ["node-0=metal3://default/h0/m0"]);
        remote.remove_waiter(&key("m0"));
        woken.lock().clear();
        node(&workload, "node-1").await;
        pause().await;
        assert!(woken.lock().is_empty(), "nobody waits");
        let refused = remote
            .set_provider_id(&key("edge"), "node-1", "metal3://default/h1/m1")
            .await;
        assert!(refused.is_err());
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), user_acts);
}

/// The Secret leads elsewhere.
async fn lead_elsewhere(user: &kube::Client) {
    let secrets: Api<Secret> = Api::default_namespaced(user.clone());
    let change = Patch::Merge(json!({ "metadata": { "annotations": { "rotated": "yes" } } }));
    let params = PatchParams::default();
    secrets.patch("edge-kubeconfig", &params, &change).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn failing_target_is_reported_and_another_one_is_used() {
    let [near, wrong, right] = [1, 2, 3].map(|seed| Cluster::start(&Options::seeded(seed)));
    wrong.inject(Plan::seeded(1).with(Rule::random(1000, REFUSED).verb("list")));
    let user = near.client("user");
    kubeconfig(user.clone()).await;
    node(&right.client("user"), "node-0").await;
    let is_right = Arc::new(AtomicBool::new(false));
    let leads_right = Arc::clone(&is_right);
    let ways = [wrong.client("capm3"), right.client("capm3")];
    let open: ConnectFn = Box::new(move |_| {
        let client = ways[usize::from(leads_right.load(Ordering::Relaxed))].clone();
        Box::pin(async move { Ok(client) })
    });
    let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let reader: Writer<Reading> = Writer::new(near.client("capm3"), Mode::Perform);
    let remote = Remote::new(reader, open, clock);
    let stop = CancellationToken::new();
    let user_acts = async {
        let look = || seen(&remote.nodes(&key("edge"), &key("m0")));
        look();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(look()[0].contains("cannot be reached"), "{:?}", look());
        is_right.store(true, Ordering::Relaxed);
        lead_elsewhere(&user).await;
        tokio::time::sleep(Duration::from_secs(35)).await;
        assert_eq!(look(), ["node-0="]);
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), user_acts);
}

#[tokio::test(start_paused = true)]
async fn error_of_a_connected_cluster_is_reported_once_and_old_nodes_are_not_returned() {
    let (near, far) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
    let workload = far.client("user");
    kubeconfig(near.client("user")).await;
    node(&workload, "node-0").await;
    let client = far.client("capm3");
    let open: ConnectFn = Box::new(move |_| {
        let client = client.clone();
        Box::pin(async move { Ok(client) })
    });
    let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let reader: Writer<Reading> = Writer::new(near.client("capm3"), Mode::Perform);
    let remote = Remote::new(reader, open, clock);
    let (woken, stop) = (Arc::new(AtomicU32::new(0)), CancellationToken::new());
    let heard = Arc::clone(&woken);
    remote.set_wake(Box::new(move |_| {
        heard.fetch_add(1, Ordering::Relaxed);
    }));
    far.inject(Plan::seeded(1).with(Rule::random(1000, REFUSED).verb("watch")));
    let user_acts = async {
        let look = || seen(&remote.nodes(&key("edge"), &key("m0")));
        look();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(look(), ["node-0="]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(look()[0].contains("cannot be reached"), "{:?}", look());
        woken.store(0, Ordering::Relaxed);
        far.reset_audit();
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(woken.load(Ordering::Relaxed), 0, "a trouble that goes on is no news");
        let tried = far.audit().of("capm3", "watch", "nodes");
        assert!((20..50).contains(&tried), "{tried}: its pace goes on");
        node(&workload, "node-1").await;
        far.inject(Plan::none());
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(look(), ["node-0=", "node-1="]);
        assert!(woken.load(Ordering::Relaxed) > 0);
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), user_acts);
}
