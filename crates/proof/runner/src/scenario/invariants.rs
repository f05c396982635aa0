//! Invariants that hold after every write. Pure: objects and machines in, violations out.
//!
//! A rule checks one write together with the state after it. It never waits: eventual outcomes are checked by
//! scenarios.

mod zones;

use std::collections::BTreeMap;

use metal3_api::cluster::names::{CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL};
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_sandbox::world::BMC_PASSWORD;
use metal3_sim_capi::view::Object;
use serde_json::Value;

type ObjectKey = (String, String);

/// Observable state of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MachineState {
    pub(super) is_on: bool,
    /// Whether its disk or virtual drive holds an image.
    pub(super) has_image: bool,
    /// Number of images written to its disk.
    pub(super) written: u32,
}

/// All objects by kind and name, and the consumer of each host.
#[derive(Debug, Default)]
pub(super) struct Invariants {
    objects: BTreeMap<ObjectKey, Object>,
    consumers: BTreeMap<String, Consumer>,
    checks: usize,
}

/// The consumer of a host.
#[derive(Debug)]
struct Consumer {
    consumer: String,
    /// Disk writes before the claim.
    written_before: u32,
    /// Whether the machine was on after an earlier write; then it stays on while its host requests power.
    was_on: bool,
}

/// One write.
struct Change<'a> {
    all: &'a BTreeMap<ObjectKey, Object>,
    old: Option<&'a Object>,
    new: &'a Object,
    deleted: bool,
}

/// Returns the violation of a write.
type Rule = fn(&Change<'_>) -> Option<String>;

const RULES: &[(&str, Rule)] = &[
    ("a host has one consumer", one_consumer),
    ("a machine has one host", one_host),
    ("a host in use stays provisioned", in_use_stays),
    ("a host is released before its machine is deleted", released_first),
    ("an address is allocated once", address_once),
    ("an index is allocated once", index_once),
    ("the provider ID of a machine never changes", id_is_constant),
    (
        "a condition that is not True has a reason and a message",
        explains_condition,
    ),
    ("a provisioned machine has a provisioned host", provisioned_has_host),
    ("a kept host goes to its set", kept_goes_to_its_set),
    ("a released host is kept for its set", released_is_kept),
    (
        "a machine is written in its zone, with its data",
        zones::written_in_its_zone,
    ),
    ("secrets appear only in Secrets", no_secret_leaks),
];

impl Invariants {
    /// Records a write and returns its violations. `machine` is the state of the machine behind a host.
    pub(super) fn check_write(&mut self, new: &Object, deleted: bool, machine: Option<MachineState>) -> Vec<String> {
        let key = (new.kind().to_owned(), new.name().to_owned());
        let old = if deleted {
            self.objects.remove(&key)
        } else {
            self.objects.insert(key, new.clone())
        };
        let change = Change {
            all: &self.objects,
            old: old.as_ref(),
            new,
            deleted,
        };
        let violations = RULES.iter().filter_map(|(name, rule)| {
            let why = rule(&change)?;
            Some(format!("{name}: {} {}: {why}", new.kind(), new.name()))
        });
        let mut violations: Vec<String> = violations.collect();
        if let Some(machine) = machine {
            violations.extend(self.check_machine(new, deleted, machine));
        }
        self.checks = self.checks.saturating_add(1);
        violations
    }

    /// The objects of a namespace.
    pub(super) fn objects_in(&self, namespace: &str) -> Vec<Value> {
        let objects = self.objects.values().map(|object| &object.0);
        let is_inside =
            |object: &&Value| object.pointer("/metadata/namespace").and_then(Value::as_str) == Some(namespace);
        objects.filter(is_inside).cloned().collect()
    }

    /// Number of checked writes.
    pub(super) fn checks(&self) -> usize {
        self.checks
    }

    /// Checks the machine itself, independently of the status of its host.
    fn check_machine(&mut self, host: &Object, deleted: bool, machine: MachineState) -> Option<String> {
        let consumer = consumer(host);
        if deleted || consumer.is_empty() {
            self.consumers.remove(host.name());
            return None;
        }
        let arrival = || Consumer {
            consumer: consumer.to_owned(),
            written_before: machine.written,
            was_on: false,
        };
        let entry = self.consumers.entry(host.name().to_owned()).or_insert_with(arrival);
        if entry.consumer != consumer {
            *entry = arrival();
        }
        let times = machine.written.saturating_sub(entry.written_before);
        let runs = is_provisioned(host) && !host.is_deleting();
        let stays_on = runs && host.flag("/spec/online") && !is_rebooted(host);
        entry.was_on = stays_on && (entry.was_on || machine.is_on);
        let why = if times > 1 {
            format!("a disk is written once for each consumer: {times} times for {consumer}")
        } else if runs && !machine.has_image {
            "a provisioned machine keeps its image: the disk has none".to_owned()
        } else if entry.was_on && !machine.is_on {
            "a provisioned machine stays on: it is off".to_owned()
        } else {
            return None;
        };
        Some(format!("{why}: {}", host.name()))
    }
}

/// The machine that has a host. The consumer of a host that is kept for the next machine of a set is the Cluster.
fn consumer(host: &Object) -> &str {
    match host.text("/spec/consumerRef/kind") {
        "Cluster" => "",
        _ => host.text("/spec/consumerRef/name"),
    }
}

/// The set that a host is kept for.
fn kept_for(host: &Object) -> &str {
    host.label(NODE_REUSE_LABEL).unwrap_or_default()
}

fn is_provisioned(host: &Object) -> bool {
    host.text("/status/provisioning/state") == "provisioned"
}

/// Whether the user requests a reboot, by the annotation with or without a suffix.
fn is_rebooted(host: &Object) -> bool {
    let annotations = host.part("/metadata/annotations");
    let mut names = annotations.as_object().into_iter().flat_map(|all| all.keys());
    names.any(|name| name.starts_with(REBOOT_ANNOTATION))
}

impl Change<'_> {
    /// Whether the object is of this kind.
    fn is_of(&self, kind: &str) -> bool {
        self.new.kind() == kind
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Object> + 'a {
        let all = self.all.iter().filter(move |((of, _), _)| of == kind);
        all.map(|(_, object)| object)
    }

    /// Other objects of the same kind with the same value in a field.
    fn duplicates<'a>(&'a self, at: &'a str) -> impl Iterator<Item = &'a Object> + 'a {
        let is_duplicate = move |other: &&Object| other.name() != self.new.name() && self.new.at(at) == other.at(at);
        self.of_kind(self.new.kind()).filter(is_duplicate)
    }
}

