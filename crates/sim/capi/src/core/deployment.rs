//! Deployments: a set for each state of the template, and machines that move from old sets to the new one a few at a
//! time.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL};
use serde_json::{Value, json};

use super::machine_set::count;
use super::paused;
use crate::kinds::{DEPLOYMENT, MACHINE, SET};
use crate::view::{Object, World};
use crate::write::{Conditions, Write, change, delete, owner, protect, release, status};

const FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";
/// Label on a set: which state of the template it is of.
const HASH: &str = "machine-template-hash";

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(DEPLOYMENT).flat_map(|one| of(world, one)).collect()
}

fn of(world: &World, deployment: &Object) -> Vec<Write> {
    if let Some(writes) = paused(world, DEPLOYMENT, deployment) {
        return writes;
    }
    let sets = world.owned(SET, deployment);
    if deployment.is_going() {
        let mut due: Vec<Write> = sets.iter().filter_map(|set| delete(SET, set)).collect();
        due.extend(release(DEPLOYMENT, deployment, FINALIZER).filter(|_| sets.is_empty()));
        return due;
    }
    let mut due: Vec<Write> = protect(DEPLOYMENT, deployment, FINALIZER).into_iter().collect();
    let hash = hash(&deployment.part("/spec/template"));
    let (new, old): (Vec<&Object>, Vec<&Object>) = sets.iter().partition(|set| set.label(HASH) == Some(&hash));
    let views: Vec<SetView> = old.iter().map(|set| SetView::of(world, set)).collect();
    match new.first() {
        None => due.push(Write::Create(SET, make(deployment, &hash))),
        Some(set) => {
            let roll = Roll::of(deployment);
            let (up, down) = roll.step(SetView::of(world, set), &views);
            due.extend(change(SET, set, json!({ "spec": { "replicas": up } })));
            for (set, replicas) in old.iter().zip(down) {
                due.extend(change(SET, set, json!({ "spec": { "replicas": replicas } })));
            }
        }
    }
    for (set, view) in old.iter().zip(&views) {
        due.extend(delete(SET, set).filter(|_| view.wanted == 0 && view.there == 0));
    }
    due.extend(tell(world, deployment, &sets, new.first().copied()));
    due
}

/// A short name of a state of the template.
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

/// What a rollout looks at of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SetView {
    /// Machines asked for.
    pub(crate) wanted: i64,
    /// Machines there are, those that go among them.
    pub(crate) there: i64,
    /// Machines that are ready and stay.
    pub(crate) ready: i64,
}

impl SetView {
    fn of(world: &World, set: &Object) -> Self {
        let machines = world.owned(MACHINE, set);
        let ready = machines
            .iter()
            .filter(|machine| machine.holds("Ready") && !machine.is_going());
        Self {
            wanted: set.number("/spec/replicas").unwrap_or_default(),
            ready: count(ready),
            there: count(machines.iter()),
        }
    }
}

/// How machines are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Roll {
    /// Machines asked for.
    pub(crate) replicas: i64,
    /// How many more there may be meanwhile.
    pub(crate) surge: i64,
    /// How many fewer may be ready meanwhile.
    pub(crate) unavailable: i64,
}

impl Roll {
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
            // With neither, nothing could ever begin.
            unavailable: if surge == 0 { unavailable.max(1) } else { unavailable },
        }
    }

    /// How many machines the new set is to have, and each old one.
    pub(crate) fn step(self, new: SetView, old: &[SetView]) -> (i64, Vec<i64>) {
        let others: i64 = old.iter().map(|set| set.there.max(set.wanted)).sum();
        // A machine that goes holds its place: its host is not free before it is gone.
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
            // Those that are not ready are missed by nobody.
            let broken = set.wanted.saturating_sub(set.ready.min(set.wanted));
            let taken = spare.min(set.wanted.saturating_sub(broken));
            spare = spare.saturating_sub(taken);
            set.wanted.saturating_sub(broken).saturating_sub(taken)
        });
        (up, down.collect())
    }
}

/// A number, or a share of the replicas: upwards for a surge.
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

fn tell(world: &World, deployment: &Object, sets: &[&Object], new: Option<&Object>) -> Option<Write> {
    let wanted = deployment.number("/spec/replicas").unwrap_or(1);
    let views: Vec<SetView> = sets.iter().map(|set| SetView::of(world, set)).collect();
    let ready: i64 = views.iter().map(|view| view.ready).sum();
    let there: i64 = views.iter().map(|view| view.there).sum();
    let current = new.map(|set| SetView::of(world, set));
    let fresh = current.map_or(0, |view| view.there);
    let is_rolled = fresh == wanted && there == wanted && ready == wanted;
    let phase = match () {
        () if is_rolled => "Running",
        () if there > wanted && fresh >= wanted => "ScalingDown",
        () => "ScalingUp",
    };
    let why = format!("{ready} of {wanted} machines are ready");
    let least = wanted.saturating_sub(Roll::of(deployment).unavailable);
    let conditions = Conditions::of(deployment, world.now)
        .say("Paused", "False", "NotPaused", "")
        .judge("Available", ready >= least, ("Available", "NotAvailable"), &why)
        .judge("RollingOut", !is_rolled, ("RollingOut", "NotRollingOut"), "");
    let told = json!({
        "replicas": there, "readyReplicas": ready, "availableReplicas": ready, "upToDateReplicas": fresh,
        "phase": phase, "observedGeneration": deployment.part("/metadata/generation"),
        "conditions": conditions.done(),
    });
    status(DEPLOYMENT, deployment, told)
}
