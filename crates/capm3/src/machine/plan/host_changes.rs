//! The changes of a host for each purpose. Only a claim changes its owners: see [`super::owners`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::names::{
    BLOCK_MOVE_ANNOTATION, HOST_PAUSED_ANNOTATION, HOST_PAUSED_BY_CAPM3, KEPT_BEFORE_ANNOTATION, NODE_REUSE_LABEL,
};
use metal3_api::infrastructure::v1beta2::{self, Metal3Machine, Metal3MachineSpec, Metal3MachineStatus};
use metal3_api::infrastructure::{ChecksumType, CleaningMode, DiskFormat};
use metal3_api::kind::Kind;
use metal3_api::meta::{ObjectReference, SecretReference};
use metal3_api::metal3::v1alpha1::{self as metal3, AutomatedCleaningMode, BareMetalHost, ProvisioningState};
use metal3_capi::owner::{self, label};

use super::owners::remove_owners;
use crate::machine::facts::is_provisioned;

pub(super) fn secret_reference(name: &str, namespace: &str) -> SecretReference {
    SecretReference {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
    }
}

fn annotate(host: &mut BareMetalHost, key: &str, value: &str) {
    let annotations = host.metadata.annotations.get_or_insert_default();
    annotations.insert(key.to_owned(), value.to_owned());
}

fn remove_annotation(host: &mut BareMetalHost, key: &str) {
    if let Some(annotations) = &mut host.metadata.annotations {
        annotations.remove(key);
    }
}

/// Sets the consumer. A move of the cluster is blocked until the host is paused.
pub(super) fn claim(host: &mut BareMetalHost, machine: &ObjectMeta, cluster: &str) {
    remove_owners(host);
    let labels = host.metadata.labels.get_or_insert_default();
    labels.insert(CLUSTER_NAME_LABEL.to_owned(), cluster.to_owned());
    if let Some(owner) = labels.remove(NODE_REUSE_LABEL) {
        // differs (`host-kept-before`): the Go manager keeps no record of the set.
        annotate(host, KEPT_BEFORE_ANNOTATION, &owner);
    }
    host.spec.consumer_ref = Some(ObjectReference {
        api_version: Some(Metal3Machine::group_version()),
        kind: Some(Metal3Machine::KIND.to_owned()),
        name: machine.name.clone(),
        namespace: machine.namespace.clone(),
        ..ObjectReference::default()
    });
    block_moves(host);
}

/// Writes image and data, once.
pub(super) fn provision(host: &mut BareMetalHost, desired: &Metal3MachineSpec, status: &Metal3MachineStatus) {
    host.spec.image = desired.image.as_ref().filter(|image| !image.url.is_empty()).map(image);
    let deploy = desired
        .custom_deploy
        .as_ref()
        .filter(|deploy| !deploy.method.is_empty());
    host.spec.custom_deploy = deploy.map(|deploy| metal3::CustomDeploy {
        method: deploy.method.clone(),
    });
    host.spec.user_data.clone_from(&status.user_data);
    host.spec.meta_data.clone_from(&status.meta_data);
    host.spec.network_data.clone_from(&status.network_data);
    host.spec.online = true;
    update(host, desired);
}

/// Writes what may change while the host is provisioned: the cleaning mode and the block on moves. Without an
/// image the claim may still be undone, and the host is then kept again.
pub(super) fn update(host: &mut BareMetalHost, desired: &Metal3MachineSpec) {
    set_cleaning_mode(host, desired.automated_cleaning_mode);
    if is_provisioned(host) {
        remove_annotation(host, KEPT_BEFORE_ANNOTATION);
    }
    block_moves(host);
}

fn set_cleaning_mode(host: &mut BareMetalHost, mode: Option<CleaningMode>) {
    if let Some(mode) = mode {
        host.spec.automated_cleaning_mode = Some(match mode {
            CleaningMode::Metadata => AutomatedCleaningMode::Metadata,
            CleaningMode::Disabled => AutomatedCleaningMode::Disabled,
        });
    }
}

fn block_moves(host: &mut BareMetalHost) {
    if !host.is_paused() {
        annotate(host, BLOCK_MOVE_ANNOTATION, "");
    }
}

// differs (`image-format-unset`): an unset format is omitted; the Go manager sends a value that the host schema
// rejects.
fn image(desired: &v1beta2::Image) -> metal3::Image {
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
        url: desired.url.clone(),
        checksum: desired.checksum.clone().filter(|checksum| !checksum.is_empty()),
        checksum_type: desired.checksum_type.and_then(of_type),
        format: desired.disk_format.and_then(format),
        ..metal3::Image::default()
    }
}

