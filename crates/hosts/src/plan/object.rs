//! The host object: whether it is paused or moving, and its missing metadata.
//!
//! During a move between clusters two host objects exist for one machine. A host that is marked as moving by
//! clusterctl, or that was paused until its deletion, is therefore not touched.

use chrono::TimeDelta;
use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::kind::Kind as _;
use metal3_api::meta::moment;
use metal3_api::metal3::names::{
    CLAIM_RECORD_ANNOTATION, HARDWARE_DATA_FINALIZER, HARDWARE_DETAILS_ANNOTATION, HOST_FINALIZER,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalHostStatus, ErrorType, HardwareData, HardwareDetails};
use metal3_runtime::patch::Changes;
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;

use crate::action::Action;
use crate::claims::bond::spent;
use crate::facts::{HostFreshness, Read};
use crate::names::reason;
use crate::plan::planner::{Decision, PlanResult, Planner, document};
use crate::plan::wait;

/// How long a deleted host is skipped that was paused in its previous version. clusterctl takes about 30 ms between
/// unpausing an object and deleting it.
pub(crate) const GRACE: TimeDelta = TimeDelta::seconds(60);

/// Whether the host is part of a move.
pub(crate) fn is_moving(host: &BareMetalHost) -> bool {
    host.annotation(DELETE_FOR_MOVE_ANNOTATION).is_some()
}

/// Whether the host has the finalizer of this controller.
pub(crate) fn has_finalizer(host: &BareMetalHost) -> bool {
    host.metadata
        .finalizers
        .iter()
        .flatten()
        .any(|one| one == HOST_FINALIZER)
}

pub(crate) fn check_paused(planner: &Planner<'_>) -> PlanResult<()> {
    let (host, previous) = (planner.host(), planner.facts.previous);
    if host.is_paused() && planner.rules.skip_paused() {
        return Err(Decision::WaitUnchanged(wait::on_user("the host is paused")));
    }
    if is_moving(host) && planner.rules.skip_moving() {
        return Err(Decision::WaitUnchanged(wait::on_user(
            "the host is moving to another cluster",
        )));
    }
    let Some(deleted) = &host.metadata.deletion_timestamp else {
        return Ok(());
    };
    let was_skipped = previous.paused || previous.moving;
    if !was_skipped || !planner.rules.grace_after_pause() {
        return Ok(());
    }
    // The clock of the API server may be ahead of this one, or behind.
    let passed = match planner.facts.deleted_for {
        Some(observed) => TimeDelta::from_std(observed).unwrap_or(TimeDelta::MAX),
        None => moment(deleted).map_or(GRACE, |at| planner.facts.now.get().signed_duration_since(at)),
    };
    let left = (GRACE - passed.min(GRACE)).to_std().unwrap_or_default();
    if !left.is_zero() {
        return Err(Decision::WaitUnchanged(wait::for_time(
            left,
            "the host was paused until its deletion",
        )));
    }
    if planner.facts.host_freshness < HostFreshness::Live {
        return Err(Decision::read(Read::Host));
    }
    Ok(())
}

/// The UUID of the host's node, from its status or from the saved status that is not restored yet.
pub(crate) fn recorded_node_id(host: &BareMetalHost) -> String {
    let id = &host.status.provisioning.id;
    let saved = || serde_json::from_str::<BareMetalHostStatus>(host.saved_status()?).ok();
    match saved().filter(|_| id.is_empty()) {
        Some(saved) => saved.provisioning.id,
        None => id.clone(),
    }
}

/// Adds missing fields: finalizer, architecture, external hardware details.
pub(crate) fn complete_object(planner: &mut Planner<'_>) -> PlanResult<()> {
    if planner.is_deleting() {
        return Ok(());
    }
    import_hardware_details(planner)?;
    let finalizers = planner.draft.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|one| one == HOST_FINALIZER) {
        finalizers.push(HOST_FINALIZER.to_owned());
    }
    let status = &planner.host().status;
    let known = status.hardware.as_ref().and_then(|hardware| hardware.cpu.as_ref());
    let known = known.and_then(|cpu| cpu.arch.clone()).filter(|arch| !arch.is_empty());
    let is_unset = |given: &Option<String>| given.as_deref().is_none_or(str::is_empty);
    if is_unset(&planner.draft.spec.architecture) && known.is_some() {
        planner.draft.spec.architecture = known;
    }
    if planner.draft.metadata == planner.host().metadata && planner.draft.spec == planner.host().spec {
        Ok(())
    } else {
        Err(Decision::Wait(Next::Requeue))
    }
}

