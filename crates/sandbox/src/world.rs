//! The whole mission in one process: an API server, an Ironic with machines, Cluster API, and the products.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use metal3_api::catalog;
use metal3_api::cluster::names::IPAM_GROUP;
use metal3_api::crd::Definition;
use metal3_domain::clock::Clock;
pub use metal3_sim_bmc::fault::Faults;
use metal3_sim_capi::kinds::Kind;
use metal3_sim_capi::program::Providers;
use metal3_sim_capi::workload::WorkloadClusters;
use metal3_sim_capi::{byoh, kamaji, kinds, kubelet, program};
use metal3_sim_cluster::{Cluster, Options, cluster_api};
use metal3_sim_ironic::{Ironic, Machine, Options as Metal, Pace};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::products::Products;

/// The namespace of hosts and clusters, unless a world says another.
pub const NAMESPACE: &str = "default";
/// Who logs in to every BMC.
const BMC_USER: &str = "admin";
/// What unlocks every BMC: a word that occurs nowhere else, so that whoever tells it is found out.
pub const BMC_PASSWORD: &str = "open-sesame-bmc";

/// How a world begins.
#[derive(Debug, Clone)]
pub struct Setup {
    /// What names and identities follow from.
    pub seed: u64,
    /// Time, for everything in it.
    pub clock: Arc<dyn Clock>,
    /// How long hardware takes.
    pub pace: Pace,
    /// From power on until kubeadm is through.
    pub boot: Duration,
    /// Where hosts and objects are that name no namespace.
    pub namespace: String,
    /// Somebody balances load, and agents run on hosts that are brought along. Without, that is the user's work.
    pub attended: bool,
}

impl Setup {
    /// Hardware that takes its time, as real hardware does: for time that costs nothing.
    #[must_use]
    pub fn unhurried(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self {
            seed,
            clock,
            pace: Pace::default(),
            boot: Duration::from_secs(60),
            namespace: NAMESPACE.to_owned(),
            attended: true,
        }
    }
}

impl Setup {
    /// Hardware that is so many times faster than real hardware.
    #[must_use]
    pub fn faster(seed: u64, clock: Arc<dyn Clock>, speed: u32) -> Self {
        let Pace {
            request,
            fake_power,
            fake_work,
            bmc,
            boot,
            work,
            ..
        } = Pace::default();
        let quick = |time: Duration| time.checked_div(speed).unwrap_or(time);
        let unhurried = Self::unhurried(seed, clock);
        Self {
            pace: Pace {
                request,
                fake_power,
                fake_work,
                bmc: quick(bmc),
                boot: quick(boot),
                work: quick(work),
                ..Pace::default()
            },
            boot: quick(unhurried.boot),
            ..unhurried
        }
    }
}

/// A world. Dropping it ends everything in it.
pub struct World {
    /// The management cluster.
    pub cluster: Cluster,
    /// Ironic, and the machines behind it.
    pub ironic: Ironic,
    /// The workload clusters.
    pub workloads: WorkloadClusters,
    user: kube::Client,
    namespace: String,
    /// Counts the starts of the products.
    starts: watch::Sender<u64>,
    _tasks: JoinSet<()>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

/// Why a world does not begin, or an object is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The simulated API server refuses one of our kinds.
    #[error("install the kinds: {0}")]
    Kinds(String),
    /// There is no way to Ironic.
    #[error("reach the simulated Ironic")]
    Ironic(#[from] metal3_ironic::endpoint::EndpointError),
    /// A document cannot be sent.
    #[error("{0}: {1}")]
    Document(String, String),
    /// The API server refuses it.
    #[error("{0}")]
    Refused(String, #[source] Box<kube::Error>),
}

impl World {
    /// Begins one without hosts and clusters.
    ///
    /// # Errors
    /// When the simulators refuse what we give them, which is a defect.
    pub fn begin(setup: &Setup) -> Result<Self, Trouble> {
        let Setup { seed, clock, pace, .. } = setup;
        let cluster = Cluster::start(&Options {
            clock: Arc::clone(clock),
            ..Options::seeded(*seed)
        });
        let ipam = cluster_api()
            .into_iter()
            .filter(|kind| kind.group == "ipam.cluster.x-k8s.io");
        let all: Vec<_> = catalog::definitions()
            .into_iter()
            .chain(kinds::definitions())
            .chain(ipam)
            .collect();
        cluster
            .install(&all)
            .map_err(|refusal| Trouble::Kinds(format!("{refusal:?}")))?;
        for (group, kind) in kinds::converted() {
            cluster.convert(group, kind, Arc::new(kinds::v1beta1::convert));
        }
        let mut metal = Metal::new(*seed, Arc::clone(clock));
        metal.pace = pace.clone();
        let ironic = Ironic::start(metal);
        let workloads = WorkloadClusters::new(*seed, Arc::clone(clock));
        let starts = watch::Sender::new(0);
        let products = Products {
            cluster: cluster.clone(),
            ironic: ironic.client()?,
            workloads: workloads.clone(),
            clock: Arc::clone(clock),
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
            starts,
            _tasks: tasks,
        })
    }

    /// Kills the products and starts them anew.
    pub fn restart(&self) {
        self.starts.send_modify(|count| *count = count.saturating_add(1));
    }

    /// A machine, the Secret of its BMC, and its host.
    ///
    /// # Errors
    /// When the API server refuses one.
    pub async fn add_host(&self, number: u32, labels: &Value) -> Result<(), Trouble> {
        let (name, login) = (host_name(number), format!("{}-bmc", host_name(number)));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": login, "namespace": self.namespace },
            "stringData": { "username": BMC_USER, "password": BMC_PASSWORD },
        });
        self.apply(&secret).await?;
        let mac = self.machine(number, |machine| machine.macs().into_iter().next());
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": name, "namespace": self.namespace, "labels": labels },
            "spec": {
                "online": true, "bootMACAddress": mac.flatten(),
                "bmc": { "address": bmc_address(number), "credentialsName": login },
            },
        });
        self.apply(&host).await
    }

    /// Looks at a machine, or changes it.
    pub fn machine<T>(&self, number: u32, look: impl FnOnce(&mut Machine) -> T) -> Option<T> {
        self.ironic.machine_at(&bmc_address(number), look)
    }

    /// Makes the object of a document, or changes the one that is there by it.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn apply(&self, document: &Value) -> Result<(), Trouble> {
        let text = |at: &str| document.pointer(at).and_then(Value::as_str).unwrap_or_default();
        let label = format!("{} {}", text("/kind"), text("/metadata/name"));
        let namespace = Some(text("/metadata/namespace")).filter(|name| !name.is_empty());
        let place = collection(text("/apiVersion"), text("/kind"), namespace.unwrap_or(&self.namespace))
            .map_err(|why| Trouble::Document(label.clone(), why))?;
        let refused = |error| Trouble::Refused(label.clone(), Box::new(error));
        match self.send(Method::POST, &place, "application/json", document).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let path = format!("{place}/{}", text("/metadata/name"));
                let changed = self
                    .send(Method::PATCH, &path, "application/merge-patch+json", document)
                    .await;
                changed.map(drop).map_err(refused)
            }
            made => made.map(drop).map_err(refused),
        }
    }

    /// Sends a request as the user.
    ///
    /// # Errors
    /// When the API server refuses it.
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

