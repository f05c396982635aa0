//! An API server, an Ironic with machines, the programs, and a user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use metal3_api::infrastructure::names::FAILURE_DOMAIN_LABEL;
use metal3_domain::clock::Clock;
use metal3_runtime::clock::TimerClock;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_ironic::{Ironic, Options as Metal};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::counting::{Kind, RequestCounts};
use crate::lab::{CLUSTER_API, HOSTS, INFRASTRUCTURE, IPAM, User, kinds, owner};
use crate::nodes::WorkloadNodes;
use crate::programs::{self, Environment, WORKLOAD};

pub(crate) const CORE: &str = "/api/v1/namespaces/default";

const CLUSTER: &str = "edge";
/// User name of the user's client.
const USER: &str = "user";
/// Number of checks before the user gives up, and the simulated time between two checks.
const MAX_CHECKS: u32 = 400;
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    ironic: Ironic,
    nodes: WorkloadNodes,
    counts: RequestCounts,
    pub(crate) user: User,
    /// The only zone: the hosts are in it, and the machines take their data from it.
    zone: Option<&'static str>,
    _programs: JoinSet<()>,
}

/// The requests of the programs since the last reset, by program and kind.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) writes: BTreeMap<String, u64>,
    pub(crate) reads: BTreeMap<String, u64>,
    pub(crate) host_lists: u64,
    pub(crate) ironic: BTreeMap<String, u64>,
    /// To the API server of the workload cluster.
    pub(crate) workload: BTreeMap<String, u64>,
}

impl Site {
    /// A site with a cluster, a template and a pool, and with running programs.
    pub(crate) async fn new() -> Result<Self> {
        Self::with_zone(None).await
    }

    /// The same, with a zone if there is one.
    pub(crate) async fn with_zone(zone: Option<&'static str>) -> Result<Self> {
        let cluster = Cluster::start(&Options::seeded(1));
        let installed = cluster.install(&kinds());
        installed.map_err(|rejection| anyhow::anyhow!("installing the kinds: {rejection:?}"))?;
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let ironic = Ironic::start(Metal::new(1, Arc::clone(&clock)));
        let (nodes, counts) = (WorkloadNodes::default(), RequestCounts::default());
        let programs = programs::start(&Environment {
            cluster: &cluster,
            ironic: ironic.client().context("the simulated Ironic")?,
            nodes: &nodes,
            clock: &clock,
            counts: &counts,
        });
        let site = Self {
            counts,
            user: User(cluster.client(USER)),
            cluster,
            ironic,
            nodes,
            zone,
            _programs: programs,
        };
        site.prepare().await?;
        Ok(site)
    }

