//! What only this program keeps from happening to a host: a Go manager erases it, powers it or offers it at once.

use metal3_api::meta::{Condition, ConditionStatus};
use metal3_api::metal3::v1alpha1::{BareMetalHost, CustomDeploy, ErrorType, OperationalStatus, ProvisioningState};

use super::{Host, moving};
use crate::finding::{Decision, Finding};

/// The condition of a host that waits for a person, and its reason when the deprovision budget is spent.
const HELD: &str = "Held";
const BUDGET_SPENT: &str = "DeprovisionBudgetSpent";
/// How the error of a node begins that serves something else.
const SERVES: &str = "in Ironic the node serves instance ";
/// How the error of a host begins whose machine is that of another host.
const TAKEN: &str = "spec.bmc.address is that of the machine of ";
/// What the error of a host names that the administrator's limits refuse.
const LIMIT: &str = "--allowed-";

/// What runs, or ran, is not removed until a person decides.
pub(super) fn withheld(host: &Host<'_>) -> Option<Finding> {
    let status = &host.object.status;
    let held = |one: &Condition| one.type_ == HELD && one.status == ConditionStatus::True;
    let is_held = status.conditions.iter().any(held);
    let is_budget = status
        .conditions
        .iter()
        .any(|one| held(one) && one.reason == BUDGET_SPENT);
    let is_external = host.object.spec.externally_provisioned == Some(true);
    let is_withheld = match host.state() {
        ProvisioningState::Provisioned => is_unwanted(host.object) && (is_held || host.error().is_some()),
        // This program goes on with each other error.
        ProvisioningState::Deprovisioning => {
            let is_refused = is_external || !is_unwanted(host.object) || status.error_message.starts_with(SERVES);
            is_refused && host.error().is_some()
        }
        _ => false,
    };
    if !is_withheld && !is_budget {
        return None;
    }
    let (what, row) = if is_budget {
        (
            "is deprovisioned only after a confirmation, because the deprovision budget is spent",
            "hosts-deprovision-budget",
        )
    } else {
        (
            "is not deprovisioned until its error is decided",
            "host-unexpected-state",
        )
    };
    let what = format!("{what}; a Go manager deprovisions it at once, and cleans its disks");
    let cure = "ask for the same image again, or confirm the removal, before the switch; to keep the machine as it is, pause the host: \
                kubectl annotate bmh HOST baremetalhost.metal3.io/paused=user";
    Some(host.finding(Decision::No, what, cure).row(row))
}

/// An error that leaves a machine as it is, which a Go manager does not know.
pub(super) fn kept(host: &Host<'_>) -> Option<Finding> {
    let message = host.object.status.error_message.as_str();
    if host.error().is_none() || withheld(host).is_some() {
        return None;
    }
    let (what, row) = if message.starts_with(SERVES) {
        (
            "has a node that serves another instance; a Go manager does not look, and switches, cleans or deploys that machine",
            "host-node-of-another",
        )
    } else if message.starts_with(TAKEN) {
        (
            "has the machine of another host; a Go manager registers it a second time, and reboots, cleans and deploys what runs on it",
            "host-machine-once",
        )
    } else if message.contains(LIMIT) && !host.runs() {
        (
            "is refused by a limit of this program that a Go manager does not have: it registers or deploys it at once",
            "destinations-allowed",
        )
    } else {
        return None;
    };
    let cure = "correct what its error names, or pause it before the switch: kubectl annotate bmh HOST \
                baremetalhost.metal3.io/paused=user";
    Some(host.finding(Decision::No, what, cure).row(row))
}

/// Whether what runs is not requested any more.
fn is_unwanted(host: &BareMetalHost) -> bool {
    let method = |step: Option<&CustomDeploy>| step.map(|step| step.method.clone()).unwrap_or_default();
    let (asked, runs) = (&host.spec, &host.status.provisioning);
    let url = asked.image.as_ref().map_or("", |image| image.url.as_str());
    host.metadata.deletion_timestamp.is_some()
        || url != runs.image.url
        || method(asked.custom_deploy.as_ref()) != method(runs.custom_deploy.as_ref())
}

/// A running system that was never inspected.
pub(super) fn external(host: &Host<'_>) -> Option<Finding> {
    let is_external = host.object.spec.externally_provisioned == Some(true);
    let is_inspected = is_external && *host.state() == ProvisioningState::Inspecting;
    let what = "is externally provisioned and is not inspected by this program; a Go manager inspects it, which boots another system on it";
    let cure = "delete the host and create it again with spec.externallyProvisioned before the switch, or pause it";
    is_inspected.then(|| {
        host.finding(Decision::No, what, cure)
            .row("host-external-not-inspected")
    })
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