fn one_consumer(change: &Change<'_>) -> Option<String> {
    let (old, new) = (consumer(change.old?), consumer(change.new));
    let is_taken = !old.is_empty() && !new.is_empty() && old != new;
    (change.is_of("BareMetalHost") && is_taken).then(|| format!("its consumer changed from {old} to {new}"))
}

fn one_host(change: &Change<'_>) -> Option<String> {
    if !change.is_of("BareMetalHost") || change.deleted || consumer(change.new).is_empty() {
        return None;
    }
    let duplicate = change.duplicates("/spec/consumerRef/name").next()?;
    Some(format!("{} also has {}", consumer(change.new), duplicate.name()))
}

fn in_use_stays(change: &Change<'_>) -> Option<String> {
    let old = change
        .old
        .filter(|old| change.is_of("BareMetalHost") && is_provisioned(old))?;
    let machine = ("Metal3Machine".to_owned(), consumer(old).to_owned());
    change.all.get(&machine).filter(|machine| !machine.is_deleting())?;
    let lost = [
        (change.deleted, "gone"),
        (!is_provisioned(change.new), "not provisioned"),
        (change.new.at("/spec/image").is_none(), "without image"),
        (consumer(change.new).is_empty(), "without consumer"),
    ];
    let (_, what) = lost.iter().find(|(is_lost, _)| *is_lost)?;
    Some(format!("{} exists and uses it, and it is {what}", consumer(old)))
}

fn released_first(change: &Change<'_>) -> Option<String> {
    if !change.deleted || !change.is_of("Metal3Machine") {
        return None;
    }
    let host = change
        .of_kind("BareMetalHost")
        .find(|host| consumer(host) == change.new.name())?;
    Some(format!("it is deleted, and {} is still claimed by it", host.name()))
}

fn kept_goes_to_its_set(change: &Change<'_>) -> Option<String> {
    let old = change.old.filter(|_| change.is_of("BareMetalHost"))?;
    let (set, new) = (kept_for(old), consumer(change.new));
    let machine = ("Metal3Machine".to_owned(), new.to_owned());
    let machine = change.all.get(&machine).filter(|_| !set.is_empty())?;
    let is_own = if machine.label(CONTROL_PLANE_LABEL).is_some() {
        set.starts_with("cp-")
    } else {
        machine.label(DEPLOYMENT_NAME_LABEL) == set.strip_prefix("md-")
    };
    (!is_own).then(|| format!("{new} got it, and it was kept for {set}"))
}