    async fn prepare(&self) -> Result<()> {
        let spec = json!({ "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": CLUSTER } });
        let status = json!({ "initialization": { "infrastructureProvisioned": true } });
        let cluster = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": CLUSTER }, "spec": spec,
        });
        let cluster = self.user.make(CLUSTER_API, "clusters", cluster).await;
        self.user
            .change(
                CLUSTER_API,
                &format!("clusters/{CLUSTER}/status"),
                json!({ "status": status }),
            )
            .await;
        let mut spec = json!({ "controlPlaneEndpoint": { "host": "192.0.2.1", "port": 6443 } });
        if let Some(zone) = self.zone {
            let zones = json!([{ "name": zone, "dataTemplate": { "name": "tpl" } }]);
            metal3_runtime::patch::apply(
                &json!({ "failureDomainPolicy": "Required", "deploymentZones": zones }),
                &mut spec,
            );
        }
        let metal3_cluster = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Cluster",
            "metadata": { "name": CLUSTER, "ownerReferences": [owner(&cluster)] }, "spec": spec,
        });
        self.user.make(INFRASTRUCTURE, "metal3clusters", metal3_cluster).await;
        let pool = json!({
            "apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool", "metadata": { "name": "pool" },
            "spec": { "namePrefix": "p", "prefix": 16, "pools": [{ "start": "10.0.0.10", "end": "10.0.200.10" }] },
        });
        self.user.make(IPAM, "ippools", pool).await;
        let link = json!({ "type": "phy", "id": "eth0", "macAddress": { "string": "52:54:00:aa:00:01" } });
        let template = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3DataTemplate",
            "metadata": { "name": "tpl" },
            "spec": {
                "metaData": { "indexes": [{ "key": "number" }], "ipAddressesFromPool": [{ "key": "ip", "name": "pool" }] },
                "networkData": {
                    "links": { "ethernets": [link] },
                    "networks": { "ipv4": [{ "id": "net", "link": "eth0", "ipAddressFromIPPool": "pool" }] },
                },
            },
        });
        self.user.make(INFRASTRUCTURE, "metal3datatemplates", template).await;
        self.until_idle().await
    }

    /// A server with its BMC, the Secret, and the host.
    pub(crate) async fn enrol(&self, number: u32) -> Result<()> {
        let (high, low) = (number / 250, number % 250 + 1);
        let address = format!("redfish-virtualmedia://10.0.{high}.{low}/redfish/v1/Systems/1");
        let macs = self.ironic.machine_at(&address, |machine| machine.macs());
        let mac = macs.and_then(|macs| macs.into_iter().next()).context("a MAC address")?;
        let login = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("bmc-{number}"),
            "labels": { "environment.metal3.io": "baremetal" } }, "stringData": { "username": "admin", "password": "x" } });
        self.user.make(CORE, "secrets", login).await;
        let bmc = json!({ "address": address, "credentialsName": format!("bmc-{number}") });
        let host = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "name": format!("host-{number}"), "labels": self.zone.map(|zone| json!({ FAILURE_DOMAIN_LABEL: zone })) },
            "spec": { "online": true, "bootMACAddress": mac, "bmc": bmc },
        });
        self.user.make(HOSTS, "baremetalhosts", host).await;
        Ok(())
    }

    /// A Machine with its Metal3Machine and bootstrap data, as Cluster API creates them.
    pub(crate) async fn machine(&self, number: u32) {
        let name = format!("m-{number}");
        let labels = json!({ "cluster.x-k8s.io/cluster-name": CLUSTER });
        let boot = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": format!("{name}-boot") },
            "stringData": { "value": "#cloud-config", "format": "cloud-config" } });
        self.user.make(CORE, "secrets", boot).await;
        let reference = json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": name });
        let bootstrap =
            json!({ "configRef": { "kind": "KubeadmConfig", "name": name }, "dataSecretName": format!("{name}-boot") });
        let owning = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": { "name": name, "labels": labels },
            "spec": { "clusterName": CLUSTER, "bootstrap": bootstrap, "infrastructureRef": reference, "failureDomain": self.zone },
        });
        let owning = self.user.make(CLUSTER_API, "machines", owning).await;
        let image = json!({ "url": "http://images.example/disk.raw", "checksum": "c".repeat(64), "checksumType": "sha256", "diskFormat": "raw" });
        let machine = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
            "metadata": { "name": name, "labels": labels, "ownerReferences": [owner(&owning)] },
            "spec": { "image": image, "dataTemplate": self.zone.is_none().then(|| json!({ "name": "tpl" })) },
        });
        self.user.make(INFRASTRUCTURE, "metal3machines", machine).await;
    }

    pub(crate) async fn delete_machine(&self, number: u32) {
        self.user
            .delete(INFRASTRUCTURE, &format!("metal3machines/m-{number}"))
            .await;
    }

    pub(crate) async fn delete_host(&self, number: u32) {
        self.user.delete(HOSTS, &format!("baremetalhosts/host-{number}")).await;
    }

    /// The Node of each provisioned host registers.
    pub(crate) async fn join_nodes(&self) {
        for host in self.user.list(HOSTS, "baremetalhosts").await {
            let text = |place: &str| host.pointer(place).and_then(Value::as_str).unwrap_or_default();
            let (name, machine) = (text("/metadata/name"), text("/spec/consumerRef/name"));
            if text("/status/provisioning/state") == "provisioned" && !machine.is_empty() {
                self.nodes
                    .join(format!("node-{machine}"), format!("metal3://default/{name}/{machine}"));
            }
        }
    }

    /// Waits until that many objects of a kind have the value at a path, and no writes occur.
    pub(crate) async fn until(&self, what: Awaited, place: &str, value: &Value, count: usize) -> Result<()> {
        let (root, plural) = what.path();
        for _ in 0..MAX_CHECKS {
            let items = self.user.list(root, plural).await;
            if items.iter().filter(|item| item.pointer(place) == Some(value)).count() == count {
                return self.until_idle().await;
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        let data = self.user.list(INFRASTRUCTURE, "metal3datas").await;
        let messages: Vec<_> = data
            .iter()
            .filter_map(|data| data.pointer("/status/errorMessage"))
            .collect();
        bail!("never {count} {plural} with {place} = {value}; the data say {messages:?}")
    }

    /// Waits until that many objects of a kind exist, and no writes occur.
    pub(crate) async fn until_left(&self, what: Awaited, count: usize) -> Result<()> {
        let (root, plural) = what.path();
        for _ in 0..MAX_CHECKS {
            if self.user.list(root, plural).await.len() == count {
                return self.until_idle().await;
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
        bail!("never {count} {plural}")
    }

    /// Waits until no writes occur for a while.
    pub(crate) async fn until_idle(&self) -> Result<()> {
        let mut before = None;
        for _ in 0..MAX_CHECKS {
            // The garbage collector runs here explicitly, so that its requests are not counted.
            while self.cluster.collect_garbage() > 0 {}
            let version = Some(self.cluster.version());
            if version == before {
                return Ok(());
            }
            before = version;
            tokio::time::sleep(Duration::from_mins(10)).await;
        }
        bail!("the writes never end: {:?}", self.cluster.audit())
    }

    /// The requests since the last reset.
    pub(crate) fn requests(&self) -> Requests {
        let mut requests = Requests::default();
        for ((kind, what), number) in self.counts.take() {
            if what.contains(": list") && what.ends_with(" baremetalhosts") {
                requests.host_lists = requests.host_lists.saturating_add(number);
            }
            let of = match kind {
                _ if what.starts_with(WORKLOAD) => &mut requests.workload,
                Kind::Write => &mut requests.writes,
                Kind::Read => &mut requests.reads,
                Kind::List => &mut requests.reads,
            };
            of.insert(what, number);
        }
        // The list of nodes is the change feed, shared by all hosts.
        for ((method, resource), number) in self.ironic.audit().counts() {
            if (method.as_str(), resource.as_str()) != ("GET", "nodes") {
                requests.ironic.insert(format!("{method} {resource}"), number);
            }
        }
        self.ironic.reset_audit();
        requests
    }
}

/// The kind to wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Awaited {
    Hosts,
    Machines,
    Remediations,
}

impl Awaited {
    const fn path(self) -> (&'static str, &'static str) {
        match self {
            Self::Hosts => (HOSTS, "baremetalhosts"),
            Self::Machines => (INFRASTRUCTURE, "metal3machines"),
            Self::Remediations => (INFRASTRUCTURE, "metal3remediations"),
        }
    }
}