/// Imports hardware details that a user supplies, or that a restored host lost, then removes the annotation.
fn import_hardware_details(planner: &mut Planner<'_>) -> PlanResult<()> {
    let disabled = planner.host().inspection_disabled();
    let text = planner.host().annotation(HARDWARE_DETAILS_ANNOTATION);
    let is_unset = planner.host().status.hardware.is_none();
    if !disabled && !is_unset {
        if text.is_some() {
            remove_annotation(planner, HARDWARE_DETAILS_ANNOTATION);
            planner.record_event(
                reason::REMOVE_ANNOTATION,
                "hardware details are already known; the annotation is ignored",
            );
        }
        return Ok(());
    }
    let recorded = match planner.facts.hardware_data {
        // The cache tells when it comes.
        Observed::Unknown(_) if !disabled && text.is_none() => return Ok(()),
        Observed::Unknown(_) => return Err(Decision::read(Read::HardwareData)),
        // differs: `host-hardware-data-own`. The garbage collector removes it, once this program has let it go.
        Observed::Present(data) if is_of_former_host(data, planner.uid) => {
            if data.metadata.deletion_timestamp.is_some() {
                release(planner, data);
            }
            None
        }
        Observed::Present(data) => data.spec.hardware.clone(),
        Observed::Absent => None,
    };
    let supplied = || text.map(parse).transpose();
    let wanted = match recorded {
        Some(details) => Some(details),
        None => supplied().map_err(|error| {
            Decision::reject(
                ErrorType::Inspection,
                format!("the annotation {HARDWARE_DETAILS_ANNOTATION} cannot be read: {error}; correct or remove it"),
            )
        })?,
    };
    if wanted.is_some() && wanted != planner.host().status.hardware {
        planner.draft.status.hardware = wanted;
        planner.record_event(reason::UPDATE_HARDWARE, "hardware details imported");
        return Err(Decision::Wait(Next::Requeue));
    }
    if text.is_some() {
        remove_annotation(planner, HARDWARE_DETAILS_ANNOTATION);
    }
    Ok(())
}

/// Whether the object is that of a deleted host of the same name. One without an owner is supplied by a user.
fn is_of_former_host(data: &HardwareData, uid: &str) -> bool {
    let mut owners = data.metadata.owner_references.iter().flatten();
    data.metadata.deletion_timestamp.is_some()
        || owners.any(|owner| owner.kind == BareMetalHost::KIND && owner.uid != uid)
}

fn parse(text: &str) -> Result<HardwareDetails, serde_json::Error> {
    serde_json::from_str(text)
}

pub(crate) fn remove_annotation(planner: &mut Planner<'_>, name: &str) {
    if let Some(annotations) = &mut planner.draft.metadata.annotations {
        annotations.remove(name);
    }
}

/// Creates the HardwareData or updates it in place.
pub(crate) fn record_hardware(planner: &mut Planner<'_>, details: &HardwareDetails) -> PlanResult<()> {
    match planner.facts.hardware_data {
        Observed::Unknown(_) => return Err(Decision::read(Read::HardwareData)),
        Observed::Absent => {
            let data = hardware_data(planner.host(), planner.uid, details);
            planner.add(Action::CreateHardwareData(Box::new(data)));
        }
        Observed::Present(data) if data.metadata.deletion_timestamp.is_some() => {
            release(planner, data);
            let mut finalizers = data.metadata.finalizers.iter().flatten();
            if finalizers.all(|finalizer| finalizer == HARDWARE_DATA_FINALIZER) {
                return Err(Decision::Wait(wait::on_user(
                    "the HardwareData of a former host is deleted",
                )));
            }
            return Err(Decision::reject(
                ErrorType::Inspection,
                "the HardwareData of a former host of this name is still being deleted; look at its finalizers. The inspection \
                 ends once it is gone",
            ));
        }
        Observed::Present(data) => {
            // differs: `host-hardware-data-in-place`. The Go manager deletes it and creates another.
            let mut wanted = data.clone();
            wanted.spec.hardware = Some(details.clone());
            if is_of_former_host(data, planner.uid) {
                wanted.metadata.owner_references = hardware_data(planner.host(), planner.uid, details)
                    .metadata
                    .owner_references;
            }
            change_hardware_data(planner, data, &wanted);
        }
    }
    Ok(())
}

pub(crate) fn release_hardware(planner: &mut Planner<'_>) -> PlanResult<()> {
    match planner.facts.hardware_data {
        Observed::Unknown(_) => return Err(Decision::read(Read::HardwareData)),
        Observed::Absent => {}
        Observed::Present(data) => release(planner, data),
    }
    Ok(())
}

/// Removes the finalizer, once in a plan: a second patch would not find the version of the first.
fn release(planner: &mut Planner<'_>, data: &HardwareData) {
    let is_patch = |action: &Action| matches!(action, Action::PatchHardwareData(_));
    if planner.actions.iter().any(is_patch) {
        return;
    }
    let mut wanted = data.clone();
    if let Some(finalizers) = &mut wanted.metadata.finalizers {
        finalizers.retain(|one| one != HARDWARE_DATA_FINALIZER);
    }
    change_hardware_data(planner, data, &wanted);
}

fn change_hardware_data(planner: &mut Planner<'_>, from: &HardwareData, to: &HardwareData) {
    let version = from.metadata.resource_version.as_deref();
    let version = version.and_then(|text| ResourceVersion::parse(text).ok());
    let patch = Changes::between(&document(from), &document(to)).main;
    if let (Some(patch), Some(version)) = (patch, version) {
        planner.add(Action::PatchHardwareData(patch.with_precondition(&version)));
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

/// A host without anything deployed owes nothing to a HostClaim that is not its consumer any more: what is deployed from now on is
/// cleaned as its spec says.
pub(crate) fn end_promise(planner: &mut Planner<'_>) {
    if let Some(text) = spent(planner.host()) {
        let annotations = planner.draft.metadata.annotations.get_or_insert_default();
        annotations.insert(CLAIM_RECORD_ANNOTATION.to_owned(), text);
    }
}
