//! Rules about machines and their templates.

use metal3_api::infrastructure::CleaningMode;
use std::collections::BTreeSet;

use metal3_api::infrastructure::names::{BLOCK_MOVE_ANNOTATION, REUSE_AFTER_CLEANING_ANNOTATION};
use metal3_api::infrastructure::v1beta1;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3MachineTemplate, Metal3Remediation};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::BareMetalHost;

use crate::finding::{Decision, Finding};
use crate::objects::Objects;

pub(crate) fn findings(objects: &Objects) -> Vec<Finding> {
    let mut findings = node_reuse(objects);
    findings.extend(shared_indexes(objects));
    findings.extend(remediations(objects));
    findings.extend(moves(objects));
    findings
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
        let what = "is in progress; this program continues it from its phase";
        Finding::new(Decision::Go, name, what, "")
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
