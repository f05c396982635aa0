//! A simulated cluster, and processes with a product that only counts.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use metal3_api::catalog;
use metal3_api::ipam::names::GROUP;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_capi::workload::ConnectFn;
use metal3_domain::clock::Clock;
use metal3_flags::{self as flags, Owner};
use metal3_manager::error::RunError;
use metal3_manager::hosts_config::HostsConfig;
use metal3_manager::pod::PodIdentity;
use metal3_manager::product::{Product, Running, Task, WriteAccess};
use metal3_manager::run::{Ended, Process};
use metal3_manager::served::Kind;
use metal3_manager::session::{ClusterClients, Session};
use metal3_runtime::admin;
use metal3_runtime::cache::SharedCache;
use metal3_runtime::client::{ClientFactory, Settings};
use metal3_runtime::clock::TimerClock;
use metal3_runtime::guard::{self, Guard};
use metal3_runtime::lease::Leadership;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::{Scope, Watch};
use metal3_sim_cluster::{Cluster, Options};
use metal3_webhooks::related_objects::NoRelatedObjects;
use metal3_webhooks::table::IPAM;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

pub(crate) const NAMESPACE: &str = "metal3-ipam-system";
pub(crate) const LEASE: &str = "controller-leader-election-ipam-capm3";

metal3_runtime::role! {
    pub struct Counting {
        IPPool: List, Watch;
    }
}

/// Running and started controllers of this test's thread.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) now: AtomicUsize,
    pub(crate) ever: AtomicUsize,
}

std::thread_local! {
    static COUNT: Arc<Count> = Arc::default();
}

pub(crate) fn count() -> Arc<Count> {
    COUNT.with(Arc::clone)
}

pub(crate) const KINDS: &[Kind] = &[Kind {
    group: GROUP,
    version: "v1alpha1",
    plural: "ippools",
    installed_by: "ipam-components.yaml",
}];

const PRODUCT: Product = Product {
    owner: Owner::Ipam,
    suite: IPAM,
    kinds: KINDS,
    lease: LEASE,
    replaces: &[guard::IPAM, guard::IPAM_OF_CAPM3],
    begin,
};

fn begin(session: &Session, write_access: WriteAccess) -> Result<Running, RunError> {
    let cache: SharedCache<IPPool> = SharedCache::default();
    let (client, clock) = (session.client.clone(), Arc::clone(&session.clock));
    let watch = Watch::whole::<Counting>(client, cache.clone(), &(), Scope::everywhere(), clock);
    let (pulse, count, observe_only) = (watch.health(), count(), session.options.observe_only);
    let watch: Task = Box::new(|stop| Box::pin(watch.run(stop)));
    let controllers: Task = Box::new(move |stop| {
        Box::pin(async move {
            let written = Api::<ConfigMap>::namespaced(write_access.client, NAMESPACE);
            let object = ConfigMap {
                metadata: ObjectMeta {
                    name: Some("written".to_owned()),
                    ..ObjectMeta::default()
                },
                ..ConfigMap::default()
            };
            if !observe_only {
                // With a second replica it exists already.
                drop(written.create(&PostParams::default(), &object).await);
            }
            count.now.fetch_add(1, Ordering::SeqCst);
            count.ever.fetch_add(1, Ordering::SeqCst);
            stop.cancelled().await;
            // A running reconcile takes a second.
            tokio::time::sleep(Duration::from_secs(1)).await;
            count.now.fetch_sub(1, Ordering::SeqCst);
        })
    });
    Ok(Running {
        watches: vec![watch],
        watch_health: vec![pulse],
        synced: Arc::new(move || cache.read(|cache| cache.synced())),
        related_objects: Arc::new(NoRelatedObjects),
        controllers,
    })
}

pub(crate) struct TestCluster {
    pub(crate) cluster: Cluster,
    /// The workload cluster of every kubeconfig.
    pub(crate) workload: Cluster,
    pub(crate) clock: Arc<dyn Clock>,
    tasks: TaskTracker,
}

/// A started process.
pub(crate) struct Replica {
    pub(crate) ended: JoinHandle<Result<Ended, RunError>>,
    pub(crate) stop: CancellationToken,
    probes: axum::Router,
    pub(crate) metrics: Metrics,
}

