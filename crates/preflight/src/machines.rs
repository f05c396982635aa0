//! Rules about machines and their templates.

use std::collections::BTreeSet;

use metal3_api::cluster::names::PAUSED_ANNOTATION;
use metal3_api::infrastructure::CleaningMode;
use metal3_api::infrastructure::conditions::{legacy, machine};
use metal3_api::infrastructure::names::{BLOCK_MOVE_ANNOTATION, HOST_ANNOTATION, REUSE_AFTER_CLEANING_ANNOTATION};
use metal3_api::infrastructure::v1beta1;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3Machine, Metal3MachineTemplate, Metal3Remediation};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::reason::Reason;

use crate::finding::{Decision, Finding};
use crate::hosts::stays_paused;
use crate::objects::Objects;

pub(crate) fn findings(objects: &Objects) -> Vec<Finding> {
    let mut findings = node_reuse(objects);
    findings.extend(shared_indexes(objects));
    findings.extend(remediations(objects));
    findings.extend(released(objects));
    findings.extend(moves(objects));
    findings
}

/// Deleted machines for which a Go manager waits without end: this program releases their hosts at once.
fn released(objects: &Objects) -> Vec<Finding> {
    let paused = objects.of::<BareMetalHost>().filter(|(_, host)| stays_paused(host));
    let paused: BTreeSet<String> = paused.map(|(name, _)| name).collect();
    let is_released = |machine: &Metal3Machine| {
        let annotations = machine.metadata.annotations.as_ref();
        let host = annotations.and_then(|all| all.get(HOST_ANNOTATION));
        let is_untouched = annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION))
            || host.is_none_or(|host| paused.contains(&format!("{} {host}", BareMetalHost::KIND)));
        machine.metadata.deletion_timestamp.is_some() && !is_untouched && waits_without_end(machine)
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

/// As the Go manager reports it in either generation of conditions.
fn waits_without_end(machine: &Metal3Machine) -> bool {
    let reasons = [
        machine::REASON_WAITING_FOR_OWNER,
        machine::REASON_WAITING_FOR_INFRASTRUCTURE,
        machine::REASON_WAITING_FOR_CLUSTER,
        legacy::REASON_WAITING_FOR_OWNER,
        legacy::REASON_WAITING_FOR_INFRASTRUCTURE,
        legacy::REASON_WAITING_FOR_CLUSTER,
    ];
    let mut owners = machine.metadata.owner_references.iter().flatten();
    let status = serde_json::to_string(&machine.status).unwrap_or_default();
    let is_reported = |reason: &Reason| status.contains(&format!("\"reason\":\"{}\"", reason.as_str()));
    !owners.any(|owner| owner.kind == "Machine") || reasons.iter().any(is_reported)
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
