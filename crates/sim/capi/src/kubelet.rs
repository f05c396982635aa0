//! Kubelets of the machines: a machine whose disk holds a valid boot configuration becomes a Node.
//!
//! A watch event of a host triggers an observation of its simulated machine: its power state and the content of its
//! disk. A machine joins only when the API server at its configured endpoint answers and has its token. It retries, as
//! kubeadm does.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use metal3_ironic::model::state::PowerState;
use metal3_runtime::cache::Key;
use metal3_sim_ironic::Ironic;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::kinds::Kind;
use crate::node::{Boot, Role, first_boot};
use crate::program::request;
use crate::view::{Object, text_of};
use crate::watch::{WatchEvent, follow};
use crate::workload::{WorkloadClusters, WorkloadServers as _};

/// Between attempts to join.
pub(crate) const RETRY: Duration = Duration::from_secs(5);
const HOST: &Kind = &Kind {
    group: "metal3.io",
    version: "v1alpha1",
    kind: "BareMetalHost",
    plural: "baremetalhosts",
};

/// Dependencies of the kubelets.
pub struct Parts {
    /// The API server with the hosts.
    pub client: kube::Client,
    /// The Ironic that has their machines.
    pub ironic: Ironic,
    /// The workload clusters.
    pub workloads: WorkloadClusters,
    /// Duration from power on until kubeadm has finished.
    pub boot: Duration,
}

/// What runs on one machine.
#[derive(Debug, Clone, PartialEq)]
enum MachineState {
    /// No Kubernetes, and the reason if the boot data is invalid.
    Idle(Option<String>),
    /// First boot, finished at that time.
    Booting(Box<Boot>, Instant),
    /// The kubelet of a Node, which it registers at each start, and whether it is reported as ready.
    Kubelet { endpoint: String, node: Value, is_on: bool },
}

/// A machine with a written disk.
#[derive(Debug)]
struct Machine {
    written: u32,
    state: MachineState,
}

/// Runs the kubelets until the future is dropped.
pub async fn run(parts: Parts) {
    let (to, mut events) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(parts.client.clone(), HOST.clone(), None, to, |event| event));
    let mut all: BTreeMap<Key, Machine> = BTreeMap::new();
    loop {
        let next = all.values().filter_map(Machine::due).min();
        let event = match next {
            Some(due) => tokio::time::timeout_at(due, events.recv()).await.ok(),
            None => Some(events.recv().await),
        };
        match event {
            Some(None) => return,
            Some(Some(WatchEvent::Applied(host))) => observe(&parts, &mut all, &host).await,
            Some(Some(WatchEvent::Deleted(host))) => drop(all.remove(&host.key())),
            Some(Some(WatchEvent::Listed(keys))) => all.retain(|key, _| keys.contains(key)),
            None => {
                for machine in all.values_mut() {
                    machine.advance(&parts).await;
                }
            }
        }
    }
}

/// Observes the machine of a host.
async fn observe(parts: &Parts, all: &mut BTreeMap<Key, Machine>, host: &Object) {
    let key = host.key();
    let seen = parts.ironic.machine_at(host.text("/spec/bmc/address"), |machine| {
        let drive = machine.disk.as_ref().and_then(|disk| disk.config_drive.clone());
        (machine.power == PowerState::On, drive, machine.counts.written)
    });
    let Some((is_on, Some(drive), written)) = seen else {
        all.remove(&key);
        return;
    };
    // Before that, a deploy ramdisk may still run.
    let is_deployed = host.text("/status/provisioning/state") == "provisioned";
    match all.get_mut(&key).filter(|machine| machine.written == written) {
        Some(machine) => machine.power(parts, is_on).await,
        None if is_on && is_deployed => {
            let state = start(&drive, parts.boot);
            if let MachineState::Idle(Some(why)) = &state {
                tracing::warn!(host = %key, "the machine came up without Kubernetes: {why}");
            }
            all.insert(key, Machine { written, state });
        }
        None => {}
    }
}