/// In the scenarios all templates keep hosts, or none.
fn released_is_kept(change: &Change<'_>) -> Option<String> {
    let old = change
        .old
        .filter(|_| change.is_of("BareMetalHost") && !change.deleted)?;
    let keeps = |template: &Object| template.flag("/spec/nodeReuse");
    let is_kept = change.of_kind("Metal3MachineTemplate").any(keeps);
    let has_cluster = change.of_kind("Cluster").any(|cluster| !cluster.is_deleting());
    let is_free = consumer(change.new).is_empty() && kept_for(change.new).is_empty();
    let is_lost = is_kept && has_cluster && !consumer(old).is_empty() && is_free;
    is_lost.then(|| format!("{} released it, and it is free", consumer(old)))
}

fn address_once(change: &Change<'_>) -> Option<String> {
    allocated_once(change, "IPClaim", "/status/address/name")
}

fn index_once(change: &Change<'_>) -> Option<String> {
    allocated_once(change, "Metal3DataClaim", "/status/renderedData/name")
}

/// An allocation belongs to at most one claim that is not being deleted. The name of the allocated object is derived
/// from the address or index, so two claims with the same reference are the violation.
fn allocated_once(change: &Change<'_>, kind: &str, at: &str) -> Option<String> {
    if change.deleted || !change.is_of(kind) || change.new.is_deleting() || change.new.text(at).is_empty() {
        return None;
    }
    let duplicate = change.duplicates(at).find(|duplicate| !duplicate.is_deleting())?;
    Some(format!(
        "{} is also allocated to {}",
        change.new.text(at),
        duplicate.name()
    ))
}

fn id_is_constant(change: &Change<'_>) -> Option<String> {
    let at = "/spec/providerID";
    let (old, new) = (change.old?.text(at), change.new.text(at));
    let is_other = !old.is_empty() && old != new;
    (["Machine", "Metal3Machine"].contains(&change.new.kind()) && is_other).then(|| format!("{old} became {new:?}"))
}

/// Kinds whose conditions the products write.
fn is_managed(object: &Object) -> bool {
    let kind = object.kind();
    kind.starts_with("Metal3") || ["BareMetalHost", "IPPool", "IPClaim", "IPAddress"].contains(&kind)
}

/// Conditions for which false is normal.
const FALSE_IS_NORMAL: [&str; 4] = ["Paused", "Exhausted", "Overlapping", "ControlPlaneEndpointDrifted"];

fn explains_condition(change: &Change<'_>) -> Option<String> {
    if change.deleted || !is_managed(change.new) {
        return None;
    }
    let conditions = change.new.part("/status/conditions");
    let text = |condition: &Value, member: &str| {
        let found = condition.get(member).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    // A host has an error message instead, as with the Go manager.
    let explains = !change.is_of("BareMetalHost");
    let is_silent = |condition: &&Value| {
        let waits = explains && !FALSE_IS_NORMAL.contains(&text(condition, "type").as_str());
        let waits = waits && text(condition, "status") != "True";
        text(condition, "reason").is_empty() || (waits && text(condition, "message").is_empty())
    };
    let silent = conditions.as_array()?.iter().find(is_silent)?;
    Some(format!("{silent} has no reason or no message"))
}

fn provisioned_has_host(change: &Change<'_>) -> Option<String> {
    let is_meant = change.is_of("Metal3Machine") && !change.deleted && !change.new.is_deleting();
    if !is_meant || !change.new.flag("/status/initialization/provisioned") {
        return None;
    }
    let host = change
        .of_kind("BareMetalHost")
        .find(|host| consumer(host) == change.new.name());
    match host {
        None => Some("it has no host".to_owned()),
        Some(host) => (!is_provisioned(host)).then(|| format!("{} is not provisioned", host.name())),
    }
}

fn no_secret_leaks(change: &Change<'_>) -> Option<String> {
    let leaks = !change.is_of("Secret") && change.new.0.to_string().contains(BMC_PASSWORD);
    leaks.then(|| "it contains the password of a BMC".to_owned())
}

#[cfg(test)]
mod tests;
