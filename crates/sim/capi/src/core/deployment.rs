//! MachineDeployments: a MachineSet for each revision of the template, and a rolling replacement of machines.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL};
use serde_json::{Value, json};

use super::machine_set::count;
use super::paused;
use crate::kinds::{DEPLOYMENT, MACHINE, SET};
use crate::view::{Object, Snapshot};
use crate::write::{Conditions, Write, add_finalizer, change, delete, owner, remove_finalizer, status};

const FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";
/// Label of a MachineSet: hash of its template.
const HASH: &str = "machine-template-hash";

pub(crate) fn reconcile(snapshot: &Snapshot, deployment: &Object) -> Vec<Write> {
    if let Some(writes) = paused(snapshot, DEPLOYMENT, deployment) {
        return writes;
    }
    let sets = snapshot.owned(SET, deployment);
    if deployment.is_deleting() {
        let mut due: Vec<Write> = sets.iter().filter_map(|set| delete(SET, set)).collect();
        due.extend(remove_finalizer(DEPLOYMENT, deployment, FINALIZER).filter(|_| sets.is_empty()));
        return due;
    }
    let mut due = add_finalizer(DEPLOYMENT, deployment, FINALIZER);
    let hash = hash(&deployment.part("/spec/template"));
    let (new, old): (Vec<&Object>, Vec<&Object>) = sets.iter().partition(|set| set.label(HASH) == Some(&hash));
    let views: Vec<SetView> = old.iter().map(|set| SetView::of(snapshot, set)).collect();
    match new.first() {
        None => due.push(Write::Create(SET, make(deployment, &hash))),
        Some(set) => {
            let rollout = Rollout::of(deployment);
            let (up, down) = rollout.step(SetView::of(snapshot, set), &views);
            due.extend(change(SET, set, json!({ "spec": { "replicas": up } })));
            for (set, replicas) in old.iter().zip(down) {
                due.extend(change(SET, set, json!({ "spec": { "replicas": replicas } })));
            }
        }
    }
    for (set, view) in old.iter().zip(&views) {
        due.extend(delete(SET, set).filter(|_| view.wanted == 0 && view.there == 0));
    }
    due.extend(update_status(snapshot, deployment, &sets, new.first().copied()));
    due
}

/// Hash of a template.
fn hash(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    template.to_string().hash(&mut hasher);
    format!("{:08x}", hasher.finish() & 0xffff_ffff)
}

fn make(deployment: &Object, hash: &str) -> Value {
    let cluster = deployment.text("/spec/clusterName");
    let mut template = deployment.part("/spec/template");
    let mut labels = deployment.part("/spec/template/metadata/labels");
    if !labels.is_object() {
        labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(DEPLOYMENT_NAME_LABEL.to_owned(), deployment.name().into());
        labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.into());
        labels.insert(HASH.to_owned(), hash.into());
    }
    if let Some(template) = template.as_object_mut() {
        template.insert("metadata".to_owned(), json!({ "labels": labels }));
    }
    json!({
        "apiVersion": SET.api_version(), "kind": SET.kind,
        "metadata": {
            "name": format!("{}-{hash}", deployment.name()), "namespace": deployment.namespace(), "labels": labels,
            "ownerReferences": [owner(DEPLOYMENT, deployment, true)],
        },
        "spec": { "clusterName": cluster, "replicas": 0, "template": template },
    })
}

/// State of a MachineSet during a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetView {
    /// Requested machines.
    pub(crate) wanted: i64,
    /// Existing machines, including those being deleted.
    pub(crate) there: i64,
    /// Ready machines that are not being deleted.
    pub(crate) ready: i64,
}

impl SetView {
    fn of(snapshot: &Snapshot, set: &Object) -> Self {
        let machines = snapshot.owned(MACHINE, set);
        let ready = machines
            .iter()
            .filter(|machine| machine.is_true("Ready") && !machine.is_deleting());
        Self {
            wanted: set.number("/spec/replicas").unwrap_or_default(),
            ready: count(ready),
            there: count(machines.iter()),
        }
    }
}