/// The first state of a machine with this config drive.
fn start(drive: &Value, duration: Duration) -> MachineState {
    let user_data = text_of(drive, "user_data");
    let nothing = Map::new();
    let meta_data = drive.get("meta_data").and_then(Value::as_object).unwrap_or(&nothing);
    let finished = Instant::now().checked_add(duration);
    match (first_boot(user_data, meta_data), finished) {
        (Ok(Some(boot)), Some(finished)) => MachineState::Booting(Box::new(boot), finished),
        (Ok(_), _) => MachineState::Idle(None),
        (Err(why), _) => MachineState::Idle(Some(why)),
    }
}

impl Machine {
    /// Time of its next attempt.
    fn due(&self) -> Option<Instant> {
        match &self.state {
            MachineState::Booting(_, due) => Some(*due),
            MachineState::Idle(_) | MachineState::Kubelet { .. } => None,
        }
    }

    /// Joins when the time has come.
    async fn advance(&mut self, parts: &Parts) {
        let now = Instant::now();
        let MachineState::Booting(boot, due) = &mut self.state else {
            return;
        };
        if *due > now {
            return;
        }
        if let Err(why) = join(&parts.workloads, boot).await {
            tracing::debug!(endpoint = boot.endpoint, "not joined: {why}");
            *due = now.checked_add(RETRY).unwrap_or(now);
            return;
        }
        self.state = MachineState::Kubelet {
            endpoint: boot.endpoint.clone(),
            node: boot.node.clone(),
            is_on: true,
        };
    }

    /// Reports a change of the power state to the Node.
    async fn power(&mut self, parts: &Parts, now_on: bool) {
        let MachineState::Kubelet { endpoint, node, is_on } = &mut self.state else {
            return;
        };
        if *is_on == now_on {
            return;
        }
        let Some(cluster) = parts.workloads.at(endpoint) else {
            return;
        };
        let client = cluster.client("kubelet");
        let reported = if now_on {
            register(&client, node).await
        } else {
            let ready = json!({ "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "" });
            let change = json!({ "status": { "conditions": [ready] } });
            send(&client, Method::PATCH, &format!("{}/status", path(node)), &change)
                .await
                .map(drop)
        };
        if reported.is_ok() {
            *is_on = now_on;
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Joins the cluster as kubeadm and the kubelet do.
pub(crate) async fn join(workloads: &WorkloadClusters, boot: &Boot) -> Result<(), String> {
    if boot.role == Role::Init {
        workloads.start(&boot.endpoint);
    }
    let cluster = workloads
        .at(&boot.endpoint)
        .ok_or("no API server answers at the endpoint")?;
    let client = cluster.client("kubelet");
    if let Role::Join(token) = &boot.role {
        let (id, secret) = token.split_once('.').unwrap_or((token, ""));
        let path = format!("/api/v1/namespaces/kube-system/secrets/bootstrap-token-{id}");
        let found = send(&client, Method::GET, &path, &Value::Null).await?;
        let known = found.pointer("/data/token-secret").map(text).unwrap_or_default();
        if known.is_empty() || secret.is_empty() {
            return Err("the API server does not have the token".to_owned());
        }
    }
    register(&client, &boot.node).await
}

/// Creates the Node, unless it exists, and reports it as ready.
async fn register(client: &kube::Client, node: &Value) -> Result<(), String> {
    match send(client, Method::POST, "/api/v1/nodes", node).await {
        Err(why) if !why.contains("already exists") => return Err(why),
        _ => {}
    }
    // An API server may drop the status of a new object.
    let change = json!({ "status": node.get("status") });
    let path = format!("{}/status", path(node));
    send(client, Method::PATCH, &path, &change).await.map(drop)
}

fn path(node: &Value) -> String {
    let name = text_of(node.get("metadata").unwrap_or(&Value::Null), "name");
    format!("/api/v1/nodes/{name}")
}

pub(crate) async fn send(client: &kube::Client, method: Method, path: &str, body: &Value) -> Result<Value, String> {
    request(client, method, path, body)
        .await
        .map_err(|error| error.to_string())
}
