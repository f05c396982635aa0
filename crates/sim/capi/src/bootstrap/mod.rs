//! Bootstrap with kubeadm: user data in a Secret, once the cluster is so far.
//!
//! The first machine of a control plane is to begin the cluster, all others join it with a token of their own. Tokens do
//! not run out here.

mod files;
mod user_data;

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL};
use serde_json::{Value, json};

use crate::core::paused;
use crate::kinds::{CONFIG, MACHINE, SECRET};
use crate::view::{Object, World, endpoint};
use crate::write::{Conditions, Deed, Write, owner, status};

use user_data::{Part, token};

/// Type of the Secrets of Cluster API.
pub(crate) const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";

pub(crate) fn writes(world: &World) -> Vec<Write> {
    world.all(CONFIG).flat_map(|config| of(world, config)).collect()
}

fn of(world: &World, config: &Object) -> Vec<Write> {
    if let Some(writes) = paused(world, CONFIG, config) {
        return writes;
    }
    let owner = config.owner(MACHINE.kind);
    let machine = owner.and_then(|name| world.get(MACHINE, config.namespace(), name));
    let Some((machine, cluster)) = machine.and_then(|machine| Some((machine, world.cluster_of(machine)?))) else {
        return Vec::new();
    };
    if config.is_going() || machine.is_going() {
        return Vec::new();
    }
    if world.get(SECRET, config.namespace(), config.name()).is_some() {
        return tell(world, config, None).into_iter().collect();
    }
    let ready = part(world, machine, cluster)
        .map_err(str::to_owned)
        .and_then(|(part, at)| Ok((part, at, files::of(world, config)?)));
    match ready {
        Ok((part, at, files)) => make((config, files), cluster, &part, &at),
        Err(why) => tell(world, config, Some(&why)).into_iter().collect(),
    }
}

/// What the machine does at its first boot, and the endpoint of the cluster; or what it waits for.
fn part(world: &World, machine: &Object, cluster: &Object) -> Result<(Part, String), &'static str> {
    if !cluster.flag("/status/initialization/infrastructureProvisioned") {
        return Err("waiting for the infrastructure of the cluster");
    }
    let at = endpoint(cluster).ok_or("waiting for the endpoint of the cluster")?;
    let is_control_plane = machine.label(CONTROL_PLANE_LABEL).is_some();
    if cluster.flag("/status/initialization/controlPlaneInitialized") {
        let is_up = world.sites.get(&at).is_some_and(|site| site.is_up);
        let waits = "waiting for the API server of the workload cluster to make a token";
        return is_up.then_some((Part::Join { is_control_plane }, at)).ok_or(waits);
    }
    let peers = world.of_cluster(MACHINE, cluster);
    let mut peers = peers
        .iter()
        .filter(|peer| peer.label(CONTROL_PLANE_LABEL).is_some() && !peer.is_going());
    let is_first = peers.next().is_some_and(|first| first.uid() == machine.uid());
    if is_control_plane && is_first {
        Ok((Part::Init, at))
    } else {
        Err("waiting for the control plane to be initialized")
    }
}

fn make((config, files): (&Object, Vec<Value>), cluster: &Object, part: &Part, at: &str) -> Vec<Write> {
    let token = token(config.uid());
    let text = user_data::write((config, files), cluster, part, at, &token);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": SECRET_TYPE,
        "metadata": {
            "name": config.name(), "namespace": config.namespace(), "labels": { CLUSTER_NAME_LABEL: cluster.name() },
            "ownerReferences": [owner(CONFIG, config, true)],
        },
        "stringData": { "value": text, "format": "cloud-config" },
    });
    let mut due = Vec::new();
    if matches!(part, Part::Join { .. }) {
        due.push(Write::Site(at.to_owned(), Deed::Token(token)));
    }
    due.push(Write::Create(SECRET, secret));
    due
}

fn tell(world: &World, config: &Object, waits: Option<&str>) -> Option<Write> {
    let is_done = waits.is_none();
    let why = waits.unwrap_or_default();
    let conditions = Conditions::of(config, world.now)
        .say("Paused", "False", "NotPaused", "")
        .judge("DataSecretAvailable", is_done, ("Available", "NotAvailable"), why)
        .judge("Ready", is_done, ("Ready", "NotReady"), why);
    let name = if is_done { json!(config.name()) } else { json!(null) };
    let told = json!({
        "dataSecretName": name, "initialization": { "dataSecretCreated": is_done },
        "observedGeneration": config.part("/metadata/generation"), "conditions": conditions.done(),
    });
    status(CONFIG, config, told)
}
