//! The object itself: whether the host is to be left alone, and what its metadata and spec lack.
//!
//! A host that moves between clusters exists twice for a while, and one machine stands behind both. So whoever says that
//! it moves, by words of clusterctl or by having been paused until just now, gets nothing done to the machine.

use chrono::TimeDelta;
use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::metal3::names::{
    HARDWARE_DATA_FINALIZER, HARDWARE_DETAILS_ANNOTATION, HOST_FINALIZER, STATUS_ANNOTATION,
};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, BareMetalHostStatus, ErrorType, HardwareData, HardwareDetails, ProvisioningState as State,
};
use metal3_runtime::patch::Changes;
use metal3_runtime::version::ResourceVersion;

use crate::action::{Step, Wait};
use crate::claim;
use crate::error::Failure;
use crate::facts::{HostSeen, Read, Sight};
use crate::names::{FORMER_ANNOTATION, reason};
use crate::plan::{End, Pass, document};

/// How long a host that was paused until just now and is deleted is left alone. clusterctl takes some 30 ms from
/// unpausing an object to taking it away; a minute is long for it and short for whoever really deletes a host.
pub(crate) const GRACE: TimeDelta = TimeDelta::seconds(60);

/// Whether the host is part of a move.
#[must_use]
pub fn is_moving(host: &BareMetalHost) -> bool {
    host.annotation(DELETE_FOR_MOVE_ANNOTATION).is_some()
}

/// Ends the decision for a host that is to be left alone.
pub(crate) fn rest(pass: &Pass<'_>) -> Result<(), End> {
    let (host, before) = (pass.host(), pass.facts.before);
    if host.is_paused() && pass.rules.rest_when_paused {
        return Err(End::Rest(Wait::OnUser("the host is paused")));
    }
    if is_moving(host) && pass.rules.rest_when_moved {
        return Err(End::Rest(Wait::OnUser("the host moves to another cluster")));
    }
    let Some(deleted) = &host.metadata.deletion_timestamp else {
        return Ok(());
    };
    let was_still = before.paused || before.moving;
    if !was_still || !pass.rules.grace_after_pause {
        return Ok(());
    }
    let until = deleted_at(deleted).map(|at| at + GRACE);
    let left = until.map_or(TimeDelta::zero(), |until| until - pass.facts.now.get());
    if let Some(left) = left.to_std().ok().filter(|left| !left.is_zero()) {
        return Err(End::Rest(Wait::After(left, "the host was paused until it was deleted")));
    }
    if pass.facts.host_seen < HostSeen::Live {
        return Err(End::read(Read::Host));
    }
    Ok(())
}

fn deleted_at(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Option<chrono::DateTime<chrono::Utc>> {
    // Through its text: the library's type of time is not ours.
    let text = serde_json::to_value(time).ok()?;
    chrono::DateTime::parse_from_rfc3339(text.as_str()?)
        .ok()
        .map(Into::into)
}

/// The identity of the host's node: that of its status, or, before that was restored, of the status that was saved.
pub(crate) fn recorded_node(host: &BareMetalHost) -> String {
    let id = &host.status.provisioning.id;
    let saved = || serde_json::from_str::<BareMetalHostStatus>(host.saved_status()?).ok();
    match saved().filter(|_| id.is_empty()) {
        Some(saved) => saved.provisioning.id,
        None => id.clone(),
    }
}

/// Restores a saved status into a host that has none, then takes the annotation away.
pub(crate) fn restore(pass: &mut Pass<'_>) -> Result<(), End> {
    let Some(text) = pass.host().saved_status() else {
        return Ok(());
    };
    if pass.host().status.last_updated.is_some() && pass.host().status.provisioning.state != State::None {
        annotate_without(pass, STATUS_ANNOTATION);
        return Err(End::Wait(Wait::Again));
    }
    let mut status = match serde_json::from_str::<BareMetalHostStatus>(text) {
        Ok(status) => status,
        Err(error) if pass.rules.keep_saved_status => {
            // Without its status a provisioned host looks like a new one.
            return Err(End::Fail(Failure::standing(
                ErrorType::Registration,
                format!(
                    "the annotation {STATUS_ANNOTATION} cannot be read as the status of a host: {error}; correct it, or \
                     remove it to have the host registered as a new one"
                ),
            )));
        }
        Err(_) => return Ok(()),
    };
    if status.provisioning.state == State::None {
        // Saved before anything had begun: there is nothing to restore, and what is restored must show that it was.
        annotate_without(pass, STATUS_ANNOTATION);
        return Err(End::Wait(Wait::Again));
    }
    match pass.facts.hardware_data {
        Sight::Unknown => return Err(End::read(Read::HardwareData)),
        Sight::Found(data) if data.spec.hardware.is_some() => status.hardware.clone_from(&data.spec.hardware),
        Sight::Found(_) | Sight::Absent => {}
    }
    if let Some(instance) = claim::former(pass, &status)? {
        // differs: `host-moved-instance`. The Go manager asks nobody whom a node serves before it tears it down.
        let annotations = pass.draft.metadata.annotations.get_or_insert_default();
        annotations.insert(FORMER_ANNOTATION.to_owned(), instance);
    }
    pass.draft.status = status;
    Err(End::Wait(Wait::Again))
}

/// Adds what the object lacks: finalizer, architecture, hardware details from outside.
pub(crate) fn complete(pass: &mut Pass<'_>) -> Result<(), End> {
    if pass.is_leaving() {
        return Ok(());
    }
    details(pass)?;
    let finalizers = pass.draft.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|one| one == HOST_FINALIZER) {
        finalizers.push(HOST_FINALIZER.to_owned());
    }
    let status = &pass.host().status;
    let known = status.hardware.as_ref().and_then(|hardware| hardware.cpu.as_ref());
    let known = known.and_then(|cpu| cpu.arch.clone()).filter(|arch| !arch.is_empty());
    let is_open = |given: &Option<String>| given.as_deref().is_none_or(str::is_empty);
    if is_open(&pass.draft.spec.architecture) && known.is_some() {
        pass.draft.spec.architecture = known;
    }
    if pass.draft.metadata == pass.host().metadata && pass.draft.spec == pass.host().spec {
        Ok(())
    } else {
        Err(End::Wait(Wait::Again))
    }
}

