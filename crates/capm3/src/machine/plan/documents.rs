//! What a host is to look like after each deed, and how that is said to the server.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::names::{
    BLOCK_MOVE_ANNOTATION, HOST_PAUSED_ANNOTATION, HOST_PAUSED_BY_US, HOST_STATUS_ANNOTATION, NODE_REUSE_LABEL,
};
use metal3_api::infrastructure::v1beta2::{self, Metal3Machine, Metal3MachineSpec, Metal3MachineStatus};
use metal3_api::infrastructure::{ChecksumType, CleaningMode, DiskFormat};
use metal3_api::kind::Kind;
use metal3_api::meta::{ObjectReference, SecretReference};
use metal3_api::metal3::v1alpha1::{self as metal3, AutomatedCleaningMode, BareMetalHost, ProvisioningState};
use metal3_capi::owner::label;
use serde_json::Value;

/// A Secret beside the machine.
pub(super) fn secret(name: &str, namespace: &str) -> SecretReference {
    SecretReference {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
    }
}

fn annotate(host: &mut BareMetalHost, key: &str, value: &str) {
    let annotations = host.metadata.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value.to_owned());
}

fn strip(host: &mut BareMetalHost, key: &str) {
    if let Some(annotations) = &mut host.metadata.annotations {
        annotations.remove(key);
    }
}

/// The host gets a consumer. A move of its cluster waits for its pause from now on.
pub(super) fn claim(host: &mut BareMetalHost, machine: &ObjectMeta, cluster: &str) {
    let labels = host.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.to_owned());
    labels.remove(NODE_REUSE_LABEL);
    host.spec.consumer_ref = Some(ObjectReference {
        api_version: Some(Metal3Machine::group_version()),
        kind: Some(Metal3Machine::KIND.to_owned()),
        name: machine.name.clone(),
        namespace: machine.namespace.clone(),
        ..ObjectReference::default()
    });
    hold_moves(host);
}

/// The host is told everything that it will ever be told.
pub(super) fn provision(host: &mut BareMetalHost, wanted: &Metal3MachineSpec, status: &Metal3MachineStatus) {
    host.spec.image = wanted.image.as_ref().filter(|image| !image.url.is_empty()).map(image);
    let deploy = wanted.custom_deploy.as_ref().filter(|deploy| !deploy.method.is_empty());
    host.spec.custom_deploy = deploy.map(|deploy| metal3::CustomDeploy {
        method: deploy.method.clone(),
    });
    host.spec.user_data.clone_from(&status.user_data);
    host.spec.meta_data.clone_from(&status.meta_data);
    host.spec.network_data.clone_from(&status.network_data);
    host.spec.online = true;
    keep(host, wanted);
}

/// What may change while the host is used: how its disks are wiped afterwards, and that moves wait for its pause.
pub(super) fn keep(host: &mut BareMetalHost, wanted: &Metal3MachineSpec) {
    if let Some(mode) = wanted.automated_cleaning_mode {
        host.spec.automated_cleaning_mode = Some(match mode {
            CleaningMode::Metadata => AutomatedCleaningMode::Metadata,
            CleaningMode::Disabled => AutomatedCleaningMode::Disabled,
        });
    }
    hold_moves(host);
}

fn hold_moves(host: &mut BareMetalHost) {
    if !host.is_paused() {
        annotate(host, BLOCK_MOVE_ANNOTATION, "");
    }
}

// differs (`image-format-unset`): where no format is stated none is sent; the Go manager sends one that no host takes.
fn image(wanted: &v1beta2::Image) -> metal3::Image {
    let of_type = |of_type| match of_type {
        ChecksumType::Unset => None,
        ChecksumType::Md5 => Some(metal3::ChecksumType::Md5),
        ChecksumType::Sha256 => Some(metal3::ChecksumType::Sha256),
        ChecksumType::Sha512 => Some(metal3::ChecksumType::Sha512),
    };
    let format = |format| match format {
        DiskFormat::Unset => None,
        DiskFormat::Raw => Some(metal3::DiskFormat::Raw),
        DiskFormat::Qcow2 => Some(metal3::DiskFormat::Qcow2),
        DiskFormat::Vdi => Some(metal3::DiskFormat::Vdi),
        DiskFormat::Vmdk => Some(metal3::DiskFormat::Vmdk),
        DiskFormat::LiveIso => Some(metal3::DiskFormat::LiveIso),
    };
    metal3::Image {
        url: wanted.url.clone(),
        checksum: wanted.checksum.clone().filter(|checksum| !checksum.is_empty()),
        checksum_type: wanted.checksum_type.and_then(of_type),
        format: wanted.disk_format.and_then(format),
        ..metal3::Image::default()
    }
}

