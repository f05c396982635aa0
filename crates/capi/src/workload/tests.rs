//! Access to a workload cluster, with a simulated API server for each cluster.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_runtime::cache::Key;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::Observed;
use metal3_runtime::role;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{ConnectFn, LabelDigest, Remote, Workloads};

mod hostile;
mod repair;
mod turns;

role! {
    /// Permissions of a controller that reads kubeconfig Secrets.
    pub struct SecretReader {
        Secret: Get;
    }
}

/// An outage of an API server.
const UNAVAILABLE: Fault = Fault::refused(503);
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                          clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443'}}]\nusers: [{name: u, user: {token: t}}]\n";

fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

async fn create_node(client: &kube::Client, name: &str) {
    let labels = json!({ "metal3.io/uuid": format!("uid-{name}"), "kubernetes.io/hostname": name });
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &node)
        .await
        .unwrap();
}

async fn patch_metadata(client: &kube::Client, name: &str, metadata: serde_json::Value) {
    let change = Patch::Merge(json!({ "metadata": metadata }));
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.patch(name, &PatchParams::default(), &change).await.unwrap();
}

async fn create_kubeconfig(user: kube::Client) {
    create_kubeconfig_of(&user, &key("edge")).await;
}

async fn create_kubeconfig_of(user: &kube::Client, cluster: &Key) {
    let data = [("value".to_owned(), ByteString(KUBECONFIG.as_bytes().to_vec()))];
    let mut secret = Secret {
        data: Some(data.into()),
        ..Secret::default()
    };
    secret.metadata.name = Some(format!("{}-kubeconfig", cluster.name));
    let secrets: Api<Secret> = Api::namespaced(user.clone(), &cluster.namespace);
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

/// Access from a management cluster to the workload cluster of this client.
fn remote(management: &Cluster, client: impl Fn() -> kube::Client + Send + Sync + 'static) -> Remote<SecretReader> {
    let open: ConnectFn = Box::new(move |_| {
        let client = client();
        Box::pin(async move { Ok(client) })
    });
    let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    Remote::new(Writer::new(management.client("capm3"), Mode::Perform), open, clock)
}

/// Names and provider IDs of the Nodes, or the reason why they are unknown.
fn describe(nodes: &Observed<super::Nodes>) -> Vec<String> {
    match nodes {
        Observed::Present(nodes) => nodes
            .iter()
            .map(|node| format!("{}={}", node.name, node.provider_id))
            .collect(),
        Observed::Absent => Vec::new(),
        Observed::Unknown(why) => vec![why.to_string()],
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_watched_while_a_key_waits_and_waiting_keys_are_enqueued() {
    let (management, workload_cluster) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
    let (user, workload) = (management.client("user"), workload_cluster.client("user"));
    let client = workload_cluster.client("capm3");
    let remote = remote(&management, move || client.clone());
    let (enqueued_keys, stop) = (Arc::new(Mutex::new(BTreeSet::new())), CancellationToken::new());
    let enqueued = Arc::clone(&enqueued_keys);
    remote.set_wake(
        Box::new(move |key| {
            enqueued.lock().insert(key.name.clone());
        }),
        10,
    );
    let pause = || tokio::time::sleep(Duration::from_secs(60));
    let listed = || describe(&remote.nodes(&key("edge"), &key("m0")));
    let actions = async {
        remote.nodes(&key("edge"), &key("m0"));
        pause().await;
        let missing = listed();
        assert!(missing[0].contains("edge-kubeconfig"), "{missing:?}");
        assert!(enqueued_keys.lock().contains("m0"), "an error enqueues the key");
        create_kubeconfig(user).await;
        pause().await;
        assert_eq!(listed(), [""; 0]);
        enqueued_keys.lock().clear();
        create_node(&workload, "node-0").await;
        pause().await;
        assert!(enqueued_keys.lock().contains("m0"), "a new Node enqueues the key");
        assert_eq!(listed(), ["node-0="]);
        enqueued_keys.lock().clear();
        patch_metadata(&workload, "node-0", json!({ "annotations": { "beat": "1" } })).await;
        pause().await;
        assert!(enqueued_keys.lock().is_empty(), "an unchanged Node enqueues no key");
        patch_metadata(&workload, "node-0", json!({ "labels": { "metal3.io/uuid": "other" } })).await;
        pause().await;
        assert!(
            enqueued_keys.lock().contains("m0"),
            "a changed host UID enqueues the key"
        );
        remote
            .set_provider_id(&key("edge"), "node-0", "metal3://default/h0/m0", &key("m0"))
            .await
            .unwrap();
        assert_eq!(listed(), ["node-0=metal3://default/h0/m0"]);
        remote.remove_waiter(&key("m0"));
        enqueued_keys.lock().clear();
        create_node(&workload, "node-1").await;
        pause().await;
        assert!(enqueued_keys.lock().is_empty(), "no key waits");
        let refused = remote
            .set_provider_id(&key("edge"), "node-1", "metal3://default/h1/m1", &key("m1"))
            .await;
        assert!(refused.is_err());
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), actions);
}

/// A workload cluster with two Nodes, and keys that were enqueued.
struct Watched {
    workload: kube::Client,
    remote: Remote<SecretReader>,
    enqueued_keys: Arc<Mutex<BTreeSet<String>>>,
    _clusters: [Cluster; 2],
}

impl Watched {
    async fn start() -> Self {
        let (management, workload_cluster) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
        let workload = workload_cluster.client("user");
        let client = workload_cluster.client("capm3");
        let remote = remote(&management, move || client.clone());
        let enqueued_keys = Arc::new(Mutex::new(BTreeSet::new()));
        let enqueued = Arc::clone(&enqueued_keys);
        remote.set_wake(
            Box::new(move |key| {
                enqueued.lock().insert(key.name.clone());
            }),
            10,
        );
        create_kubeconfig(management.client("user")).await;
        create_node(&workload, "node-0").await;
        create_node(&workload, "node-1").await;
        Self {
            workload,
            remote,
            enqueued_keys,
            _clusters: [management, workload_cluster],
        }
    }

    /// The keys that are enqueued within a minute.
    async fn woken(&self) -> BTreeSet<String> {
        tokio::time::sleep(Duration::from_secs(60)).await;
        std::mem::take(&mut *self.enqueued_keys.lock())
    }

    fn node(&self, waiter: &str, name: &str) -> Option<Arc<super::Node>> {
        self.remote.node(&key("edge"), name, &key(waiter)).into_present()
    }
}

#[tokio::test(start_paused = true)]
async fn key_that_waits_for_one_node_is_enqueued_by_its_labels_only() {
    let watched = Watched::start().await;
    let stop = CancellationToken::new();
    let actions = async {
        watched.node("m0", "node-0");
        watched.node("m1", "node-1");
        watched.remote.nodes(&key("edge"), &key("m2"));
        watched.woken().await;
        assert!(watched.node("m0", "node-9").is_none());
        let before = watched.node("m0", "node-0").unwrap();
        patch_metadata(&watched.workload, "node-0", json!({ "labels": { "a.io/x": "1" } })).await;
        assert_eq!(watched.woken().await, BTreeSet::from(["m0".to_owned()]));
        assert_ne!(watched.node("m0", "node-0").unwrap().labels, before.labels);
        patch_metadata(
            &watched.workload,
            "node-1",
            json!({ "labels": { "metal3.io/uuid": "other" } }),
        )
        .await;
        assert_eq!(
            watched.woken().await,
            BTreeSet::from(["m1".to_owned(), "m2".to_owned()])
        );
        stop.cancel();
    };
    tokio::join!(watched.remote.run(stop.clone()), actions);
}

#[tokio::test(start_paused = true)]
async fn labels_of_a_node_are_changed_at_the_version_that_was_read() {
    let watched = Watched::start().await;
    let (stop, edge, remote) = (CancellationToken::new(), key("edge"), &watched.remote);
    let actions = async {
        patch_metadata(&watched.workload, "node-0", json!({ "labels": { "a.io/x": "1" } })).await;
        watched.node("m0", "node-0");
        watched.woken().await;
        let read = remote.read_labels(&edge, "node-0", &key("m0")).await.unwrap().unwrap();
        assert!(read.labels().any(|label| label == ("a.io/x", "1")));
        assert!(remote.read_labels(&edge, "node-9", &key("m0")).await.unwrap().is_none());
        let after = read.with_labels(&[("a.io/y", "2")].into());
        let [before, after] = [&read, &after].map(|node| serde_json::to_value(node).unwrap());
        let at = ResourceVersion::parse(read.metadata().resource_version.as_deref().unwrap()).unwrap();
        let patch = Changes::between(&before, &after).main.unwrap().with_precondition(&at);
        assert!(
            remote
                .patch_labels(&edge, "node-0", patch.clone(), &key("m0"))
                .await
                .unwrap()
        );
        let digest = LabelDigest::of([("a.io/y", "2")]);
        assert_eq!(
            watched.node("m0", "node-0").unwrap().labels,
            digest,
            "before the watch shows it"
        );
        watched.woken().await;
        assert_eq!(watched.node("m0", "node-0").unwrap().labels, digest);
        assert!(
            remote.patch_labels(&edge, "node-0", patch, &key("m0")).await.is_err(),
            "the Node has another version"
        );
        remote.remove_waiter(&key("m0"));
        assert!(
            remote.read_labels(&edge, "node-0", &key("m0")).await.is_err(),
            "no connection is left"
        );
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), actions);
}

/// Changes the kubeconfig Secret, so that the controller connects again.
async fn rotate_kubeconfig(user: &kube::Client) {
    let secrets: Api<Secret> = Api::default_namespaced(user.clone());
    let change = Patch::Merge(json!({ "metadata": { "annotations": { "rotated": "yes" } } }));
    let params = PatchParams::default();
    secrets.patch("edge-kubeconfig", &params, &change).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn unreachable_cluster_is_reported_and_a_changed_kubeconfig_is_used() {
    let [management, wrong, right] = [1, 2, 3].map(|seed| Cluster::start(&Options::seeded(seed)));
    wrong.inject(Plan::seeded(1).with(Rule::random(1000, UNAVAILABLE).verb("list")));
    let user = management.client("user");
    create_kubeconfig(user.clone()).await;
    create_node(&right.client("user"), "node-0").await;
    let is_right = Arc::new(AtomicBool::new(false));
    let use_right = Arc::clone(&is_right);
    let clients = [wrong.client("capm3"), right.client("capm3")];
    let remote = remote(&management, move || {
        clients[usize::from(use_right.load(Ordering::Relaxed))].clone()
    });
    let stop = CancellationToken::new();
    let actions = async {
        let listed = || describe(&remote.nodes(&key("edge"), &key("m0")));
        listed();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(listed()[0].contains("cannot be reached"), "{:?}", listed());
        is_right.store(true, Ordering::Relaxed);
        rotate_kubeconfig(&user).await;
        tokio::time::sleep(Duration::from_secs(35)).await;
        assert_eq!(listed(), ["node-0="]);
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), actions);
}

#[tokio::test(start_paused = true)]
async fn error_of_a_connected_cluster_is_reported_once_and_old_nodes_are_not_returned() {
    let (management, workload_cluster) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
    let workload = workload_cluster.client("user");
    create_kubeconfig(management.client("user")).await;
    create_node(&workload, "node-0").await;
    let client = workload_cluster.client("capm3");
    let remote = remote(&management, move || client.clone());
    let (enqueued_keys, stop) = (Arc::new(AtomicU32::new(0)), CancellationToken::new());
    let enqueued = Arc::clone(&enqueued_keys);
    remote.set_wake(
        Box::new(move |_| {
            enqueued.fetch_add(1, Ordering::Relaxed);
        }),
        10,
    );
    workload_cluster.inject(Plan::seeded(1).with(Rule::random(1000, UNAVAILABLE).verb("watch")));
    let actions = async {
        let listed = || describe(&remote.nodes(&key("edge"), &key("m0")));
        listed();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(listed(), ["node-0="]);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(listed()[0].contains("cannot be reached"), "{:?}", listed());
        enqueued_keys.store(0, Ordering::Relaxed);
        workload_cluster.reset_audit();
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(
            enqueued_keys.load(Ordering::Relaxed),
            0,
            "a repeated error enqueues no key"
        );
        let tried = workload_cluster.audit().of("capm3", "watch", "nodes");
        assert!((20..50).contains(&tried), "{tried}: the interval stays the same");
        create_node(&workload, "node-1").await;
        workload_cluster.inject(Plan::none());
        tokio::time::sleep(Duration::from_secs(40)).await;
        assert_eq!(listed(), ["node-0=", "node-1="]);
        assert!(enqueued_keys.load(Ordering::Relaxed) > 0);
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), actions);
}