/// All that is neither ours nor the server's.
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
    if setup.attended {
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

/// Every kind that is installed: ours, Cluster API's, and the claims of its address management.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    let claims = cluster_api().into_iter().filter(|kind| kind.group == IPAM_GROUP);
    catalog::definitions()
        .into_iter()
        .chain(kinds::definitions())
        .chain(claims)
        .collect()
}

/// Every kind that is installed, in the version that is stored, and Secrets.
#[must_use]
pub fn all_kinds() -> Vec<Kind> {
    let stored = |kind: Definition| {
        let version = kind.versions.iter().find(|version| version.storage)?.name;
        Some(Kind {
            group: kind.group,
            version,
            kind: kind.kind,
            plural: kind.plural,
        })
    };
    let secret = Kind {
        group: "",
        version: "v1",
        kind: "Secret",
        plural: "secrets",
    };
    definitions().into_iter().filter_map(stored).chain([secret]).collect()
}

/// Group and version of a kind. Of two kinds of one name, ours.
#[must_use]
pub fn version_of(kind: &str) -> Option<String> {
    let all = all_kinds();
    all.iter().find(|known| known.kind == kind).map(Kind::api_version)
}

/// Where the objects of a kind are.
///
/// # Errors
/// When nobody here knows the kind.
pub fn collection(api_version: &str, kind: &str, namespace: &str) -> Result<String, String> {
    if api_version == "v1" {
        let plural = match kind {
            "Secret" => "secrets",
            "ConfigMap" => "configmaps",
            _ => return Err(format!("kind {kind}: not known in {api_version}")),
        };
        return Ok(format!("/api/v1/namespaces/{namespace}/{plural}"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or_default();
    let all = catalog::definitions()
        .into_iter()
        .chain(kinds::definitions())
        .chain(cluster_api());
    let found = all.into_iter().find(|known| known.group == group && known.kind == kind);
    let plural = found
        .ok_or_else(|| format!("kind {kind}: not known in {api_version}"))?
        .plural;
    Ok(format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}"))
}

/// The name of a host.
#[must_use]
pub fn host_name(number: u32) -> String {
    format!("host-{number}")
}

/// Where the BMC of a host is.
#[must_use]
pub fn bmc_address(number: u32) -> String {
    let (high, low) = (number.div_euclid(250), number.rem_euclid(250).saturating_add(1));
    format!("redfish-virtualmedia://10.0.{high}.{low}/redfish/v1/Systems/1")
}

/// Keeps the products running, through every crash and every restart that is asked for.
async fn keep_running(products: Products, mut starts: watch::Receiver<u64>, mut crashes: watch::Receiver<u64>) {
    loop {
        let _running = products.start();
        tokio::select! {
            biased;
            asked = starts.changed() => if asked.is_err() { return },
            crashed = crashes.changed() => if crashed.is_err() { return },
        }
    }
}
