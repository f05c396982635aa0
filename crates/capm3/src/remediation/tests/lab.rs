//! The controller on a simulated API server, which also has the Nodes, and the steps of all other programs.

use std::sync::Arc;

use k8s_openapi::ByteString;
use metal3_api::cluster::Machine;
use metal3_api::crd::Definition;
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{ConnectFn, Remote, Repairs};
use metal3_domain::clock::Clock;
use metal3_harness::State;
use metal3_runtime::cache::SharedCache;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::WatchConfig;
use metal3_runtime::write::{Mode, Writer};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::controller::caches::Caches;
use crate::data::reconciler::tests::lab::{CLUSTER_API, HOSTS, INFRASTRUCTURE, User, kinds as all_kinds, owner};
use crate::needs::{Machines, Remediations as Role};
use crate::remediation::reconciler::{Parts, controller, own_watches};

pub(super) const CORE: &str = "/api/v1/namespaces/default";
const NODES: &str = "/api/v1";
const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n\
                          clusters: [{name: k, cluster: {server: 'https://192.0.2.1:6443'}}]\nusers: [{name: u, user: {token: t}}]\n";

/// The stored versions only: nothing is converted here.
pub(super) fn kinds() -> Vec<Definition> {
    let stored = |mut kind: Definition| {
        kind.versions.retain(|version| version.storage);
        kind.conversion = None;
        kind
    };
    all_kinds().into_iter().map(stored).collect()
}

/// Starts the controller with its watches. Dropping the set stops them.
pub(super) fn start(client: &kube::Client, clock: &Arc<dyn Clock>, mode: Mode) -> JoinSet<()> {
    start_shared(client, clock, mode).0
}

/// The same, and its access to workload clusters.
pub(super) fn start_shared(
    client: &kube::Client,
    clock: &Arc<dyn Clock>,
    mode: Mode,
) -> (JoinSet<()>, Arc<Remote<Machines>>) {
    let (caches, remediations, stop) = (Caches::default(), SharedCache::default(), CancellationToken::new());
    let (events, _) = EventRecorder::bounded(16);
    let writer: Writer<Role> = Writer::new(client.clone(), mode);
    let reader: Writer<Machines> = Writer::new(client.clone(), mode);
    let workload = client.clone();
    let open: ConnectFn = Box::new(move |_| {
        let client = workload.clone();
        Box::pin(async move { Ok(client) })
    });
    let workloads = Arc::new(Remote::new(reader, open, Arc::clone(clock)));
    let parts = Parts {
        remediations: remediations.clone(),
        caches: caches.clone(),
        workloads: Arc::new(Repairs::new(Arc::clone(&workloads))),
        clock: Arc::clone(clock),
        events,
        metrics: Metrics::new(),
        watch_filter: None,
        workers: 2,
    };
    let controller = controller(parts, writer);
    let config = WatchConfig::everywhere(client, clock, &stop);
    let watches = caches.watches(&config).chain(own_watches(&remediations, &config));
    let mut tasks: JoinSet<()> = watches.into_tasks().into_iter().collect();
    let stopped = stop.clone();
    tasks.spawn(async move {
        controller.run(stopped).await;
    });
    let remote = Arc::clone(&workloads);
    tasks.spawn(async move { workloads.run(stop).await });
    (tasks, remote)
}

/// A step of a user, of Cluster API, of the controller of hosts or of a kubelet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// A machine in service. The text is the version of its kubelet.
    Begin(&'static str),
    /// A MachineHealthCheck creates the remediation, with this time of an attempt in seconds.
    Unhealthy(i32),
    /// The host is powered off or on, as its annotations request.
    Power,
    /// The kubelet registers the Node, unless it exists.
    Register,
    /// Pods of the Node terminate, or have terminated.
    Terminating(bool),
    /// The remediation is deleted.
    Delete,
    /// The owner deletes the Machine, and all that belongs to it except the host.
    Replace,
    /// The Cluster is paused or resumed.
    Pause(bool),
}

impl Step {
    pub(super) async fn take(self, user: &User) {
        match self {
            Self::Begin(kubelet) => begin(user, kubelet).await,
            Self::Unhealthy(timeout) => {
                let machine = user.get(CLUSTER_API, "machines/w-0").await;
                let remediation = json!({
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Remediation",
                    "metadata": {
                        "name": "w-0", "labels": { "cluster.x-k8s.io/cluster-name": "alpha" },
                        "ownerReferences": [owner(&machine)],
                    },
                    "spec": { "strategy": { "type": "Reboot", "retryLimit": 1, "timeoutSeconds": timeout } },
                });
                user.make(INFRASTRUCTURE, "metal3remediations", remediation).await;
            }
            Self::Power => {
                let host = user.get(HOSTS, "baremetalhosts/h0").await;
                let annotations = host["metadata"]["annotations"].as_object();
                let is_held = annotations.is_some_and(|all| all.keys().any(|key| key.starts_with("reboot.metal3.io/")));
                let status = json!({ "status": { "poweredOn": !is_held } });
                user.change(HOSTS, "baremetalhosts/h0/status", status).await;
            }
            Self::Register => {
                let all = user.list(NODES, "nodes").await;
                if all.is_empty() {
                    user.make(NODES, "nodes", node("")).await;
                }
            }
            Self::Terminating(true) => {
                let pod = json!({
                    "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "app", "finalizers": ["example.org/slow"] },
                    "spec": { "nodeName": "n0", "containers": [{ "name": "app", "image": "app" }] },
                });
                user.make(CORE, "pods", pod).await;
                user.delete(CORE, "pods/app").await;
            }
            Self::Terminating(false) => {
                let change = json!({ "metadata": { "finalizers": null } });
                user.change(CORE, "pods/app", change).await;
            }
            Self::Delete => user.delete(INFRASTRUCTURE, "metal3remediations/w-0").await,
            Self::Replace => {
                user.delete(CLUSTER_API, "machines/w-0").await;
            }
            Self::Pause(is_paused) => {
                let change = json!({ "spec": { "paused": is_paused } });
                user.change(CLUSTER_API, "clusters/alpha", change).await;
            }
        }
    }
}

