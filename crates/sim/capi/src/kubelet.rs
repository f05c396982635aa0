//! The kubelets of the machines: what runs on a machine whose disk was written becomes a Node, or does not.
//!
//! A change of a host is the occasion to look; what counts is the simulated machine itself: whether it is on, and what
//! its disk was really given. A machine joins only where the API server at the endpoint it was told answers and knows the
//! token it was told. It keeps trying, as kubeadm does.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::{Method, Request};
use metal3_ironic::model::state::PowerState;
use metal3_sim_ironic::Ironic;
use metal3_runtime::hub::Key;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::kinds::Kind;
use crate::node::{Boot, Role, first_boot};
use crate::site::{Ground as _, Sites};
use crate::view::{Object, text_of};
use crate::watch::{News, follow};

/// Between attempts to join.
pub(crate) const RETRY: Duration = Duration::from_secs(5);
const HOST: &Kind = &Kind {
    group: "metal3.io",
    version: "v1alpha1",
    kind: "BareMetalHost",
    plural: "baremetalhosts",
};

/// What the kubelets need.
pub struct Parts {
    /// The API server with the hosts.
    pub client: kube::Client,
    /// The Ironic that has their machines.
    pub ironic: Ironic,
    /// The workload clusters.
    pub sites: Sites,
    /// From power on until kubeadm is through.
    pub boot: Duration,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("boot", &self.boot)
            .finish_non_exhaustive()
    }
}

/// What runs on one machine.
#[derive(Debug, Clone, PartialEq)]
enum Runs {
    /// Nothing of ours, or nothing that could be run; and why.
    Nothing(Option<String>),
    /// The first boot, over at that time.
    Boots(Box<Boot>, Instant),
    /// The kubelet of a Node; whether it was seen alive.
    Kubelet {
        endpoint: String,
        node: String,
        is_on: bool,
    },
}

/// A machine that runs something: which image of it, and what.
#[derive(Debug)]
struct Running {
    written: u32,
    runs: Runs,
}

/// Runs the kubelets for ever. Dropping the future ends them.
pub async fn run(parts: Parts) {
    let (to, mut news) = unbounded_channel();
    let mut tasks = JoinSet::new();
    tasks.spawn(follow(parts.client.clone(), HOST.clone(), None, to, |news| news));
    let mut all: BTreeMap<Key, Running> = BTreeMap::new();
    loop {
        let next = all.values().filter_map(Running::due).min();
        let happened = match next {
            Some(due) => tokio::time::timeout_at(due, news.recv()).await.ok(),
            None => Some(news.recv().await),
        };
        match happened {
            Some(None) => return,
            Some(Some(News::Seen(host))) => look(&parts, &mut all, &host).await,
            Some(Some(News::Gone(host))) => drop(all.remove(&host.key())),
            Some(Some(News::Listed(keys))) => all.retain(|key, _| keys.contains(key)),
            None => {
                for running in all.values_mut() {
                    running.go_on(&parts).await;
                }
            }
        }
    }
}

/// Looks at the machine of a host.
async fn look(parts: &Parts, all: &mut BTreeMap<Key, Running>, host: &Object) {
    let key = host.key();
    let seen = parts.ironic.machine_at(host.text("/spec/bmc/address"), |machine| {
        let drive = machine.disk.as_ref().and_then(|disk| disk.config_drive.clone());
        (machine.power == PowerState::On, drive, machine.tally.written)
    });
    let Some((is_on, Some(drive), written)) = seen else {
        all.remove(&key);
        return;
    };
    // Before that, a ramdisk may still run.
    let is_deployed = host.text("/status/provisioning/state") == "provisioned";
    match all.get_mut(&key).filter(|running| running.written == written) {
        Some(running) => running.power(parts, is_on).await,
        None if is_on && is_deployed => {
            let runs = begin(&drive, parts.boot);
            if let Runs::Nothing(Some(why)) = &runs {
                tracing::warn!(host = %key, "the machine came up without Kubernetes: {why}");
            }
            all.insert(key, Running { written, runs });
        }
        None => {}
    }
}