/// The text that the hostile servers send in errors.
const CANARY: &str = "canary-of-a-tenant";

/// The code and body of the response to a request with this number.
type Answer = Box<dyn Fn(u32) -> (u16, String) + Send + Sync>;

/// A workload cluster whose API server sends what a tenant wants.
fn hostile(answer: impl Fn(u32) -> (u16, String) + Clone + Send + Sync + 'static) -> (kube::Client, Arc<AtomicU32>) {
    hostile_by_path(move |number, _| answer(number))
}

/// The same, with path and query of the request.
fn hostile_by_path(
    answer: impl Fn(u32, &str) -> (u16, String) + Clone + Send + Sync + 'static,
) -> (kube::Client, Arc<AtomicU32>) {
    let requests = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&requests);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        let (code, text) = answer(number, &request.uri().to_string());
        async move {
            let body = kube::client::Body::from(text.into_bytes());
            Ok::<_, std::convert::Infallible>(http::Response::builder().status(code).body(body).unwrap())
        }
    });
    (kube::Client::new(service, "default"), requests)
}

/// What a waiting key shows of the Nodes after a few minutes.
async fn shown(client: kube::Client) -> String {
    let management = Cluster::start(&Options::seeded(1));
    create_kubeconfig(management.client("user")).await;
    let (remote, stop) = (remote(&management, move || client.clone()), CancellationToken::new());
    let waiting = async {
        remote.nodes(&key("edge"), &key("m0"));
        tokio::time::sleep(Duration::from_mins(5)).await;
        let shown = describe(&remote.nodes(&key("edge"), &key("m0"))).join(", ");
        stop.cancel();
        shown
    };
    tokio::join!(remote.run(stop.clone()), waiting).1
}