/// Whether the host was told to run something.
pub(super) const fn runs(host: &BareMetalHost) -> bool {
    host.spec.image.is_some() || host.spec.custom_deploy.is_some()
}

/// The host's controller stops, and its status is kept for where the host goes. Somebody else's pause is left alone.
pub(super) fn pause(host: &mut BareMetalHost) {
    if !host.is_paused() {
        let mut status = serde_json::to_value(&host.status).unwrap_or(Value::Null);
        if let Some(members) = status.as_object_mut() {
            members.remove("hardware");
        }
        annotate(host, HOST_PAUSED_ANNOTATION, HOST_PAUSED_BY_US);
        // A host without status that brings one along has come by a move, and nobody has read what it brought yet.
        let has_come = host.status.provisioning.state == ProvisioningState::None;
        if !has_come || host.annotation(HOST_STATUS_ANNOTATION).is_none() {
            annotate(host, HOST_STATUS_ANNOTATION, &status.to_string());
        }
    }
    strip(host, BLOCK_MOVE_ANNOTATION);
}

/// The host's controller goes on, if the machine's cluster stopped it.
pub(super) fn resume(host: &mut BareMetalHost, cluster: &str) {
    let is_ours = host.annotation(HOST_PAUSED_ANNOTATION) == Some(HOST_PAUSED_BY_US);
    if is_ours && label(&host.metadata, CLUSTER_NAME_LABEL) == Some(cluster) {
        strip(host, HOST_PAUSED_ANNOTATION);
        hold_moves(host);
    }
}

/// Whether anything of the machine is left on the host.
pub(in crate::machine) const fn is_used(host: &BareMetalHost) -> bool {
    let spec = &host.spec;
    let data = spec.user_data.is_some() || spec.meta_data.is_some() || spec.network_data.is_some();
    runs(host) || data
}

/// What the host ran is removed.
pub(super) fn deprovision(host: &mut BareMetalHost, fast_track: bool) {
    let spec = &mut host.spec;
    // differs (`released-host-data`): the Go manager leaves references to Secrets that are gone.
    (spec.image, spec.custom_deploy) = (None, None);
    (spec.user_data, spec.meta_data, spec.network_data) = (None, None, None);
    let is_cleaned = spec.automated_cleaning_mode != Some(AutomatedCleaningMode::Disabled);
    spec.online = spec.disable_power_off == Some(true) || (fast_track && is_cleaned);
}

/// Whether the host has come to rest, so that it can be given back.
pub(in crate::machine) fn is_at_rest(host: &BareMetalHost) -> bool {
    match host.status.provisioning.state {
        // What it brought by a move has not been read yet: it may run.
        ProvisioningState::None => host.saved_status().is_none(),
        ProvisioningState::Unmanaged
        | ProvisioningState::Registering
        | ProvisioningState::MatchProfile
        | ProvisioningState::Inspecting
        | ProvisioningState::Ready
        | ProvisioningState::Available => true,
        ProvisioningState::ExternallyProvisioned => !host.status.powered_on,
        ProvisioningState::Preparing
        | ProvisioningState::Provisioning
        | ProvisioningState::Provisioned
        | ProvisioningState::Deprovisioning
        | ProvisioningState::PoweringOffBeforeDelete
        | ProvisioningState::Deleting
        | ProvisioningState::Other(_) => false,
    }
}

/// The host has no consumer any more.
pub(in crate::machine) fn release(host: &mut BareMetalHost, cluster: &str) {
    host.spec.consumer_ref = None;
    if label(&host.metadata, CLUSTER_NAME_LABEL) == Some(cluster)
        && let Some(labels) = &mut host.metadata.labels
    {
        labels.remove(CLUSTER_NAME_LABEL);
    }
    if host.annotation(HOST_PAUSED_ANNOTATION) == Some(HOST_PAUSED_BY_US) {
        strip(host, HOST_PAUSED_ANNOTATION);
    }
    // differs (`released-host-moves`): on a free host it would hold a later move for ever.
    strip(host, BLOCK_MOVE_ANNOTATION);
}
