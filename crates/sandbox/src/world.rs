//! The simulated world: an API server, Ironic with machines, stand-ins of Cluster API, and the products.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use metal3_domain::clock::Clock;
use metal3_hosts::reconciler::DeprovisionBudget;
use metal3_runtime::metrics::Metrics;
pub use metal3_sim_bmc::fault::{Fault, Faults};
use metal3_sim_capi::program::Providers;
use metal3_sim_capi::workload::WorkloadClusters;
use metal3_sim_capi::{byoh, kamaji, kinds, kubelet, program};
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_ironic::{Ironic, Machine, Options as Metal, Pace};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use metal3_sim_ironic::bmc_address;

pub use super::installed::{all_kinds, collection, definitions, version_of};
use super::products::Products;

/// The default namespace of hosts and clusters.
pub const NAMESPACE: &str = "default";
/// The user name of every BMC.
const BMC_USER: &str = "admin";
/// The password of every BMC: unique text, so that checks can find a leak.
pub const BMC_PASSWORD: &str = "open-sesame-bmc";

/// The parameters of a world.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The seed of names and UIDs.
    pub seed: u64,
    /// The clock of all parts.
    pub clock: Arc<dyn Clock>,
    /// The duration of hardware operations.
    pub pace: Pace,
    /// How many times faster than real ones the machines are: as much faster their changes are seen.
    pub speed: u32,
    /// From power on until kubeadm has finished.
    pub boot: Duration,
    /// The namespace of hosts, and of objects that name none.
    pub namespace: String,
    /// Whether a load balancer and the agents of BYOH hosts run. Otherwise the user does their work.
    pub automated: bool,
    /// Provisioned hosts of a namespace that may be deprovisioned per hour.
    pub deprovision_budget: u32,
    /// Whether the API server still serves v1beta1 of Cluster API.
    pub serves_v1beta1: bool,
    /// Whether the flag `--join-preflight` is set.
    pub looks_before_joins: bool,
}

impl Setup {
    /// Hardware with real durations, for simulated time.
    #[must_use]
    pub fn real_time(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            seed,
            clock,
            pace: Pace::default(),
            speed: 1,
            boot: Duration::from_secs(60),
            namespace: NAMESPACE.to_owned(),
            automated: true,
            deprovision_budget: DeprovisionBudget::default().limit,
            serves_v1beta1: true,
            looks_before_joins: false,
        }
    }

    /// Hardware that is `speed` times faster than real hardware.
    #[must_use]
    pub fn faster(seed: u64, clock: Arc<dyn Clock>, speed: u32) -> Self {
        let real_time = Self::real_time(seed, clock);
        Self {
            pace: Pace::faster(speed),
            speed,
            boot: real_time.boot.checked_div(speed).unwrap_or(real_time.boot),
            ..real_time
        }
    }
}

/// A running world. Dropping it stops all its parts.
pub struct World {
    /// The management cluster.
    pub cluster: Cluster,
    /// Ironic, and the machines that it manages.
    pub ironic: Ironic,
    /// The workload clusters.
    pub workloads: WorkloadClusters,
    user: kube::Client,
    namespace: String,
    metrics: Arc<Mutex<Metrics>>,
    /// Counts the starts of the products.
    starts: watch::Sender<u64>,
    _tasks: JoinSet<()>,
}

