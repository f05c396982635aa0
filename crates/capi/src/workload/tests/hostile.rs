//! Servers of tenants that do their worst to the others: growth, lists without end, silence.

use std::collections::BTreeMap;
use std::convert::Infallible;

use kube::client::Body;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;
use crate::workload::{BUSY_POLL, NodeRepair as _, NodeState, Repairs, is_busy};

/// A list of Nodes with these names.
fn nodes(names: impl Iterator<Item = String>, rest: &str) -> String {
    let node = |name: String| json!({ "metadata": { "name": name, "uid": "u", "resourceVersion": "1" } });
    let items: Vec<_> = names.map(node).collect();
    json!({ "metadata": { "resourceVersion": "1", "continue": rest }, "items": items }).to_string()
}

/// Each watch adds as many Nodes as are kept at most, and ends.
#[tokio::test(start_paused = true)]
async fn number_of_nodes_is_limited_across_watches() {
    const EACH: u32 = 2_000;
    let (client, _) = hostile_by_path(|number, path| {
        if !path.contains("watch=") {
            return (200, nodes(std::iter::empty(), ""));
        }
        let event = |node: u32| {
            let version = 10 + u64::from(number) * u64::from(EACH) + u64::from(node);
            let metadata =
                json!({ "name": format!("n{number}-{node}"), "uid": "u", "resourceVersion": version.to_string() });
            json!({ "type": "ADDED", "object": { "metadata": metadata } }).to_string() + "\n"
        };
        (200, (0..EACH).map(event).collect())
    });
    let management = Cluster::start(&Options::seeded(1));
    create_kubeconfig(management.client("user")).await;
    let (remote, stop) = (remote(&management, move || client.clone()), CancellationToken::new());
    let waiting = async {
        let mut most = 0;
        for _ in 0..60 {
            if let Observed::Present(nodes) = remote.nodes(&key("edge"), &key("m0")) {
                most = most.max(nodes.len());
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        stop.cancel();
        most
    };
    let most = tokio::join!(remote.run(stop.clone()), waiting).1;
    assert!((4_000..=6_000).contains(&most), "{most}");
}

#[tokio::test(start_paused = true)]
async fn list_of_empty_or_small_pages_ends() {
    for page in [
        nodes(std::iter::empty(), "more"),
        nodes(["n".to_owned()].into_iter(), "more"),
    ] {
        let (client, requests) = hostile(move |_| (200, page.clone()));
        let shown = shown(client).await;
        assert!(
            shown.contains("the list is larger than any that a cluster needs"),
            "{shown}"
        );
        let requests = requests.load(Ordering::Relaxed);
        assert!(requests < 3_000, "each attempt reads 62 pages: {requests}");
    }
}

/// Access with a client for each cluster, by the address in its kubeconfig.
fn remote_by_address(
    management: &Cluster,
    client: impl Fn(&str) -> kube::Client + Send + Sync + 'static,
) -> Remote<SecretReader> {
    let open: ConnectFn = Box::new(move |config| {
        let server = config.clusters[0]
            .cluster
            .as_ref()
            .and_then(|cluster| cluster.server.clone());
        let client = client(&server.unwrap());
        Box::pin(async move { Ok(client) })
    });
    let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    Remote::new(Writer::new(management.client("capm3"), Mode::Perform), open, clock)
}

async fn create_kubeconfig_at(user: &kube::Client, cluster: &str, server: &str) {
    let config = KUBECONFIG.replace("https://192.0.2.1:6443", server);
    let mut secret = Secret {
        data: Some(BTreeMap::from([("value".to_owned(), ByteString(config.into_bytes()))])),
        ..Secret::default()
    };
    secret.metadata.name = Some(format!("{cluster}-kubeconfig"));
    let secrets: Api<Secret> = Api::default_namespaced(user.clone());
    secrets.create(&PostParams::default(), &secret).await.unwrap();
}

/// A server that never answers.
fn cut_off() -> kube::Client {
    let service =
        tower::service_fn(|_: http::Request<Body>| std::future::pending::<Result<http::Response<Body>, Infallible>>());
    kube::Client::new(service, "default")
}

const HEALTHY: &str = "https://healthy.example.org";

#[tokio::test(start_paused = true)]
async fn clusters_that_are_cut_off_do_not_keep_a_healthy_one_of_their_namespace_waiting() {
    for (others, longest) in [(19, Duration::from_secs(10)), (60, Duration::from_mins(8))] {
        let (management, workload) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
        let user = management.client("user");
        create_node(&workload.client("user"), "n0").await;
        for number in 0..others {
            create_kubeconfig_at(&user, &format!("edge-{number}"), "https://192.0.2.1:6443").await;
        }
        // The last by name.
        create_kubeconfig_at(&user, "healthy", HEALTHY).await;
        let remote = remote_by_address(&management, move |server| match server {
            HEALTHY => workload.client("capm3"),
            _ => cut_off(),
        });
        let (stop, begin) = (CancellationToken::new(), tokio::time::Instant::now());
        let waiting = async {
            loop {
                for number in 0..others {
                    let name = key(&format!("edge-{number}"));
                    drop(remote.nodes(&name, &name));
                }
                if describe(&remote.nodes(&key("healthy"), &key("healthy"))) == ["n0="] {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            stop.cancel();
            begin.elapsed()
        };
        let needed = tokio::join!(remote.run(stop.clone()), waiting).1;
        assert!(needed <= longest, "{others} others: {needed:?}");
    }
}

/// The workers of machines are shared by all tenants.
#[tokio::test(start_paused = true)]
async fn server_that_never_answers_a_write_holds_two_workers_of_its_namespace_for_a_short_time() {
    let (client, _) = hostile(|_| (200, nodes(["n0".to_owned()].into_iter(), "")));
    let answers = Arc::new(Mutex::new(client));
    let management = Cluster::start(&Options::seeded(1));
    create_kubeconfig(management.client("user")).await;
    let lists = Arc::clone(&answers);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = lists.lock().clone();
        async move {
            match request.method() == http::Method::PATCH {
                true => std::future::pending().await,
                false => client.send(request).await,
            }
        }
    });
    let client = kube::Client::new(service, "default");
    let (remote, stop) = (remote(&management, move || client.clone()), CancellationToken::new());
    let waiting = async {
        remote.set_wake(Box::new(|_| ()), 10);
        drop(remote.nodes(&key("edge"), &key("m0")));
        tokio::time::sleep(Duration::from_secs(20)).await;
        let begin = tokio::time::Instant::now();
        let edge = key("edge");
        let names = ["m0", "m1", "m2"].map(key);
        let request = |waiter| remote.set_provider_id(&edge, "n0", "metal3://default/h0/m0", waiter);
        let [first, second, third] = &names;
        let (first, second, third) = tokio::join!(request(first), request(second), request(third));
        for fault in [first.unwrap_err(), second.unwrap_err()] {
            assert!(fault.report().contains("did not answer"), "{}", fault.report());
        }
        let third = third.unwrap_err();
        assert!(is_busy(&third), "{}", third.report());
        assert!(begin.elapsed() <= Duration::from_secs(5));
        stop.cancel();
    };
    tokio::join!(remote.run(stop.clone()), waiting);
}

/// Fifty remediations ask ten servers that never answer, again and again.
#[tokio::test(start_paused = true)]
async fn silent_servers_keep_no_request_to_a_healthy_one_of_their_namespace_waiting() {
    const SILENT: usize = 50;
    let (management, workload) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
    let user = management.client("user");
    create_node(&workload.client("user"), "n0").await;
    for number in 0..10 {
        create_kubeconfig_at(&user, &format!("edge-{number}"), "https://192.0.2.1:6443").await;
    }
    create_kubeconfig_at(&user, "healthy", HEALTHY).await;
    let remote = Arc::new(remote_by_address(&management, move |server| match server {
        HEALTHY => workload.client("capm3"),
        _ => cut_off(),
    }));
    let (repairs, stop) = (Repairs::new(Arc::clone(&remote)), CancellationToken::new());
    let enqueued: Arc<Vec<Notify>> = Arc::new((0..=SILENT).map(|_| Notify::new()).collect());
    let woken = Arc::clone(&enqueued);
    let wake = Box::new(move |key: &Key| woken[key.name.parse::<usize>().unwrap()].notify_one());
    repairs.set_wake(wake, 10);
    let reconcile = async |number: usize, cluster: &Key| {
        let waiter = key(&number.to_string());
        repairs.wait(cluster, &waiter);
        let _requests = repairs.reconciled(&waiter);
        repairs.node(cluster, "n0", &waiter).await
    };
    let next = async |number: usize| drop(timeout(BUSY_POLL, enqueued[number].notified()).await);
    let silent = (0..SILENT).map(|number| {
        let (reconcile, next) = (&reconcile, &next);
        async move {
            let cluster = key(&format!("edge-{}", number % 10));
            for _ in 0..10_000 {
                drop(reconcile(number, &cluster).await);
                next(number).await;
            }
        }
    });
    let healthy = async {
        let (cluster, mut longest) = (key("healthy"), [Duration::ZERO; 2]);
        tokio::time::sleep(Duration::from_secs(10)).await;
        for round in 0..60 {
            let begin = tokio::time::Instant::now();
            while !matches!(reconcile(SILENT, &cluster).await, Ok(NodeState::Present(_))) {
                next(SILENT).await;
            }
            let longest = &mut longest[usize::from(round > 0)];
            *longest = begin.elapsed().max(*longest);
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
        longest
    };
    let longest = tokio::select! {
        () = remote.run(stop) => unreachable!(),
        _ = futures::future::join_all(silent) => unreachable!(),
        longest = healthy => longest,
    };
    let [first, others] = longest;
    assert!(
        first <= Duration::from_secs(45),
        "before it is known to be quick: {first:?}"
    );
    assert!(others <= Duration::from_secs(1), "{others:?}");
}
