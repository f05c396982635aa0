//! Requests that a Go manager carries out, or goes on with, in another way.

use metal3_api::metal3::names::{REBOOT_ANNOTATION_PREFIX, host_error};
use metal3_api::metal3::v1alpha1::{
    AutomatedCleaningMode, DetachedDelete, ErrorType, OperationalStatus, ProvisioningState as State, RaidConfig,
};

use super::super::Host;
use super::{has_system, is_unwanted};
use crate::finding::{Decision, Finding};

/// A Go manager reboots where it must not power off, and so again in each reconcile.
pub(in crate::hosts) fn rebooted(host: &Host<'_>) -> Option<Finding> {
    let (spec, status) = (&host.object.spec, &host.object.status);
    let is_free = matches!(host.state(), State::Available | State::Ready);
    // A free host is kept off by a request with force only.
    let mut requests = host.object.reboot_requests();
    let is_kept_off = requests.any(|(name, request)| {
        let is_forced = request.is_ok_and(|request| request.force);
        name.starts_with(REBOOT_ANNOTATION_PREFIX) && (host.runs() || is_free && is_forced)
    });
    let is_off = (host.runs() || is_free) && !spec.online;
    let is_asked = spec.disable_power_off == Some(true) && status.powered_on && (is_off || is_kept_off);
    let what = "must not be powered off, and is asked to be off; a Go manager reboots the machine again and again";
    let cure =
        "set spec.online, and remove its annotations that begin with reboot.metal3.io/, before the switch; or pause it";
    is_asked.then(|| host.finding(Decision::No, what, cure).row("host-never-off"))
}

/// A status may be restored, or written, that was one of a deletion.
pub(in crate::hosts) fn restored(host: &Host<'_>) -> Option<Finding> {
    let is_of_deletion = matches!(host.state(), State::PoweringOffBeforeDelete | State::Deleting);
    let is_kept = is_of_deletion && host.object.metadata.deletion_timestamp.is_none();
    let what =
        "has the state of a deletion and is not deleted; a Go manager powers the machine off and deletes its node";
    let cure = "correct what its error names before the switch, or pause it";
    is_kept.then(|| host.finding(Decision::No, what, cure).row("host-restored-deletion"))
}

/// This program detaches such a host in any state. A Go manager does so in a state at rest, unless it is forced.
pub(in crate::hosts) fn delayed(host: &Host<'_>) -> Option<Finding> {
    let request = host.object.detach_request()?;
    let is_delayed = request.delete == DetachedDelete::Delay && !request.force;
    let is_under_way = matches!(
        host.state(),
        State::Registering | State::Inspecting | State::Preparing | State::Provisioning | State::Deprovisioning
    );
    let is_deleted = host.object.metadata.deletion_timestamp.is_some();
    let what = "is detached, and its deletion is delayed; a Go manager goes on with what was under way, which reboots, cleans or deploys the \
                machine";
    let cure =
        "decide about its deletion by the annotation baremetalhost.metal3.io/detached before the switch, or pause it";
    (is_delayed && is_under_way && is_deleted)
        .then(|| host.finding(Decision::No, what, cure).row("host-delayed-deletion"))
}

/// Before its deprovisioning has begun the host becomes provisioned again. An error says what it waits for.
pub(in crate::hosts) fn taken_back(host: &Host<'_>) -> Option<Finding> {
    let is_wanted =
        has_system(host.object) && !is_unwanted(host.object) && host.object.spec.externally_provisioned != Some(true);
    let is_taken_back = *host.state() == State::Deprovisioning && is_wanted && host.error().is_none();
    let what = "is deprovisioned, and what runs is asked for again; a Go manager removes it nevertheless, and cleans the disks";
    let cure = "wait until this program has ended, or taken back, the deprovisioning";
    is_taken_back.then(|| {
        host.finding(Decision::Wait, what, cure)
            .row("host-deprovision-taken-back")
    })
}

fn has_software(raid: Option<&RaidConfig>) -> bool {
    let volumes = raid.and_then(|raid| raid.software_raid_volumes.as_ref());
    volumes.is_some_and(|volumes| !volumes.is_empty())
}

fn has_hardware(raid: Option<&RaidConfig>) -> bool {
    let volumes = raid.and_then(|raid| raid.hardware_raid_volumes.as_ref());
    volumes.is_some_and(|volumes| !volumes.is_empty())
}

/// RAID volumes with content that a Go manager makes again.
pub(in crate::hosts) fn volumes(host: &Host<'_>) -> Option<Finding> {
    let (spec, status) = (&host.object.spec, &host.object.status);
    let raid = spec.raid.as_ref();
    let is_kept = spec.automated_cleaning_mode == Some(AutomatedCleaningMode::Disabled);
    let is_failed = *host.state() == State::Preparing && status.error_type == Some(ErrorType::Preparation);
    let is_unknown = status.error_message.starts_with(host_error::VOLUMES_UNKNOWN);
    if is_failed && (has_software(raid) || has_hardware(raid)) && (is_kept || is_unknown) {
        let what = "has a preparation error, and RAID volumes that stay as they are; a Go manager makes them again, which erases their disks";
        let cure = "correct what its error names before the switch, or pause it";
        return Some(host.finding(Decision::No, what, cure).row("host-raid-recorded"));
    }
    let were_made = has_software(raid) && has_software(status.provisioning.raid.as_ref());
    let is_removed = *host.state() == State::Deprovisioning && host.object.metadata.deletion_timestamp.is_none();
    let what = "is deprovisioned without a cleaning, and keeps its software RAID volumes; a Go manager makes them again, which erases \
                their disks";
    let cure = "wait until it is available";
    (is_removed && is_kept && were_made).then(|| host.finding(Decision::Wait, what, cure).row("host-raid-uncleaned"))
}

/// A Go manager deploys to the disk of the hints that its status has.
pub(in crate::hosts) fn other_disk(host: &Host<'_>) -> Option<Finding> {
    let (spec, status) = (&host.object.spec, &host.object.status);
    let raid = spec.raid.as_ref();
    let is_by_hints = spec.root_device_hints.is_some() && !has_software(raid) && !has_hardware(raid);
    let is_other = is_by_hints && spec.root_device_hints != status.provisioning.root_device_hints;
    let is_deployed = *host.state() == State::Provisioning && host.error().is_none();
    let is_detached = status.operational_status == OperationalStatus::Detached;
    let what = "is deployed with spec.rootDeviceHints that were changed; a Go manager writes the image to the disk of the former ones";
    let cure = "wait until its deployment has begun";
    (is_other && is_deployed && !is_detached)
        .then(|| host.finding(Decision::Wait, what, cure).row("host-deployment-of-spec"))
}
