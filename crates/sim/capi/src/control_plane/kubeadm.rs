//! A control plane with machines: one at a time, the first of which begins the cluster.

use metal3_api::cluster::names::{CLONED_FROM_NAME_ANNOTATION, CONTROL_PLANE_LABEL};
use serde_json::{Map, json};

use super::secrets;
use crate::core::{Mould, machines, paused};
use crate::kinds::{CLUSTER, CONTROL_PLANE, MACHINE, find};
use crate::view::{Object, World, endpoint};
use crate::write::{Conditions, Deed, Write, adopt, delete, owner, protect, release, status};

const FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";
const TEMPLATE: &str = "/spec/machineTemplate/spec/infrastructureRef";

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(CONTROL_PLANE).flat_map(|one| of(world, one)).collect()
}

fn of(world: &World, plane: &Object) -> Vec<Write> {
    let Some(cluster) = plane
        .owner(CLUSTER.kind)
        .and_then(|name| world.get(CLUSTER, plane.namespace(), name))
    else {
        return Vec::new();
    };
    if let Some(writes) = paused(world, CONTROL_PLANE, plane) {
        return writes;
    }
    let all = world.owned(MACHINE, plane);
    if plane.is_going() {
        return end(plane, cluster, &all);
    }
    let mut due: Vec<Write> = protect(CONTROL_PLANE, plane, FINALIZER).into_iter().collect();
    let is_up = world.site_of(cluster).is_some_and(|site| site.is_up);
    let template = world.referred(plane, TEMPLATE);
    if let Some((template, kind)) = template.and_then(|template| Some((template, find(template.kind())?))) {
        due.extend(adopt(kind, template, owner(CLUSTER, cluster, false), &[], &[]));
    }
    let step = match (
        endpoint(cluster),
        cluster.flag("/status/initialization/infrastructureProvisioned"),
        template,
    ) {
        (Some(at), true, Some(template)) => {
            due.extend(secrets(world, CONTROL_PLANE, plane, cluster, &at));
            Step::of(world, plane, template, &all, is_up)
        }
        (_, _, None) => Step::Wait("waiting for the template of its machines"),
        _ => Step::Wait("waiting for the cluster to have its infrastructure and an endpoint"),
    };
    match (&step, template) {
        (Step::Add, Some(template)) => due.extend(machines(world, &mould(plane, cluster, template), 1)),
        (Step::Remove(machine), _) => due.extend(delete(MACHINE, machine)),
        _ => {}
    }
    due.extend(tell(world, plane, &all, &step, is_up));
    due
}

/// What is done about its machines: one thing at a time.
enum Step<'a> {
    Add,
    Remove(&'a Object),
    Wait(&'static str),
    Rest,
}

impl<'a> Step<'a> {
    fn of(world: &World, plane: &Object, template: &Object, all: &[&'a Object], is_up: bool) -> Self {
        let wanted = usize::try_from(plane.number("/spec/replicas").unwrap_or(1)).unwrap_or_default();
        if all.is_empty() {
            return if wanted == 0 { Self::Rest } else { Self::Add };
        }
        if !is_up {
            return Self::Wait("waiting for the first machine to begin the cluster");
        }
        if all.iter().any(|machine| machine.is_going() || !machine.holds("Ready")) {
            return Self::Wait("waiting for each of its machines to be ready or gone");
        }
        let is_outdated = |machine: &&&Object| !is_current(world, plane, template, machine);
        let outdated = all.iter().find(is_outdated).copied();
        let surge = plane
            .number("/spec/rollout/strategy/rollingUpdate/maxSurge")
            .unwrap_or(1);
        let room = wanted.saturating_add(usize::try_from(surge).unwrap_or_default());
        match (outdated, all.len()) {
            (_, there) if there < wanted => Self::Add,
            (Some(_), there) if there < room => Self::Add,
            (Some(old), _) => Self::Remove(old),
            (None, there) if there > wanted => all.first().map_or(Self::Rest, |oldest| Self::Remove(oldest)),
            (None, _) => Self::Rest,
        }
    }
}

/// Whether a machine is of the template and the version that are asked for.
fn is_current(world: &World, plane: &Object, template: &Object, machine: &Object) -> bool {
    let infrastructure = world.referred(machine, "/spec/infrastructureRef");
    let from = infrastructure.and_then(|part| part.annotation(CLONED_FROM_NAME_ANNOTATION));
    from == Some(template.name()) && machine.text("/spec/version") == plane.text("/spec/version")
}

fn mould<'a>(plane: &'a Object, cluster: &'a Object, template: &'a Object) -> Mould<'a> {
    let labels = plane.part("/spec/machineTemplate/metadata/labels");
    let mut labels: Map<_, _> = labels.as_object().cloned().unwrap_or_default();
    labels.insert(CONTROL_PLANE_LABEL.to_owned(), "".into());
    let domains = cluster.part("/status/failureDomains");
    let domain = domains.as_array().and_then(|all| {
        let usable = all.iter().find(|one| one.get("controlPlane") == Some(&json!(true)))?;
        usable.get("name").cloned()
    });
    Mould {
        kind: CONTROL_PLANE,
        maker: plane,
        cluster: cluster.name(),
        labels,
        template,
        config: plane.part("/spec/kubeadmConfigSpec"),
        version: plane.part("/spec/version"),
        domain: domain.unwrap_or_default(),
    }
}

fn end(plane: &Object, cluster: &Object, all: &[&Object]) -> Vec<Write> {
    if !all.is_empty() {
        return all.iter().filter_map(|machine| delete(MACHINE, machine)).collect();
    }
    let mut due: Vec<Write> = endpoint(cluster)
        .map(|at| Write::Site(at, Deed::Stop))
        .into_iter()
        .collect();
    due.extend(release(CONTROL_PLANE, plane, FINALIZER));
    due
}

fn tell(world: &World, plane: &Object, all: &[&Object], step: &Step<'_>, is_up: bool) -> Option<Write> {
    let ready = all
        .iter()
        .filter(|machine| machine.holds("Ready") && !machine.is_going())
        .count();
    let template = world.referred(plane, TEMPLATE);
    let current = template.map_or(0, |template| {
        all.iter()
            .filter(|machine| is_current(world, plane, template, machine))
            .count()
    });
    let why = match step {
        Step::Wait(why) => *why,
        Step::Add => "one more machine is made",
        Step::Remove(_) => "a machine goes",
        Step::Rest => "",
    };
    let is_done = matches!(step, Step::Rest);
    let is_initialized = is_up || plane.flag("/status/initialization/controlPlaneInitialized");
    let conditions = Conditions::of(plane, world.now)
        .say("Paused", "False", "NotPaused", "")
        .judge("Initialized", is_initialized, ("Initialized", "NotInitialized"), why)
        .judge("Available", is_up && ready > 0, ("Available", "NotAvailable"), why)
        .judge("MachinesReady", is_done, ("Ready", "NotReady"), why);
    let told = json!({
        "initialization": { "controlPlaneInitialized": is_initialized },
        "replicas": all.len(), "readyReplicas": ready, "availableReplicas": ready, "upToDateReplicas": current,
        "version": plane.part("/spec/version"), "observedGeneration": plane.part("/metadata/generation"),
        "conditions": conditions.done(),
    });
    status(CONTROL_PLANE, plane, told)
}
