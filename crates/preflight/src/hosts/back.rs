//! What only this program keeps from happening to a host: a Go manager erases it, powers it or offers it at once.

mod errors;
mod states;

use metal3_api::meta::{Condition, ConditionStatus};
use metal3_api::metal3::names::{held, host_error};
use metal3_api::metal3::v1alpha1::{BareMetalHost, CustomDeploy, ErrorType, OperationalStatus, ProvisioningState};

pub(super) use errors::is_about_the_node;

use super::{Host, Rule, moving};
use crate::finding::{Decision, Finding};

/// What either manager would not do the same way.
pub(super) const DIFFERENCES: [Rule; 9] = [
    withheld,
    external,
    errors::kept,
    states::rebooted,
    states::restored,
    states::delayed,
    states::taken_back,
    states::volumes,
    states::other_disk,
];

/// Whether a Go manager does not continue the host as this program does.
pub(super) fn has_difference(host: &Host<'_>) -> bool {
    DIFFERENCES.iter().any(|rule| rule(host).is_some())
}

/// What runs, or ran, is not removed until a person decides.
pub(super) fn withheld(host: &Host<'_>) -> Option<Finding> {
    let status = &host.object.status;
    let held = |one: &Condition| one.type_ == held::TYPE && one.status == ConditionStatus::True;
    // Either manager leaves a detached host alone whose deletion is delayed.
    let is_detached = status.operational_status == OperationalStatus::Detached;
    let waits = |one: &Condition| held(one) && !(is_detached && one.reason == held::DELETION_DELAYED);
    let is_held = status.conditions.iter().any(waits);
    let is_budget = status
        .conditions
        .iter()
        .any(|one| held(one) && one.reason == held::BUDGET_SPENT);
    let is_external = host.object.spec.externally_provisioned == Some(true);
    let is_withheld = match host.state() {
        // This program does not erase an external machine, which it reports in its next reconcile.
        ProvisioningState::Provisioned => {
            is_unwanted(host.object) && (is_held || is_external || host.error().is_some())
        }
        ProvisioningState::Deprovisioning if is_external => true,
        // This program goes on with each other error.
        ProvisioningState::Deprovisioning => {
            let serves_another = status.error_message.starts_with(host_error::SERVES_ANOTHER);
            let is_wanted = has_system(host.object) && !is_unwanted(host.object);
            (is_wanted || serves_another) && host.error().is_some()
        }
        _ => false,
    };
    let refuse = |why: &str| {
        let what = format!("{why}; a Go manager deprovisions it at once, and cleans its disks");
        let cure = "ask for the same image again, or confirm the removal, before the switch; to keep the machine as it is, pause the host: \
                    kubectl annotate bmh HOST baremetalhost.metal3.io/paused=user";
        host.finding(Decision::No, what, cure)
    };
    if is_budget {
        let why = "is deprovisioned only after a confirmation, because the deprovision budget is spent";
        return Some(refuse(why).row("hosts-deprovision-budget"));
    }
    is_withheld.then(|| refuse("is not deprovisioned until its error is decided").row("host-unexpected-state"))
}

/// Whether what runs is not requested any more, as either manager decides it: a deploy step that is added to an image that runs without
/// one does not run afterwards.
fn is_unwanted(host: &BareMetalHost) -> bool {
    let method = |step: Option<&CustomDeploy>| step.map(|step| step.method.clone()).unwrap_or_default();
    let (asked, runs) = (&host.spec, &host.status.provisioning);
    let url = asked.image.as_ref().map_or("", |image| image.url.as_str());
    let is_other_image = !runs.image.url.is_empty() && url != runs.image.url;
    let steps = [asked.custom_deploy.as_ref(), runs.custom_deploy.as_ref()].map(method);
    let is_other = match steps.each_ref().map(String::as_str) {
        ["", ""] => url.is_empty() || is_other_image,
        ["", _] => true,
        [_, ""] => is_other_image,
        [asked, runs] => asked != runs || is_other_image,
    };
    host.metadata.deletion_timestamp.is_some() || is_other
}

/// Whether the status names what runs, or ran.
fn has_system(host: &BareMetalHost) -> bool {
    let runs = &host.status.provisioning;
    !runs.image.url.is_empty() || runs.custom_deploy.as_ref().is_some_and(|step| !step.method.is_empty())
}

/// A running system that this program neither inspects nor cleans.
fn external(host: &Host<'_>) -> Option<Finding> {
    if host.object.spec.externally_provisioned != Some(true) {
        return None;
    }
    match host.state() {
        ProvisioningState::Inspecting => {
            let what = "is externally provisioned and is not inspected by this program; a Go manager inspects it, which boots another \
                        system on it";
            let cure =
                "delete the host and create it again with spec.externallyProvisioned before the switch, or pause it";
            Some(
                host.finding(Decision::No, what, cure)
                    .row("host-external-not-inspected"),
            )
        }
        ProvisioningState::Preparing | ProvisioningState::Provisioning => {
            let what = "is externally provisioned and is neither cleaned nor deployed by this program; a Go manager goes on with both, which \
                        erases the machine";
            let cure =
                "delete the host and create it again with spec.externallyProvisioned before the switch, or pause it";
            Some(host.finding(Decision::No, what, cure))
        }
        _ => None,
    }
}

/// A host that waits for settings which its machine cannot have.
pub(super) fn unprepared(host: &Host<'_>) -> Option<Finding> {
    let (_, name) = host.name.split_once(' ')?;
    let is_waiting = host.firmware.invalid.contains(name) && *host.state() == ProvisioningState::Preparing;
    let what =
        "has a firmware setting that its machine cannot have; a Go manager makes it available without its settings";
    let cure = "see the condition Valid of its HostFirmwareSettings, and correct spec.settings before the switch";
    is_waiting.then(|| host.finding(Decision::No, what, cure).row("firmware-settings-spelling"))
}

/// A service that has not ended.
pub(super) fn servicing(host: &Host<'_>) -> Option<Finding> {
    let is_serviced = host.object.status.operational_status == OperationalStatus::Servicing;
    let what = "is serviced; a Go manager may service it again when that has ended, which reboots the running machine";
    let cure = "wait until its operationalStatus is OK";
    is_serviced.then(|| host.finding(Decision::Wait, what, cure).row("host-service-ended"))
}

/// A service that failed, of which a Go manager makes a reboot that none asked for.
pub(super) fn unserviced(host: &Host<'_>) -> Option<Finding> {
    let is_failed = host.object.status.error_type == Some(ErrorType::Servicing);
    let what = "has a servicing error; a Go manager services the running machine at once, which reboots it";
    let cure = "wait until its system runs, which clears the error, or take what is asked of its firmware back";
    is_failed.then(|| host.finding(Decision::Wait, what, cure).row("host-service-ended"))
}

/// A Go manager takes a saved status over without the guards of this program.
pub(super) fn moved(host: &Host<'_>) -> Option<Finding> {
    moving(host).filter(|finding| finding.decision != Decision::Go)
}
