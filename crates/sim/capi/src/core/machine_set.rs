//! Sets of equal machines: as many as asked for.

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::json;

use super::{Mould, machines, paused};
use crate::kinds::{CLUSTER, CONFIG_TEMPLATE, MACHINE, MACHINE_TEMPLATE, SET, find};
use crate::view::{Object, World, reference};
use crate::write::{Conditions, Write, adopt, delete, owner, protect, release, status};

const FINALIZER: &str = "cluster.x-k8s.io/machineset";
const CONFIG_REF: &str = "/spec/template/spec/bootstrap/configRef";
const INFRASTRUCTURE_REF: &str = "/spec/template/spec/infrastructureRef";
/// Annotation on the machine that is to go first.
const GOES_FIRST: &str = "cluster.x-k8s.io/delete-machine";

pub(super) fn writes(world: &World) -> Vec<Write> {
    world.all(SET).flat_map(|set| of(world, set)).collect()
}

fn of(world: &World, set: &Object) -> Vec<Write> {
    if let Some(writes) = paused(world, SET, set) {
        return writes;
    }
    let all = world.owned(MACHINE, set);
    if set.is_going() {
        let mut due: Vec<Write> = all.iter().filter_map(|machine| delete(MACHINE, machine)).collect();
        due.extend(release(SET, set, FINALIZER).filter(|_| all.is_empty()));
        return due;
    }
    let mut due: Vec<Write> = protect(SET, set, FINALIZER).into_iter().collect();
    let Some(cluster) = world.cluster_of(set) else {
        return due;
    };
    let template = world.referred(set, INFRASTRUCTURE_REF);
    let config = world.referred(set, CONFIG_REF);
    let labels = [(CLUSTER_NAME_LABEL, cluster.name())];
    for part in [template, config].into_iter().flatten() {
        // Templates move with their cluster, and go with it.
        let kind = find(part.kind()).unwrap_or(MACHINE_TEMPLATE);
        due.extend(adopt(kind, part, owner(CLUSTER, cluster, false), &[], &labels));
    }
    let staying: Vec<&Object> = all.iter().filter(|machine| !machine.is_going()).copied().collect();
    let wanted = set.number("/spec/replicas").unwrap_or(1).max(0);
    let there = count(staying.iter());
    if there < wanted {
        if let Some(mould) = template.and_then(|template| mould(set, cluster, template, config)) {
            due.extend(machines(world, &mould, wanted.saturating_sub(there)));
        }
    } else {
        let surplus = usize::try_from(there.saturating_sub(wanted)).unwrap_or_default();
        due.extend(
            leaving(staying)
                .into_iter()
                .take(surplus)
                .filter_map(|machine| delete(MACHINE, machine)),
        );
    }
    due.extend(tell(world, set, &all, wanted));
    due
}

fn mould<'a>(
    set: &'a Object,
    cluster: &'a Object,
    template: &'a Object,
    config: Option<&'a Object>,
) -> Option<Mould<'a>> {
    // A configuration that is asked for and not there yet is waited for.
    let config = match (config, reference(set, CONFIG_REF)) {
        (Some(config), _) => config.part("/spec/template/spec"),
        (None, Some((kind, _))) if kind == CONFIG_TEMPLATE.kind => return None,
        (None, _) => json!({}),
    };
    let labels = set.part("/spec/template/metadata/labels");
    Some(Mould {
        kind: SET,
        maker: set,
        cluster: cluster.name(),
        labels: labels.as_object().cloned().unwrap_or_default(),
        template,
        config,
        version: set.part("/spec/template/spec/version"),
        domain: set.part("/spec/template/spec/failureDomain"),
    })
}

/// In which order machines go: marked ones, then those that never became Nodes, then the oldest.
fn leaving(mut machines: Vec<&Object>) -> Vec<&Object> {
    machines.sort_by_key(|machine| {
        let is_marked = machine.annotation(GOES_FIRST).is_some();
        (!is_marked, machine.at("/status/nodeRef").is_some(), machine.born())
    });
    machines
}

fn tell(world: &World, set: &Object, all: &[&Object], wanted: i64) -> Option<Write> {
    let ready = count(
        all.iter()
            .filter(|machine| machine.holds("Ready") && !machine.is_going()),
    );
    let there = count(all.iter());
    let why = format!("{ready} of {wanted} machines are ready");
    let conditions = Conditions::of(set, world.now)
        .say("Paused", "False", "NotPaused", "")
        .judge("MachinesReady", ready >= wanted, ("Ready", "NotReady"), &why);
    let told = json!({
        "replicas": there, "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": set.part("/metadata/generation"), "conditions": conditions.done(),
    });
    status(SET, set, told)
}

/// How many there are.
pub(super) fn count<T>(all: impl Iterator<Item = T>) -> i64 {
    i64::try_from(all.count()).unwrap_or(i64::MAX)
}