/// Pauses the host and saves its status in an annotation for `clusterctl move`. A pause by another controller is kept.
pub(super) fn pause(host: &mut BareMetalHost) {
    if !host.is_paused() {
        annotate(host, HOST_PAUSED_ANNOTATION, HOST_PAUSED_BY_CAPM3);
        host.save_status();
    }
    remove_annotation(host, BLOCK_MOVE_ANNOTATION);
}

/// Resumes the host, if this machine's cluster paused it.
pub(super) fn resume(host: &mut BareMetalHost, cluster: &str) {
    let is_paused_by_us = host.annotation(HOST_PAUSED_ANNOTATION) == Some(HOST_PAUSED_BY_CAPM3);
    if is_paused_by_us && label(&host.metadata, CLUSTER_NAME_LABEL) == Some(cluster) {
        remove_annotation(host, HOST_PAUSED_ANNOTATION);
        block_moves(host);
    }
}

/// Whether the host has an image or data of the machine.
pub(super) const fn is_used(host: &BareMetalHost) -> bool {
    let spec = &host.spec;
    let data = spec.user_data.is_some() || spec.meta_data.is_some() || spec.network_data.is_some();
    is_provisioned(host) || data
}

/// Removes image and data. The cleaning mode is written with it: it may have changed just before the deletion, and it
/// decides what happens to the disks.
pub(super) fn deprovision(host: &mut BareMetalHost, fast_track: bool, cleaning: Option<CleaningMode>) {
    set_cleaning_mode(host, cleaning);
    let spec = &mut host.spec;
    // differs (`released-host-data`): the Go manager leaves references to deleted Secrets.
    (spec.image, spec.custom_deploy) = (None, None);
    (spec.user_data, spec.meta_data, spec.network_data) = (None, None, None);
    let is_cleaned = spec.automated_cleaning_mode != Some(AutomatedCleaningMode::Disabled);
    spec.online = spec.disable_power_off == Some(true) || (fast_track && is_cleaned);
}

/// Whether no operation is in progress on the host, so that it can be released.
pub(super) fn is_idle(host: &BareMetalHost) -> bool {
    match host.status.provisioning.state {
        // After a move the annotation is not read yet: the host may be provisioned.
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

/// The set that a released host is kept for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kept {
    /// The value of the label.
    pub(super) owner: String,
    /// The Cluster, the consumer of the host: owners of the same name may belong to two Clusters.
    pub(super) cluster: String,
    pub(super) namespace: String,
}

/// The set that a claimed host was kept for before the claim, when it got no image since.
pub(super) fn kept_before(host: &BareMetalHost) -> Option<Kept> {
    Some(Kept {
        owner: host.annotation(KEPT_BEFORE_ANNOTATION)?.to_owned(),
        cluster: owner::cluster_of(&host.metadata)?.to_owned(),
        namespace: host.metadata.namespace.clone()?,
    })
}

/// Removes the consumer. The host of a set that reuses its hosts gets its label in the same write, and the Cluster as
/// consumer.
pub(super) fn release(host: &mut BareMetalHost, cluster: &str, kept: Option<&Kept>) {
    remove_annotation(host, KEPT_BEFORE_ANNOTATION);
    host.spec.consumer_ref = kept.map(|kept| ObjectReference {
        api_version: Some(Cluster::group_version()),
        kind: Some(Cluster::KIND.to_owned()),
        name: Some(kept.cluster.clone()),
        namespace: Some(kept.namespace.clone()),
        ..ObjectReference::default()
    });
    if let Some(kept) = kept {
        let labels = host.metadata.labels.get_or_insert_default();
        labels.insert(NODE_REUSE_LABEL.to_owned(), kept.owner.clone());
    }
    if label(&host.metadata, CLUSTER_NAME_LABEL) == Some(cluster)
        && let Some(labels) = &mut host.metadata.labels
    {
        labels.remove(CLUSTER_NAME_LABEL);
    }
    if host.annotation(HOST_PAUSED_ANNOTATION) == Some(HOST_PAUSED_BY_CAPM3) {
        remove_annotation(host, HOST_PAUSED_ANNOTATION);
    }
    // differs (`released-host-moves`): the Go manager leaves it, and it blocks later moves for ever.
    remove_annotation(host, BLOCK_MOVE_ANNOTATION);
}