/// Why a world does not start, or an object is rejected.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The simulated API server rejects a CRD.
    #[error("install the kinds: {0}")]
    Kinds(String),
    /// The Ironic client cannot be created.
    #[error("reach the simulated Ironic")]
    Ironic(#[from] metal3_ironic::endpoint::EndpointError),
    /// A document cannot be sent.
    #[error("{0}: {1}")]
    Document(String, String),
    /// The API server rejects it.
    #[error("{0}")]
    Refused(String, #[source] Box<kube::Error>),
}

impl World {
    /// Starts a world without hosts and clusters.
    ///
    /// # Errors
    /// When a simulator rejects the setup, which is a defect.
    pub fn start(setup: &Setup) -> Result<Self, WorldError> {
        let Setup { seed, clock, pace, .. } = setup;
        let cluster = Cluster::start(&Options {
            clock: Arc::clone(clock),
            ..Options::seeded(*seed)
        });
        let mut installed = definitions();
        if !setup.serves_v1beta1 {
            kinds::remove_v1beta1(&mut installed);
        }
        cluster
            .install(&installed)
            .map_err(|refusal| WorldError::Kinds(format!("{refusal:?}")))?;
        for (group, kind) in kinds::converted().filter(|_| setup.serves_v1beta1) {
            cluster.convert(group, kind, Arc::new(kinds::v1beta1::convert));
        }
        let mut metal = Metal::new(*seed, Arc::clone(clock));
        metal.pace = pace.clone();
        let ironic = Ironic::start(metal);
        let workloads = WorkloadClusters::new(*seed, Arc::clone(clock));
        let starts = watch::Sender::new(0);
        let metrics: Arc<Mutex<Metrics>> = Arc::default();
        let products = Products {
            cluster: cluster.clone(),
            ironic: ironic.client_for(setup.speed)?,
            workloads: workloads.clone(),
            clock: Arc::clone(clock),
            metrics: Arc::clone(&metrics),
            looks_before_joins: setup.looks_before_joins,
            speed: setup.speed,
            deprovision_budget: DeprovisionBudget {
                limit: setup.deprovision_budget,
                ..DeprovisionBudget::default()
            },
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(keep_running(products, starts.subscribe(), cluster.crashes()));
        stand_ins(setup, (&cluster, &ironic, &workloads), &mut tasks);
        let collected = cluster.clone();
        tasks.spawn(async move { collected.run_collector().await });
        let user = cluster.client("user");
        Ok(Self {
            cluster,
            ironic,
            workloads,
            user,
            namespace: setup.namespace.clone(),
            metrics,
            starts,
            _tasks: tasks,
        })
    }

    /// The metrics of the running products. After a restart these are others, as in a new process.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.metrics.lock().clone()
    }

    /// Kills and restarts the products.
    pub fn restart(&self) {
        self.starts.send_modify(|count| *count = count.saturating_add(1));
    }

    /// Adds a machine, its BMC Secret and its BareMetalHost.
    ///
    /// # Errors
    /// When the API server rejects one.
    pub async fn add_host(&self, number: u32, labels: &Value) -> Result<(), WorldError> {
        self.add_host_with(number, labels, &Value::Null).await
    }

    /// The same, with more members of the spec.
    pub(super) async fn add_host_with(&self, number: u32, labels: &Value, spec: &Value) -> Result<(), WorldError> {
        let (name, secret_name) = (host_name(number), format!("{}-bmc", host_name(number)));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": secret_name, "namespace": self.namespace, "labels": { "environment.metal3.io": "baremetal" },
            },
            "stringData": { "username": BMC_USER, "password": BMC_PASSWORD },
        });
        self.apply(&secret).await?;
        let mac = self.machine(number, |machine| machine.macs().into_iter().next());
        let mut host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name, "namespace": self.namespace, "labels": labels },
            "spec": {
                "online": true, "bootMACAddress": mac.flatten(),
                "bmc": { "address": bmc_address(number), "credentialsName": secret_name },
            },
        });
        let own = host.get_mut("spec").and_then(Value::as_object_mut);
        own.into_iter().for_each(|own| {
            own.extend(
                spec.as_object()
                    .into_iter()
                    .flatten()
                    .map(|(k, v)| (k.clone(), v.clone())),
            )
        });
        self.apply(&host).await
    }

    /// The namespace of hosts.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Reads or changes a machine.
    pub fn machine<T>(&self, number: u32, access: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        self.ironic.machine_at(&bmc_address(number), access)
    }

    /// Creates the object of a document, or patches the existing one.
    ///
    /// # Errors
    /// When the API server rejects it.
    pub async fn apply(&self, document: &Value) -> Result<(), WorldError> {
        let text = |at: &str| document.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let label = format!("{} {}", text("/kind"), text("/metadata/name"));
        let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty());
        let place = collection(text("/apiVersion"), text("/kind"), namespace.unwrap_or(&self.namespace))
            .map_err(|why| WorldError::Document(label.clone(), why))?;
        let refused = |error| WorldError::Refused(label.clone(), Box::new(error));
        match self.send(Method::POST, &place, "application/json", document).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let path = format!("{place}/{}", text("/metadata/name"));
                let changed = self
                    .send(Method::PATCH, &path, "application/merge-patch+json", document)
                    .await;
                changed.map(drop).map_err(refused)
            }
            created => created.map(drop).map_err(refused),
        }
    }

    /// Sends a request as the user.
    ///
    /// # Errors
    /// When the API server rejects it.
    pub async fn send(&self, method: Method, path: &str, media: &str, body: &Value) -> Result<Value, kube::Error> {
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, media)
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.user.request(request).await
    }
}

/// Starts the stand-ins of other managers and of kubelets.
fn stand_ins(
    setup: &Setup,
    (cluster, ironic, workloads): (&Cluster, &Ironic, &WorkloadClusters),
    tasks: &mut JoinSet<()>,
) {
    let boot = setup.boot;
    let stand_in = |name| program::Parts {
        client: cluster.client(name),
        workloads: Arc::new(workloads.clone()),
        clock: Arc::clone(&setup.clock),
    };
    tasks.spawn(program::run(stand_in("cluster-api"), Providers::All));
    tasks.spawn(kamaji::run(stand_in("kamaji")));
    if setup.automated {
        tasks.spawn(kamaji::balance(stand_in("balancer")));
        tasks.spawn(byoh::agent::run(byoh::agent::Parts {
            client: cluster.client("agent"),
            workloads: workloads.clone(),
            boot,
        }));
    }
    tasks.spawn(kubelet::run(kubelet::Parts {
        client: cluster.client("kubelet"),
        ironic: ironic.clone(),
        workloads: workloads.clone(),
        boot,
    }));
}

/// The name of a host.
#[must_use]
pub fn host_name(number: u32) -> String {
    format!("host-{number}")
}

/// The number of a host with such a name.
#[must_use]
pub fn host_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("host-")?.parse().ok()?;
    (host_name(number) == name).then_some(number)
}

/// Restarts the products after every crash and on request.
async fn keep_running(products: Products, mut starts: watch::Receiver<u64>, mut crashes: watch::Receiver<u64>) {
    loop {
        let _running = products.start();
        tokio::select! {
            biased;
            requested = starts.changed() => if requested.is_err() { return },
            crashed = crashes.changed() => if crashed.is_err() { return },
        }
    }
}