impl TestCluster {
    pub(crate) async fn empty() -> Self {
        let cluster = Cluster::start(&Options::seeded(1));
        let namespaces: Api<Namespace> = Api::all(cluster.client("admin"));
        let namespace = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } })).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        Self {
            cluster,
            workload: Cluster::start(&Options::seeded(2)),
            clock: Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)),
            tasks: TaskTracker::new(),
        }
    }

    /// The objects of a kind in the namespace of the process.
    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.cluster.client("admin"), NAMESPACE)
    }

    /// Creates an object in that namespace.
    pub(crate) async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let object = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    /// The holder of a lease of the process; empty after its release.
    pub(crate) async fn holder(&self, lease: &str) -> String {
        let lease = self.api::<Lease>().get(lease).await.unwrap();
        lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }

    pub(crate) async fn with_kinds() -> Self {
        let world = Self::empty().await;
        world.install();
        world
    }

    pub(crate) fn install(&self) {
        let kinds = catalog::definitions().into_iter().filter(|kind| kind.group == GROUP);
        self.cluster.install(&kinds.collect::<Vec<_>>()).unwrap();
    }

    /// Clients of this cluster and of the workload cluster, by the name of their user.
    pub(crate) fn clients(&self, name: &str, metrics: &Metrics) -> Arc<dyn ClusterClients> {
        Arc::new(Simulated {
            cluster: self.cluster.clone(),
            workload: self.workload.clone(),
            name: name.to_owned(),
            requests: ClientFactory::new(Settings::new("test", "0"), Arc::clone(&self.clock), metrics.requests()),
        })
    }

    /// Starts a process with these flags and without listeners.
    pub(crate) fn start(&self, name: &str, flags: &str) -> Replica {
        self.start_with(name, flags, vec![PRODUCT])
    }

    /// The same, with these products.
    pub(crate) fn start_with(&self, name: &str, flags: &str, products: Vec<Product>) -> Replica {
        self.start_options(name, options(&format!("--controllers=ipam {flags}")), None, products)
    }

    /// The same, with these options and this Ironic.
    pub(crate) fn start_options(
        &self,
        name: &str,
        options: flags::Options,
        hosts: Option<HostsConfig>,
        products: Vec<Product>,
    ) -> Replica {
        let metrics = Metrics::new();
        let session = Session {
            options,
            pod: PodIdentity {
                namespace: Some(NAMESPACE.to_owned()),
                identity: name.to_owned(),
            },
            client: self.cluster.client(name),
            leases: self.cluster.client(name),
            hosts,
            machines: metal3_capm3::machine::facts::Settings::default(),
            clients: self.clients(name, &metrics),
            clock: Arc::clone(&self.clock),
            metrics: metrics.clone(),
            verbosity: None,
            dry_run: None,
        };
        let process = Process::new(session, products);
        let probes = admin::health(&process.alive, &process.ready);
        let stop = CancellationToken::new();
        Replica {
            ended: self.tasks.spawn(process.run(stop.clone())),
            stop,
            probes,
            metrics,
        }
    }
}

/// Asserts that the process `a` wrote nothing to this cluster.
pub(crate) fn assert_no_writes(cluster: &Cluster) {
    let audit = cluster.audit();
    let writes: Vec<_> = audit
        .counts()
        .filter(|((user, verb, _), _)| user == "a" && ["create", "update", "patch", "delete"].contains(verb))
        .collect();
    assert!(writes.is_empty(), "{writes:?}");
}

/// Parses these flags for a process without listeners.
pub(crate) fn options(flags: &str) -> flags::Options {
    let line = format!("--health-addr=0 --diagnostics-address=0 --webhook-port=0 {flags}");
    match flags::parse(line.split_whitespace().map(str::to_owned)) {
        Ok(flags::Request::Run(options)) => *options,
        other => unreachable!("flags of a test are valid: {line}: {other:?}"),
    }
}

struct Simulated {
    cluster: Cluster,
    workload: Cluster,
    name: String,
    requests: ClientFactory,
}

impl ClusterClients for Simulated {
    fn writing_for(&self, leadership: Leadership, guard: Guard) -> kube::Result<Client> {
        let requests = self.requests.writing_for(leadership, guard);
        Ok(requests.over(self.cluster.service(&self.name), "simulated"))
    }

    fn workloads(&self, leadership: Leadership, guard: Guard) -> ConnectFn {
        let client = self.requests.writing_for(leadership, guard);
        let client = client.over(self.workload.service(&self.name), "workload");
        Box::new(move |_| {
            let client = client.clone();
            Box::pin(async move { Ok(client) })
        })
    }
}

impl Replica {
    /// The response of a probe.
    pub(crate) async fn probe(&self, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = self.probes.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    pub(crate) async fn ready(&self) -> bool {
        self.probe("/readyz").await.0 == StatusCode::OK
    }

    pub(crate) async fn end(self) -> Ended {
        self.stop.cancel();
        self.ended.await.unwrap().unwrap()
    }
}

/// Waits until a condition holds, in simulated time.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    unreachable!("{what}: not within 200 seconds");
}

pub(crate) fn at_work() -> usize {
    count().now.load(Ordering::SeqCst)
}