fn node(kubelet: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "n0", "labels": { "kubernetes.io/hostname": "n0" } },
        "spec": { "providerID": "metal3://default/h0/w-0" },
        "status": { "nodeInfo": node_info(kubelet) },
    })
}

fn node_info(kubelet: &str) -> Value {
    json!({
        "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
        "kubeletVersion": kubelet, "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "",
    })
}

async fn begin(user: &User, kubelet: &str) {
    user.cluster().await;
    let kubeconfig = ByteString(KUBECONFIG.as_bytes().to_vec());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "alpha-kubeconfig" }, "data": { "value": kubeconfig },
    });
    user.make(CORE, "secrets", secret).await;
    let mut live = node(kubelet);
    live["metadata"]["labels"]["rack"] = "a".into();
    live["metadata"]["annotations"] = json!({ "example.org/note": "kept" });
    user.make(NODES, "nodes", live).await;
    let status = json!({ "status": { "nodeInfo": node_info(kubelet) } });
    user.change(NODES, "nodes/n0/status", status).await;
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine", "namespace": "default", "name": "w-0",
    });
    let host = json!({
        "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": "h0" },
        "spec": { "online": true, "consumerRef": consumer },
    });
    user.make(HOSTS, "baremetalhosts", host).await;
    let status = json!({ "status": {
        "poweredOn": true, "operationalStatus": "OK", "errorMessage": "", "errorCount": 0,
        "provisioning": { "state": "provisioned", "ID": "node", "image": { "url": "" } },
        "hardwareProfile": "", "operationHistory": {},
    } });
    user.change(HOSTS, "baremetalhosts/h0/status", status).await;
    let infrastructure =
        json!({ "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": "w-0" });
    let machine = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": "w-0", "labels": { "cluster.x-k8s.io/cluster-name": "alpha" } },
        "spec": { "clusterName": "alpha", "infrastructureRef": infrastructure },
    });
    let machine = user.make(CLUSTER_API, "machines", machine).await;
    let status = json!({ "status": { "nodeRef": { "name": "n0" } } });
    user.change(CLUSTER_API, "machines/w-0/status", status).await;
    let metal3_machine = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
        "metadata": {
            "name": "w-0", "ownerReferences": [owner(&machine)],
            "labels": { "cluster.x-k8s.io/cluster-name": "alpha" },
            "annotations": { "metal3.io/BareMetalHost": "default/h0" },
        },
        "spec": {
            "image": { "url": "http://image", "checksum": "http://sum" }, "providerID": "metal3://default/h0/w-0",
        },
    });
    user.make(INFRASTRUCTURE, "metal3machines", metal3_machine).await;
}

/// The objects of a state.
pub(super) struct View {
    pub(super) remediation: Option<Metal3Remediation>,
    pub(super) host: Option<BareMetalHost>,
    pub(super) machine: Option<Machine>,
    pub(super) node: Option<k8s_openapi::api::core::v1::Node>,
}

impl View {
    pub(super) fn of(state: &State) -> Self {
        Self {
            remediation: state.of::<Metal3Remediation>().pop(),
            host: state.of::<BareMetalHost>().pop(),
            machine: state.of::<Machine>().pop(),
            node: state.of::<k8s_openapi::api::core::v1::Node>().pop(),
        }
    }

    pub(super) fn paths() -> Vec<String> {
        vec![
            State::path::<Metal3Remediation>(),
            State::path::<Metal3Machine>(),
            State::path::<BareMetalHost>(),
            State::path::<Machine>(),
            State::path::<k8s_openapi::api::core::v1::Node>(),
        ]
    }

    /// Whether the host is kept off.
    pub(super) fn is_held(&self) -> bool {
        let annotations = self.host.iter().filter_map(|host| host.metadata.annotations.as_ref());
        annotations
            .flatten()
            .any(|(key, _)| key.starts_with("reboot.metal3.io/"))
    }

    pub(super) fn is_excluded(&self) -> bool {
        let host = self.host.as_ref();
        host.is_some_and(|host| host.annotation("capm3.metal3.io/unhealthy").is_some())
    }

    pub(super) fn is_given_up(&self) -> bool {
        let conditions = self.machine.iter().flat_map(|machine| machine.status.conditions.iter());
        conditions.into_iter().any(|one| one.type_ == "OwnerRemediated")
    }

    pub(super) fn is_tainted(&self) -> bool {
        let spec = self.node.as_ref().and_then(|node| node.spec.as_ref());
        let taints = spec.and_then(|spec| spec.taints.as_ref());
        taints
            .into_iter()
            .flatten()
            .any(|taint| taint.key.ends_with("/out-of-service"))
    }

    pub(super) fn labels(&self) -> Vec<String> {
        let node = self.node.as_ref().and_then(|node| node.metadata.labels.as_ref());
        node.into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    }
}
