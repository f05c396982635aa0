//! Rules about machines and their templates.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Machine;
use metal3_api::cluster::names::PAUSED_ANNOTATION;
use metal3_api::infrastructure::CleaningMode;
use metal3_api::infrastructure::conditions::{legacy, machine};
use metal3_api::infrastructure::names::{BLOCK_MOVE_ANNOTATION, HOST_ANNOTATION, REUSE_AFTER_CLEANING_ANNOTATION};
use metal3_api::infrastructure::v1beta1;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3Machine, Metal3MachineTemplate, Metal3Remediation};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::reason::Reason;

use crate::facts::Facts;
use crate::finding::{Decision, Finding};
use crate::hosts::stays_paused;
use crate::objects::{KindName, Objects, name};

pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    let objects = &facts.objects;
    let mut findings = node_reuse(objects);
    findings.extend(shared_indexes(objects));
    findings.extend(remediations(objects));
    findings.extend(released(facts));
    findings.extend(moves(objects));
    findings
}

/// Deleted machines for which a Go manager waits without end: this program releases their hosts at once.
fn released(facts: &Facts) -> Vec<Finding> {
    let objects = &facts.objects;
    let machines = Machines::of(facts);
    let paused = objects.of::<BareMetalHost>().filter(|(_, host)| stays_paused(host));
    let paused: BTreeSet<String> = paused.map(|(name, _)| name).collect();
    let is_released = |machine: &Metal3Machine| {
        let annotations = machine.metadata.annotations.as_ref();
        let host = annotations.and_then(|all| all.get(HOST_ANNOTATION));
        let is_untouched = annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION))
            || host.is_none_or(|host| paused.contains(&format!("{} {host}", BareMetalHost::KIND)));
        machine.metadata.deletion_timestamp.is_some() && !is_untouched && waits_without_end(machine, &machines)
    };
    let machines = objects
        .of::<Metal3Machine>()
        .filter(|(_, machine)| is_released(machine));
    let finding = |(name, _)| {
        let what = "is being deleted without its Machine, its Cluster or its Metal3Cluster, for which a Go manager waits; this program releases \
                    its host at once, which is deprovisioned and cleaned";
        let cure = "pause its host before the switch if that is to stay: kubectl annotate bmh HOST baremetalhost.metal3.io/paused=user";
        Finding::new(Decision::No, name, what, cure).row("machine-deletion-alone")
    };
    machines.map(finding).collect()
}

/// The Machines of Cluster API.
enum Machines {
    Listed(BTreeSet<String>),
    /// What could not be listed is part of the report: its decision is not known to be good.
    NotListed,
}

impl Machines {
    fn of(facts: &Facts) -> Self {
        let documents = facts.objects.documents::<Machine>().iter();
        match facts.are_listed(&KindName::of::<Machine>().resource()) {
            true => Self::Listed(documents.map(name::<Machine>).collect()),
            false => Self::NotListed,
        }
    }

    fn is_missing(&self, name: &str) -> bool {
        match self {
            Self::Listed(names) => !names.contains(name),
            Self::NotListed => false,
        }
    }
}

/// The Machine that owns an object, by its name for people.
fn machine_of(meta: &ObjectMeta) -> Option<String> {
    let is_group = |version: &str| version.split('/').next() == Some(Machine::GROUP);
    let mut owners = meta.owner_references.iter().flatten();
    let owner = owners.find(|owner| owner.kind == Machine::KIND && is_group(&owner.api_version))?;
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    Some(format!("{} {namespace}/{}", Machine::KIND, owner.name))
}

/// As the Go manager reports it in either generation of conditions. It reports nothing when the Machine that owns the machine does not
/// exist, and then reads that again without end.
fn waits_without_end(machine: &Metal3Machine, machines: &Machines) -> bool {
    let reasons = [
        machine::REASON_WAITING_FOR_OWNER,
        machine::REASON_WAITING_FOR_INFRASTRUCTURE,
        machine::REASON_WAITING_FOR_CLUSTER,
        legacy::REASON_WAITING_FOR_OWNER,
        legacy::REASON_WAITING_FOR_INFRASTRUCTURE,
        legacy::REASON_WAITING_FOR_CLUSTER,
    ];
    machine_of(&machine.metadata).is_none_or(|owner| machines.is_missing(&owner)) || has_reason(machine, &reasons)
}

