//! A control plane with machines, created one at a time; the first one initializes the cluster.

use metal3_api::cluster::names::{CLONED_FROM_NAME_ANNOTATION, CONTROL_PLANE_LABEL};
use serde_json::{Map, Value, json};

use super::secrets;
use crate::core::{MachineSource, machines, paused};
use crate::kinds::{CLUSTER, CONTROL_PLANE, MACHINE, find};
use crate::view::{Object, Snapshot, endpoint};
use crate::write::{Conditions, WorkloadChange, Write, add_finalizer, adopt, delete, owner, remove_finalizer, status};

const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";
const TEMPLATE: &str = "/spec/machineTemplate/spec/infrastructureRef";

pub(crate) fn reconcile(snapshot: &Snapshot, plane: &Object) -> Vec<Write> {
    let Some(cluster) = snapshot.owning_cluster(plane) else {
        return Vec::new();
    };
    if let Some(writes) = paused(snapshot, CONTROL_PLANE, plane) {
        return writes;
    }
    let all = snapshot.owned(MACHINE, plane);
    if plane.is_deleting() {
        return reconcile_delete(plane, cluster, &all);
    }
    let mut due = add_finalizer(CONTROL_PLANE, plane, FINALIZER);
    let is_up = snapshot.workload_of(cluster).is_some_and(|workload| workload.is_up);
    let template = snapshot.referred(plane, TEMPLATE);
    if let Some((template, kind)) = template.and_then(|template| Some((template, find(template.kind())?))) {
        due.extend(adopt(kind, template, owner(CLUSTER, cluster, false), &[], &[]));
    }
    let step = match (
        endpoint(cluster),
        cluster.flag("/status/initialization/infrastructureProvisioned"),
        template,
    ) {
        (Some(at), true, Some(template)) => {
            due.extend(secrets(snapshot, CONTROL_PLANE, plane, cluster, &at));
            Step::of(snapshot, plane, template, &all, is_up)
        }
        (_, _, None) => Step::Wait("waiting for the template of its machines"),
        _ => Step::Wait("waiting for the cluster to have its infrastructure and an endpoint"),
    };
    match (&step, template) {
        (Step::Add, Some(template)) => {
            let current = |machine: &&&Object| is_current(snapshot, plane, template, machine);
            let domain = emptiest(cluster, &all.iter().filter(current).copied().collect::<Vec<_>>(), &all);
            due.extend(machines(snapshot, &source(plane, cluster, template, domain), 1));
        }
        (Step::Remove(machine), _) => due.extend(delete(MACHINE, machine)),
        _ => {}
    }
    due.extend(update_status(snapshot, plane, &all, &step, is_up));
    due
}

