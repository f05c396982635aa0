//! MachineSets: keep the requested number of machines, and replace those that a remediation gave up.
//!
//! The real controller also requires that a MachineHealthCheck considers the machine unhealthy.

use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use serde_json::json;

use super::{MachineSource, machines, paused};
use crate::kinds::{CLUSTER, CONFIG_TEMPLATE, MACHINE, MACHINE_TEMPLATE, SET, find};
use crate::view::{Object, Snapshot, reference};
use crate::write::{Conditions, Write, add_finalizer, adopt, delete, owner, remove_finalizer, status};

const FINALIZER: &str = "cluster.x-k8s.io/machineset";
const CONFIG_REF: &str = "/spec/template/spec/bootstrap/configRef";
const INFRASTRUCTURE_REF: &str = "/spec/template/spec/infrastructureRef";
/// Annotation of a machine to delete first.
const GOES_FIRST: &str = "cluster.x-k8s.io/delete-machine";

pub(crate) fn reconcile(snapshot: &Snapshot, set: &Object) -> Vec<Write> {
    if let Some(writes) = paused(snapshot, SET, set) {
        return writes;
    }
    let all = snapshot.owned(MACHINE, set);
    if set.is_deleting() {
        let mut due: Vec<Write> = all.iter().filter_map(|machine| delete(MACHINE, machine)).collect();
        due.extend(remove_finalizer(SET, set, FINALIZER).filter(|_| all.is_empty()));
        return due;
    }
    let mut due = add_finalizer(SET, set, FINALIZER);
    let Some(cluster) = snapshot.cluster_of(set) else {
        return due;
    };
    let template = snapshot.referred(set, INFRASTRUCTURE_REF);
    let config = snapshot.referred(set, CONFIG_REF);
    let labels = [(CLUSTER_NAME_LABEL, cluster.name())];
    for part in [template, config].into_iter().flatten() {
        // Templates belong to their cluster and are deleted with it.
        let kind = find(part.kind()).unwrap_or(MACHINE_TEMPLATE);
        due.extend(adopt(kind, part, owner(CLUSTER, cluster, false), &[], &labels));
    }
    let given_up = |machine: &&&Object| machine.is_false("OwnerRemediated");
    due.extend(
        all.iter()
            .filter(given_up)
            .filter_map(|machine| delete(MACHINE, machine)),
    );
    let staying: Vec<&Object> = all
        .iter()
        .filter(|machine| !machine.is_deleting() && !given_up(machine))
        .copied()
        .collect();
    let wanted = set.number("/spec/replicas").unwrap_or(1).max(0);
    let there = count(staying.iter());
    if there < wanted {
        if let Some(source) = template.and_then(|template| source(set, cluster, template, config)) {
            due.extend(machines(snapshot, &source, wanted.saturating_sub(there)));
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
    due.extend(update_status(snapshot, set, &all, wanted));
    due
}

fn source<'a>(
    set: &'a Object,
    cluster: &'a Object,
    template: &'a Object,
    config: Option<&'a Object>,
) -> Option<MachineSource<'a>> {
    // A referenced configuration may not exist yet.
    let config = match (config, reference(set, CONFIG_REF)) {
        (Some(config), _) => config.part("/spec/template/spec"),
        (None, Some((kind, _))) if kind == CONFIG_TEMPLATE.kind => return None,
        (None, _) => json!({}),
    };
    let labels = set.part("/spec/template/metadata/labels");
    Some(MachineSource {
        kind: SET,
        creator: set,
        cluster: cluster.name(),
        labels: labels.as_object().cloned().unwrap_or_default(),
        template,
        config,
        version: set.part("/spec/template/spec/version"),
        domain: set.part("/spec/template/spec/failureDomain"),
    })
}

/// Order of deletion: annotated machines, machines without a Node, oldest machines.
fn leaving(mut machines: Vec<&Object>) -> Vec<&Object> {
    machines.sort_by_key(|machine| {
        let is_marked = machine.annotation(GOES_FIRST).is_some();
        (
            !is_marked,
            machine.at("/status/nodeRef").is_some(),
            machine.creation_order(),
        )
    });
    machines
}

fn update_status(snapshot: &Snapshot, set: &Object, all: &[&Object], wanted: i64) -> Option<Write> {
    let ready = count(
        all.iter()
            .filter(|machine| machine.is_true("Ready") && !machine.is_deleting()),
    );
    let there = count(all.iter());
    let why = format!("{ready} of {wanted} machines are ready");
    let conditions = Conditions::of(set, snapshot.now)
        .set("Paused", "False", "NotPaused", "")
        .set_bool("MachinesReady", ready >= wanted, ("Ready", "NotReady"), &why);
    let new_status = json!({
        "replicas": there, "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": set.part("/metadata/generation"), "conditions": conditions.into_value(),
    });
    status(SET, set, new_status)
}

/// Length of an iterator.
pub(super) fn count<T>(all: impl Iterator<Item = T>) -> i64 {
    i64::try_from(all.count()).unwrap_or(i64::MAX)
}