/// Whether a condition of either generation has one of these reasons.
pub(crate) fn has_reason(machine: &Metal3Machine, reasons: &[Reason]) -> bool {
    let status = &machine.status;
    let older = status.deprecated.iter().flat_map(|older| &older.v1beta1);
    let older = older.flat_map(|older| &older.conditions).map(|one| &one.reason);
    let mut all = status.conditions.iter().map(|one| &one.reason).chain(older);
    all.any(|reason| reasons.iter().any(|one| one.as_str() == reason))
}

/// A set whose hosts are kept, and whose disks would be cleaned nevertheless.
fn node_reuse(objects: &Objects) -> Vec<Finding> {
    let undecided = |template: &Metal3MachineTemplate| {
        let is_accepted = template.metadata.annotations.as_ref();
        let is_accepted = is_accepted.is_some_and(|all| all.contains_key(REUSE_AFTER_CLEANING_ANNOTATION));
        let mode = template.spec.template.spec.automated_cleaning_mode;
        template.spec.node_reuse == Some(true) && mode != Some(CleaningMode::Disabled) && !is_accepted
    };
    let templates = objects
        .of::<Metal3MachineTemplate>()
        .filter(|(_, template)| undecided(template));
    let finding = |(name, _)| {
        let what = "keeps hosts for its next machines, and their disks would be cleaned: machines that are replaced wait for \
                    a decision";
        let cure = "set automatedCleaningMode: disabled, or accept it by the annotation \
                    infrastructure.cluster.x-k8s.io/node-reuse-after-cleaning";
        Finding::new(Decision::Go, name, what, cure).row("reuse-without-cleaning")
    };
    templates.map(finding).collect()
}

/// Templates that share the indexes of another one (`v1beta1`, up to release 1.10).
fn shared_indexes(objects: &Objects) -> Vec<Finding> {
    let data = objects.of::<Metal3Data>();
    let with_data = data.filter_map(|(_, data)| Some((data.metadata.namespace?, data.spec.template?.name?)));
    let with_data: BTreeSet<(String, String)> = with_data.collect();
    let mut findings = Vec::new();
    for (name, template) in objects.of::<v1beta1::Metal3DataTemplate>() {
        let key = (
            template.metadata.namespace.clone().unwrap_or_default(),
            template.metadata.name.clone().unwrap_or_default(),
        );
        if template.spec.template_reference.is_some() && !with_data.contains(&key) {
            let what = "shares indexes by templateReference and has no data yet: its indexes would begin at 0 again";
            let cure = "finish the roll-outs of its templates before the switch";
            findings.push(Finding::new(Decision::Wait, name, what, cure));
        }
    }
    findings
}

fn remediations(objects: &Objects) -> Vec<Finding> {
    let finding = |(name, _): (String, Metal3Remediation)| {
        let what = "is in progress; this program continues it from its phase, also when the workload cluster cannot be reached, in which a Go \
                    manager does nothing";
        Finding::new(Decision::Go, name, what, "").row("remediation-node-unknown")
    };
    objects.of::<Metal3Remediation>().map(finding).collect()
}

/// Objects of a move carry a block that the Go managers before 1.14 do not know; here it says that a host is busy.
fn moves(objects: &Objects) -> Vec<Finding> {
    let is_blocked = |host: &BareMetalHost| host.annotation(BLOCK_MOVE_ANNOTATION).is_some();
    let hosts = objects.of::<BareMetalHost>().filter(|(_, host)| is_blocked(host));
    let finding = |(name, _)| {
        let what = format!(
            "has the annotation {BLOCK_MOVE_ANNOTATION}: no clusterctl move of this {} begins",
            BareMetalHost::KIND
        );
        Finding::new(Decision::Go, name, what, "")
    };
    hosts.map(finding).collect()
}