/// The next change to its machines, one at a time.
enum Step<'a> {
    Add,
    Remove(&'a Object),
    Wait(&'static str),
    Done,
}

impl<'a> Step<'a> {
    fn of(snapshot: &Snapshot, plane: &Object, template: &Object, all: &[&'a Object], is_up: bool) -> Self {
        let wanted = usize::try_from(plane.number("/spec/replicas").unwrap_or(1)).unwrap_or_default();
        if all.is_empty() {
            return if wanted == 0 { Step::Done } else { Self::Add };
        }
        if !is_up {
            return Self::Wait("waiting for the first machine to initialize the cluster");
        }
        if all
            .iter()
            .any(|machine| machine.is_deleting() || !machine.is_true("Ready"))
        {
            return Self::Wait("waiting for every machine to be ready or deleted");
        }
        let is_outdated = |machine: &&&Object| !is_current(snapshot, plane, template, machine);
        let outdated = all.iter().find(is_outdated).copied();
        let surge = plane
            .number("/spec/rollout/strategy/rollingUpdate/maxSurge")
            .unwrap_or(1);
        let room = wanted.saturating_add(usize::try_from(surge).unwrap_or_default());
        match (outdated, all.len()) {
            (_, there) if there < wanted => Self::Add,
            (Some(_), there) if there < room => Self::Add,
            (Some(old), _) => Self::Remove(old),
            (None, there) if there > wanted => all.first().map_or(Step::Done, |oldest| Self::Remove(oldest)),
            (None, _) => Step::Done,
        }
    }
}

/// Whether a machine matches the current template and version.
fn is_current(snapshot: &Snapshot, plane: &Object, template: &Object, machine: &Object) -> bool {
    let infrastructure = snapshot.referred(machine, "/spec/infrastructureRef");
    let from = infrastructure.and_then(|part| part.annotation(CLONED_FROM_NAME_ANNOTATION));
    from == Some(template.name()) && machine.text("/spec/version") == plane.text("/spec/version")
}

/// The failure domain for a new machine: of those that take control planes, the one with the fewest machines of the new
/// generation, and among equals the one with the fewest machines; then the order of their names decides.
fn emptiest(cluster: &Object, current: &[&Object], all: &[&Object]) -> Value {
    let domains = cluster.part("/status/failureDomains");
    let names = domains.as_array().into_iter().flatten();
    let usable = names.filter(|one| one.get("controlPlane") == Some(&json!(true)));
    let usable = usable.filter_map(|one| one.get("name")?.as_str());
    let count = |machines: &[&Object], domain: &str| {
        let is_in = |machine: &&&Object| machine.text("/spec/failureDomain") == domain;
        machines.iter().filter(is_in).count()
    };
    let first = usable.min_by_key(|domain| (count(current, domain), count(all, domain), (*domain).to_owned()));
    first.map_or(Value::Null, Value::from)
}

fn source<'a>(plane: &'a Object, cluster: &'a Object, template: &'a Object, domain: Value) -> MachineSource<'a> {
    let labels = plane.part("/spec/machineTemplate/metadata/labels");
    let mut labels: Map<_, _> = labels.as_object().cloned().unwrap_or_default();
    labels.insert(CONTROL_PLANE_LABEL.to_owned(), "".into());
    MachineSource {
        kind: CONTROL_PLANE,
        creator: plane,
        cluster: cluster.name(),
        labels,
        template,
        config: plane.part("/spec/kubeadmConfigSpec"),
        version: plane.part("/spec/version"),
        domain,
    }
}

fn reconcile_delete(plane: &Object, cluster: &Object, all: &[&Object]) -> Vec<Write> {
    if !all.is_empty() {
        return all.iter().filter_map(|machine| delete(MACHINE, machine)).collect();
    }
    let mut due: Vec<Write> = endpoint(cluster)
        .map(|at| Write::Workload(at, WorkloadChange::Stop))
        .into_iter()
        .collect();
    due.extend(remove_finalizer(CONTROL_PLANE, plane, FINALIZER));
    due
}

fn update_status(snapshot: &Snapshot, plane: &Object, all: &[&Object], step: &Step<'_>, is_up: bool) -> Option<Write> {
    let ready = all
        .iter()
        .filter(|machine| machine.is_true("Ready") && !machine.is_deleting())
        .count();
    let template = snapshot.referred(plane, TEMPLATE);
    let current = template.map_or(0, |template| {
        all.iter()
            .filter(|machine| is_current(snapshot, plane, template, machine))
            .count()
    });
    let why = match step {
        Step::Wait(why) => *why,
        Step::Add => "creating a machine",
        Step::Remove(_) => "deleting a machine",
        Step::Done => "",
    };
    let is_done = matches!(step, Step::Done);
    let is_initialized = is_up || plane.flag("/status/initialization/controlPlaneInitialized");
    let conditions = Conditions::of(plane, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .set_bool("Initialized", is_initialized, ("Initialized", "NotInitialized"), why)
        .set_bool("Available", is_up && ready > 0, ("Available", "NotAvailable"), why)
        .set_bool("MachinesReady", is_done, ("Ready", "NotReady"), why);
    let new_status = json!({
        "initialization": { "controlPlaneInitialized": is_initialized },
        "replicas": all.len(), "readyReplicas": ready, "availableReplicas": ready, "upToDateReplicas": current,
        "version": plane.part("/spec/version"), "observedGeneration": plane.part("/metadata/generation"),
        "conditions": conditions.into_value(),
    });
    status(CONTROL_PLANE, plane, new_status)
}
