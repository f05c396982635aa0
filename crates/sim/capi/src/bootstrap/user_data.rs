//! User data for cloud-init or Ignition, with the configuration of kubeadm in it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use super::ignition;
use crate::view::Object;

/// The kubeadm command of the first boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KubeadmCommand {
    /// Initializes the cluster.
    Init,
    /// Joins it.
    Join {
        /// As a further control-plane machine.
        is_control_plane: bool,
    },
}

/// The value of `format` for Ignition.
const IGNITION: &str = "ignition";
/// Path of the kubeadm configuration on the machine.
const INIT_FILE: &str = "/run/kubeadm/kubeadm.yaml";
const JOIN_FILE: &str = "/run/kubeadm/kubeadm-join-config.yaml";

/// A bootstrap token derived from a UID. A simulated cluster needs no secrecy.
pub(super) fn token(uid: &str) -> String {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let digits = format!("{:016x}", hasher.finish());
    let id: String = digits.chars().take(6).collect();
    format!("{id}.{digits}")
}

/// Renders the user data.
pub(super) fn write(
    (config, mut files): (&Object, Vec<Value>),
    cluster: &Object,
    first_boot: &KubeadmCommand,
    at: &str,
    token: &str,
) -> String {
    let (path, document, command) = match first_boot {
        KubeadmCommand::Init => (
            INIT_FILE,
            init(config, cluster, at),
            format!("kubeadm init --config {INIT_FILE}"),
        ),
        KubeadmCommand::Join { is_control_plane } => (
            JOIN_FILE,
            join(config, at, token, *is_control_plane),
            format!("kubeadm join --config {JOIN_FILE}"),
        ),
    };
    files.push(json!({ "path": path, "owner": "root:root", "permissions": "0640", "content": document }));
    let mut commands = list(config, "/spec/preKubeadmCommands");
    commands.push(json!(format!(
        "{command} && echo success > /run/cluster-api/bootstrap-success.complete"
    )));
    commands.extend(list(config, "/spec/postKubeadmCommands"));
    if config.text("/spec/format") == IGNITION {
        return ignition::write(&files, &commands);
    }
    let cloud = yaml(&json!({ "write_files": files, "runcmd": commands }));
    format!("## template: jinja\n#cloud-config\n\n{cloud}")
}

fn list(config: &Object, at: &str) -> Vec<Value> {
    config.part(at).as_array().cloned().unwrap_or_default()
}

fn init(config: &Object, cluster: &Object, at: &str) -> String {
    let mut first = members(config, "/spec/initConfiguration", "InitConfiguration");
    registration(&mut first);
    let mut whole = members(config, "/spec/clusterConfiguration", "ClusterConfiguration");
    set(&mut whole, "clusterName", json!(cluster.name()));
    set(&mut whole, "controlPlaneEndpoint", json!(at));
    format!("{}---\n{}", yaml(&whole), yaml(&first))
}

fn join(config: &Object, at: &str, token: &str, is_control_plane: bool) -> String {
    let mut join = members(config, "/spec/joinConfiguration", "JoinConfiguration");
    registration(&mut join);
    let discovery = json!({ "bootstrapToken": { "apiServerEndpoint": at, "token": token } });
    set(&mut join, "discovery", discovery);
    if is_control_plane {
        set(&mut join, "controlPlane", json!({}));
    }
    yaml(&join)
}

/// New Nodes have a taint until the Machine controller has labelled them.
fn registration(document: &mut Value) {
    let at = "/nodeRegistration/taints";
    let mut taints = document
        .pointer(at)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    taints.push(json!({ "key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule" }));
    let mut registration = document.get("nodeRegistration").cloned().unwrap_or_else(|| json!({}));
    set(&mut registration, "taints", taints.into());
    set(document, "nodeRegistration", registration);
}

fn members(config: &Object, at: &str, kind: &str) -> Value {
    let mut found = config.part(at);
    if !found.is_object() {
        found = json!({});
    }
    set(&mut found, "apiVersion", json!("kubeadm.k8s.io/v1beta4"));
    set(&mut found, "kind", json!(kind));
    found
}

fn set(of: &mut Value, member: &str, value: Value) {
    if let Some(members) = of.as_object_mut() {
        members.insert(member.to_owned(), value);
    }
}

/// YAML of a document; JSON, which is also YAML, when the writer fails.
fn yaml(document: &Value) -> String {
    serde_saphyr::to_string(document).unwrap_or_else(|_| format!("{document}\n"))
}