#[tokio::test(start_paused = true)]
async fn list_of_a_hostile_cluster_that_never_ends_is_not_kept() {
    let nodes: Vec<_> = (0..500)
        .map(|number| json!({ "metadata": { "name": format!("n{number}"), "uid": "u", "resourceVersion": "1" } }))
        .collect();
    let page = json!({ "metadata": { "resourceVersion": "1", "continue": "more" }, "items": nodes }).to_string();
    let (client, requests) = hostile(move |_| (200, page.clone()));
    let shown = shown(client).await;
    assert!(shown.contains("larger than any that a cluster needs"), "{shown}");
    assert!(requests.load(Ordering::Relaxed) < 500, "each attempt reads 21 pages");
}

/// Each watch counts as a success, and each expired one is followed by a list.
#[tokio::test(start_paused = true)]
async fn hostile_cluster_whose_watches_end_at_once_is_not_asked_without_a_pause() {
    let bookmark = json!({ "type": "BOOKMARK", "object": { "metadata": { "resourceVersion": "2" } } });
    let expired =
        json!({ "type": "ERROR", "object": { "code": 410, "reason": "Expired", "message": "", "status": "Failure" } });
    for events in [format!("{bookmark}\n"), format!("{bookmark}\n{expired}\n")] {
        let list = json!({ "metadata": { "resourceVersion": "1" }, "items": [] }).to_string();
        let (client, requests) = hostile_by_path(move |_, path| {
            let text = if path.contains("watch=") { &events } else { &list };
            (200, text.clone())
        });
        drop(shown(client).await);
        let requests = requests.load(Ordering::Relaxed);
        assert!((50..=130).contains(&requests), "{requests}");
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_are_shared_by_all_who_wait_for_one() {
    let (management, workload) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
    create_kubeconfig(management.client("user")).await;
    create_node(&workload.client("user"), "n0").await;
    let remote = remote(&management, move || workload.client("capm3"));
    let shown = async {
        drop(remote.nodes(&key("edge"), &key("m0")));
        tokio::time::sleep(Duration::from_mins(1)).await;
        let of = |waiter: &str| match remote.nodes(&key("edge"), &key(waiter)) {
            Observed::Present(nodes) => nodes,
            other => panic!("{other:?}"),
        };
        assert!(Arc::ptr_eq(&of("m0")[0], &of("m1")[0]));
    };
    tokio::select! { () = remote.run(CancellationToken::new()) => {}, () = shown => {} }
}

#[tokio::test(start_paused = true)]
async fn names_of_a_hostile_cluster_are_bounded() {
    let node = json!({ "metadata": { "name": "x".repeat(1 << 20), "uid": "u", "resourceVersion": "1" } });
    let page = json!({ "metadata": { "resourceVersion": "1" }, "items": [node] }).to_string();
    let (client, _) = hostile(move |_| (200, page.clone()));
    let shown = shown(client).await;
    assert!(
        shown.contains("larger than any that a cluster needs") && shown.len() < 500,
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn names_in_events_of_a_hostile_cluster_are_bounded() {
    let long = "x".repeat(1 << 20);
    // Objects that cannot be decoded are kept with their names.
    let event = |kind: &str, metadata: serde_json::Value| {
        // The same text is an empty list and an event.
        json!({ "metadata": { "resourceVersion": "1" }, "items": [], "type": kind,
            "object": { "metadata": metadata, "spec": 7 } })
    };
    let events = [
        event("ADDED", json!({ "name": long, "uid": "u", "resourceVersion": "2" })),
        event(
            "ADDED",
            json!({ "name": "n", "namespace": long, "uid": "u", "resourceVersion": "2" }),
        ),
        event("DELETED", json!({ "name": "n", "uid": long, "resourceVersion": "2" })),
        event("BOOKMARK", json!({ "resourceVersion": "2".repeat(1 << 20) })),
    ];
    for event in events {
        let event = event.to_string();
        let shown = shown(hostile(move |_| (200, event.clone())).0).await;
        assert!(shown.contains("larger than any that a cluster needs"), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn line_of_a_hostile_cluster_that_never_ends_is_not_read_on() {
    const FRAME: usize = 1 << 16;
    let list = json!({ "metadata": { "resourceVersion": "1" }, "items": [] }).to_string();
    let (watches, frames) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (begun, sent) = (Arc::clone(&watches), Arc::clone(&frames));
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let frames = if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            begun.fetch_add(1, Ordering::Relaxed);
            let sent = Arc::clone(&sent);
            let endless = futures::stream::repeat_with(move || {
                sent.fetch_add(1, Ordering::Relaxed);
                vec![b' '; FRAME]
            });
            endless.boxed()
        } else {
            futures::stream::iter([list.clone().into_bytes()]).boxed()
        };
        let body = frames.map(|frame| Ok::<_, std::convert::Infallible>(http_body::Frame::data(frame.into())));
        async move { Ok::<_, std::convert::Infallible>(http::Response::new(http_body_util::StreamBody::new(body))) }
    });
    let shown = shown(kube::Client::new(service, "default")).await;
    assert!(
        shown.contains("an event is larger than any that a cluster needs"),
        "{shown}"
    );
    let (watches, frames) = (watches.load(Ordering::Relaxed), frames.load(Ordering::Relaxed));
    assert!(
        watches > 0 && frames <= watches * 65,
        "{frames} frames in {watches} watches"
    );
}

#[tokio::test(start_paused = true)]
async fn condition_contains_no_text_of_a_workload_cluster() {
    let refusal = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": CANARY,
        "message": CANARY })
    .to_string();
    let list = json!({ "metadata": { "resourceVersion": "1" }, "items": [] }).to_string();
    let ended = json!({ "type": "ERROR", "object": { "code": 500, "message": CANARY } }).to_string();
    let event = json!({ "type": CANARY, "object": {} }).to_string();
    let rows: [Answer; 4] = [
        Box::new(move |_| (403, refusal.clone())),
        Box::new(|_| (200, CANARY.to_owned())),
        Box::new({
            let list = list.clone();
            move |number| (200, if number == 0 { list.clone() } else { ended.clone() })
        }),
        Box::new(move |number| (200, if number == 0 { list.clone() } else { event.clone() })),
    ];
    for row in rows {
        let row = Arc::new(row);
        let shown = shown(hostile(move |number| row(number)).0).await;
        assert!(
            shown.contains("cannot be reached") && !shown.contains(CANARY),
            "{shown}"
        );
    }
}