/// What a disk with this config-drive makes of a machine.
fn begin(drive: &Value, takes: Duration) -> Runs {
    let user_data = text_of(drive, "user_data");
    let nothing = Map::new();
    let meta_data = drive.get("meta_data").and_then(Value::as_object).unwrap_or(&nothing);
    let over = Instant::now().checked_add(takes);
    match (first_boot(user_data, meta_data), over) {
        (Ok(Some(boot)), Some(over)) => Runs::Boots(Box::new(boot), over),
        (Ok(_), _) => Runs::Nothing(None),
        (Err(why), _) => Runs::Nothing(Some(why)),
    }
}

impl Running {
    /// When it goes on by itself.
    fn due(&self) -> Option<Instant> {
        match &self.runs {
            Runs::Boots(_, due) => Some(*due),
            Runs::Nothing(_) | Runs::Kubelet { .. } => None,
        }
    }

    /// Joins, if it is time.
    async fn go_on(&mut self, parts: &Parts) {
        let now = Instant::now();
        let Runs::Boots(boot, due) = &mut self.runs else { return };
        if *due > now {
            return;
        }
        if let Err(why) = join(&parts.sites, boot).await {
            tracing::debug!(endpoint = boot.endpoint, "not joined: {why}");
            *due = now.checked_add(RETRY).unwrap_or(now);
            return;
        }
        self.runs = Runs::Kubelet {
            endpoint: boot.endpoint.clone(),
            node: boot.node.pointer("/metadata/name").map(text).unwrap_or_default(),
            is_on: true,
        };
    }

    /// The machine is on or off.
    async fn power(&mut self, parts: &Parts, now_on: bool) {
        let Runs::Kubelet { endpoint, node, is_on } = &mut self.runs else {
            return;
        };
        if *is_on == now_on {
            return;
        }
        let (status, reason) = if now_on {
            ("True", "KubeletReady")
        } else {
            ("Unknown", "NodeStatusUnknown")
        };
        let ready = json!({ "type": "Ready", "status": status, "reason": reason, "message": "" });
        let change = json!({ "status": { "conditions": [ready] } });
        let path = format!("/api/v1/nodes/{node}/status");
        if let Some(cluster) = parts.sites.at(endpoint)
            && send(&cluster.client("kubelet"), Method::PATCH, &path, &change)
                .await
                .is_ok()
        {
            *is_on = now_on;
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// What kubeadm and the kubelet do.
pub(crate) async fn join(sites: &Sites, boot: &Boot) -> Result<(), String> {
    if boot.role == Role::Init {
        sites.start(&boot.endpoint);
    }
    let cluster = sites.at(&boot.endpoint).ok_or("nobody answers at the endpoint")?;
    let client = cluster.client("kubelet");
    if let Role::Join(token) = &boot.role {
        let (id, secret) = token.split_once('.').unwrap_or((token, ""));
        let path = format!("/api/v1/namespaces/kube-system/secrets/bootstrap-token-{id}");
        let found = send(&client, Method::GET, &path, &Value::Null).await?;
        let known = found.pointer("/data/token-secret").map(text).unwrap_or_default();
        if known.is_empty() || secret.is_empty() {
            return Err("the API server does not know the token".to_owned());
        }
    }
    match send(&client, Method::POST, "/api/v1/nodes", &boot.node).await {
        Err(why) if !why.contains("already exists") => return Err(why),
        _ => {}
    }
    // A server may leave out of a new object what belongs into its status.
    let name = text_of(boot.node.get("metadata").unwrap_or(&Value::Null), "name");
    let change = json!({ "status": boot.node.get("status") });
    let path = format!("/api/v1/nodes/{name}/status");
    send(&client, Method::PATCH, &path, &change).await.map(drop)
}

pub(crate) async fn send(client: &kube::Client, method: Method, path: &str, body: &Value) -> Result<Value, String> {
    let media = if method == Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, media)
        .body(if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        })
        .map_err(|error| error.to_string())?;
    client
        .request::<Value>(request)
        .await
        .map_err(|error| error.to_string())
}