/// Rollout strategy in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rollout {
    /// Requested machines.
    pub(crate) replicas: i64,
    /// Maximum number of additional machines.
    pub(crate) surge: i64,
    /// Maximum number of unavailable machines.
    pub(crate) unavailable: i64,
}

impl Rollout {
    fn of(deployment: &Object) -> Self {
        let replicas = deployment.number("/spec/replicas").unwrap_or(1).max(0);
        let figure = |name: &str| {
            let at = format!("/spec/rollout/strategy/rollingUpdate/{name}");
            deployment
                .at(&at)
                .map(|value| absolute(value, replicas, name == "maxSurge"))
        };
        let (surge, unavailable) = (figure("maxSurge").unwrap_or(1), figure("maxUnavailable").unwrap_or(0));
        Self {
            replicas,
            surge,
            // With both at zero a rollout could not start.
            unavailable: if surge == 0 { unavailable.max(1) } else { unavailable },
        }
    }

    /// Replicas of the new MachineSet and of each old one.
    pub(crate) fn step(self, new: SetView, old: &[SetView]) -> (i64, Vec<i64>) {
        let others: i64 = old.iter().map(|set| set.there.max(set.wanted)).sum();
        // A machine being deleted still counts: its host is not free yet.
        let room = self.replicas.saturating_add(self.surge).saturating_sub(others);
        let up = room.clamp(new.wanted.min(self.replicas), self.replicas);
        let ready = old
            .iter()
            .map(|set| set.ready.min(set.wanted))
            .sum::<i64>()
            .saturating_add(new.ready);
        let least = self.replicas.saturating_sub(self.unavailable);
        let mut spare = ready.saturating_sub(least).max(0);
        let down = old.iter().map(|set| {
            // Machines that are not ready are removed first; they reduce no availability.
            let broken = set.wanted.saturating_sub(set.ready.min(set.wanted));
            let taken = spare.min(set.wanted.saturating_sub(broken));
            spare = spare.saturating_sub(taken);
            set.wanted.saturating_sub(broken).saturating_sub(taken)
        });
        (up, down.collect())
    }
}

/// A number, or a percentage of the replicas, rounded up for a surge.
fn absolute(value: &Value, replicas: i64, upwards: bool) -> i64 {
    let share = value
        .as_str()
        .and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match share {
        Some(percent) => {
            let product = replicas.saturating_mul(percent);
            let rounding = if upwards { 99 } else { 0 };
            product.saturating_add(rounding).div_euclid(100)
        }
        None => value.as_i64().unwrap_or_default(),
    }
}

fn update_status(snapshot: &Snapshot, deployment: &Object, sets: &[&Object], new: Option<&Object>) -> Option<Write> {
    let wanted = deployment.number("/spec/replicas").unwrap_or(1);
    let views: Vec<SetView> = sets.iter().map(|set| SetView::of(snapshot, set)).collect();
    let ready: i64 = views.iter().map(|view| view.ready).sum();
    let there: i64 = views.iter().map(|view| view.there).sum();
    let current = new.map(|set| SetView::of(snapshot, set));
    let fresh = current.map_or(0, |view| view.there);
    let is_rolled = fresh == wanted && there == wanted && ready == wanted;
    let phase = match () {
        () if is_rolled => "Running",
        () if there > wanted && fresh >= wanted => "ScalingDown",
        () => "ScalingUp",
    };
    let why = format!("{ready} of {wanted} machines are ready");
    let least = wanted.saturating_sub(Rollout::of(deployment).unavailable);
    let conditions = Conditions::of(deployment, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .set_bool("Available", ready >= least, ("Available", "NotAvailable"), &why)
        .set_bool("RollingOut", !is_rolled, ("RollingOut", "NotRollingOut"), "");
    let new_status = json!({
        "replicas": there, "readyReplicas": ready, "availableReplicas": ready, "upToDateReplicas": fresh,
        "phase": phase, "observedGeneration": deployment.part("/metadata/generation"),
        "conditions": conditions.into_value(),
    });
    status(DEPLOYMENT, deployment, new_status)
}