/// Takes over hardware details that were supplied from outside, and takes the annotation away.
fn details(pass: &mut Pass<'_>) -> Result<(), End> {
    let disabled = pass.host().inspection_disabled();
    let text = pass.host().annotation(HARDWARE_DETAILS_ANNOTATION);
    let is_open = pass.host().status.hardware.is_none();
    if !disabled && (!is_open || text.is_none()) {
        if text.is_some() {
            annotate_without(pass, HARDWARE_DETAILS_ANNOTATION);
            pass.tell(
                reason::REMOVE_ANNOTATION,
                "hardware details are known; those of the annotation are not used",
            );
        }
        return Ok(());
    }
    let recorded = match pass.facts.hardware_data {
        Sight::Unknown => return Err(End::read(Read::HardwareData)),
        Sight::Found(data) => data.spec.hardware.clone(),
        Sight::Absent => None,
    };
    let supplied = || text.map(parse).transpose();
    let wanted = match recorded {
        Some(details) => Some(details),
        None => supplied().map_err(|error| {
            End::Fail(Failure::standing(
                ErrorType::Inspection,
                format!("the annotation {HARDWARE_DETAILS_ANNOTATION} cannot be read: {error}; correct or remove it"),
            ))
        })?,
    };
    if wanted.is_some() && wanted != pass.host().status.hardware {
        pass.draft.status.hardware = wanted;
        pass.tell(reason::UPDATE_HARDWARE, "hardware details taken over");
        return Err(End::Wait(Wait::Again));
    }
    if text.is_some() {
        annotate_without(pass, HARDWARE_DETAILS_ANNOTATION);
    }
    Ok(())
}

fn parse(text: &str) -> Result<HardwareDetails, serde_json::Error> {
    serde_json::from_str(text)
}

/// Takes an annotation from the draft.
pub(crate) fn annotate_without(pass: &mut Pass<'_>, name: &str) {
    if let Some(annotations) = &mut pass.draft.metadata.annotations {
        annotations.remove(name);
    }
}

/// Writes hardware data down: creates the object, or brings it up to date in place.
pub(crate) fn record_hardware(pass: &mut Pass<'_>, details: &HardwareDetails) -> Result<(), End> {
    match pass.facts.hardware_data {
        Sight::Unknown => return Err(End::read(Read::HardwareData)),
        Sight::Absent => {
            let data = hardware_data(pass.host(), pass.uid, details);
            pass.step(Step::CreateHardwareData(Box::new(data)));
        }
        Sight::Found(data) => {
            // differs: `host-hardware-data-in-place`. The Go manager deletes it and creates another.
            let mut wanted = data.clone();
            wanted.spec.hardware = Some(details.clone());
            change_hardware_data(pass, data, &wanted);
        }
    }
    Ok(())
}

/// Lets the hardware data go with its host.
pub(crate) fn release_hardware(pass: &mut Pass<'_>) -> Result<(), End> {
    match pass.facts.hardware_data {
        Sight::Unknown => return Err(End::read(Read::HardwareData)),
        Sight::Absent => {}
        Sight::Found(data) => {
            let mut wanted = data.clone();
            if let Some(finalizers) = &mut wanted.metadata.finalizers {
                finalizers.retain(|one| one != HARDWARE_DATA_FINALIZER);
            }
            change_hardware_data(pass, data, &wanted);
        }
    }
    Ok(())
}

fn change_hardware_data(pass: &mut Pass<'_>, from: &HardwareData, to: &HardwareData) {
    let version = from.metadata.resource_version.as_deref();
    let version = version.and_then(|text| ResourceVersion::parse(text).ok());
    let patch = Changes::between(&document(from), &document(to)).main;
    if let (Some(patch), Some(version)) = (patch, version) {
        pass.step(Step::PatchHardwareData(patch.only_at(&version)));
    }
}

fn hardware_data(host: &BareMetalHost, uid: &str, details: &HardwareDetails) -> HardwareData {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
    let owner = OwnerReference {
        api_version: "metal3.io/v1alpha1".to_owned(),
        kind: "BareMetalHost".to_owned(),
        name: host.metadata.name.clone().unwrap_or_default(),
        uid: uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let mut data = HardwareData {
        metadata: ObjectMeta {
            name: host.metadata.name.clone(),
            namespace: host.metadata.namespace.clone(),
            owner_references: Some(vec![owner]),
            finalizers: Some(vec![HARDWARE_DATA_FINALIZER.to_owned()]),
            ..ObjectMeta::default()
        },
        ..HardwareData::default()
    };
    data.spec.hardware = Some(details.clone());
    data
}
