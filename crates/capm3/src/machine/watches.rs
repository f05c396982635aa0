//! The machines to reconcile after a change of another object.
//!
//! A host that becomes available enqueues the machines of its namespace without a host, so nothing polls.

use std::collections::BTreeSet;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::names::{LABEL_PREFIXES_ANNOTATION, REUSE_AFTER_CLEANING_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3ClusterSpec, Metal3Data, Metal3DataTemplate, Metal3Machine, Metal3MachineTemplate,
};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState};
use metal3_capi::pause;
use metal3_runtime::cache::{Change, Key};

use crate::cluster::join::join_condition;
use crate::controller::caches::{ClusterIndexes, RelatedKeys, consumer, is_cluster_unchanged, old_and_new};

impl RelatedKeys {
    /// The machines to reconcile after a change of a host: its consumer, those that name it, and those without a host.
    pub(crate) fn machines_of_host(&self, change: &Change<'_, BareMetalHost>) -> BTreeSet<Key> {
        let mut keys: BTreeSet<Key> = old_and_new(change, consumer).into_iter().collect();
        let Some(host) = change.key() else { return keys };
        self.machines.read(|machines| {
            keys.extend(machines.by_host.get(&host).cloned());
            // An unreadable host may belong to any machine.
            if change.became_readable() || matches!(change, Change::Unreadable { .. }) {
                keys.extend(machines.by_namespace.get(&host.namespace).cloned());
            } else if !change.is_same(|old, new| claim_relevant_fields(old) == claim_relevant_fields(new)) {
                keys.extend(machines.without_host.get(&host.namespace).cloned());
            }
        });
        keys
    }

    /// The machines of a Cluster, when a relevant field changed.
    pub(crate) fn machines_of_cluster(&self, change: &Change<'_, Cluster>) -> Vec<Key> {
        if change.is_same(is_cluster_unchanged) {
            return Vec::new();
        }
        let Some(cluster) = change.key() else { return Vec::new() };
        self.machines
            .read(|machines| machines.by_cluster.get(&cluster).cloned().collect())
    }

    /// The machines that may belong to a Metal3Cluster, when a relevant field changed.
    pub(crate) fn machines_of_metal3_cluster(&self, change: &Change<'_, Metal3Cluster>) -> Vec<Key> {
        let Some(key) = change.key() else { return Vec::new() };
        if change.is_same(is_same_for_machines) {
            return Vec::new();
        }
        self.machines
            .read(|machines| machines.by_namespace.get(&key.namespace).cloned().collect())
    }

    /// The machines of the namespace, when a data template that a zone names appears, disappears, or changes between readable
    /// and not: those that take their data from a zone wait for it before they claim a host.
    pub(crate) fn machines_of_data_template(&self, change: &Change<'_, Metal3DataTemplate>) -> Vec<Key> {
        let Some(template) = change.key().filter(|_| !change.is_same(|_, _| true)) else {
            return Vec::new();
        };
        let zoned = |clusters: &ClusterIndexes| clusters.by_zone_template.get(&template).next().is_some();
        if !self.metal3_clusters.read(zoned) {
            return Vec::new();
        }
        self.machines
            .read(|machines| machines.by_namespace.get(&template.namespace).cloned().collect())
    }

    /// The machines created from a template, when a field changed that is copied to them; all machines of the namespace, when
    /// one changed that decides about the hosts of deleted machines.
    pub(crate) fn machines_of_template(&self, change: &Change<'_, Metal3MachineTemplate>) -> Vec<Key> {
        let copied = |one: &Metal3MachineTemplate| one.spec.template.spec.automated_cleaning_mode;
        let reuse = |one: &Metal3MachineTemplate| {
            let annotations = one.metadata.annotations.as_ref();
            let is_cleaned = annotations.is_some_and(|all| all.contains_key(REUSE_AFTER_CLEANING_ANNOTATION));
            (one.spec.node_reuse == Some(true)).then_some(is_cleaned)
        };
        let Some(template) = change.key() else {
            return Vec::new();
        };
        // One that appears with node reuse waits for nothing.
        let (is_new, asks) = (
            matches!(change, Change::Applied { old: None, .. }),
            old_and_new(change, reuse),
        );
        if !is_new && !asks.is_empty() && !change.is_same(|old, new| reuse(old) == reuse(new)) {
            return self
                .machines
                .read(|machines| machines.by_namespace.get(&template.namespace).cloned().collect());
        }
        if change.is_same(|old, new| copied(old) == copied(new)) {
            return Vec::new();
        }
        self.machines
            .read(|machines| machines.by_template.get(&template).cloned().collect())
    }
}

/// The fields that decide whether a machine can claim a host.
pub(crate) fn claim_relevant_fields(host: &BareMetalHost) -> impl PartialEq + '_ {
    let meta = &host.metadata;
    let state = matches!(
        host.status.provisioning.state,
        ProvisioningState::Available | ProvisioningState::Ready
    );
    let desired = (
        &host.spec.consumer_ref,
        &host.spec.image,
        &host.spec.custom_deploy,
        &host.spec.externally_provisioned,
    );
    let health = (host.status.operational_status, host.status.error_message.is_empty());
    (
        &meta.labels,
        &meta.annotations,
        meta.deletion_timestamp.is_some(),
        state,
        desired,
        health,
    )
}

/// Whether a Metal3Cluster is equal for machines, which do not use the endpoint and read two of the annotations.
fn is_same_for_machines(old: &Metal3Cluster, new: &Metal3Cluster) -> bool {
    let spec = |one: &Metal3Cluster| Metal3ClusterSpec {
        control_plane_endpoint: None,
        ..one.spec.clone()
    };
    let prefixes = |one: &Metal3Cluster| {
        let annotations = one.metadata.annotations.as_ref();
        annotations.and_then(|annotations| annotations.get(LABEL_PREFIXES_ANNOTATION).cloned())
    };
    // A machine without a host names the condition.
    let joins = |one: &Metal3Cluster| join_condition(one).map(|found| found.status);
    let is_skipped = |one: &Metal3Cluster| pause::is_reconcile_skipped(&one.metadata);
    let reads = |one: &Metal3Cluster| (is_skipped(one), prefixes(one), spec(one), joins(one));
    let (before, after) = (&old.metadata, &new.metadata);
    // Labels and owners decide which Cluster's machines it serves.
    (&before.labels, &before.owner_references) == (&after.labels, &after.owner_references) && reads(old) == reads(new)
}

/// The Metal3Machine that a Machine references.
pub(crate) fn machines_of_machine(change: &Change<'_, Machine>) -> Vec<Key> {
    old_and_new(change, |machine| {
        let reference = &machine.spec.infrastructure_ref;
        let is_metal3_machine = reference.kind == Metal3Machine::KIND && reference.api_group == Metal3Machine::GROUP;
        let namespace = machine.metadata.namespace.clone()?;
        is_metal3_machine.then(|| Key {
            namespace,
            name: reference.name.clone(),
        })
    })
}

/// The Metal3Machine of a Metal3Data: it has the name of the claim.
pub(crate) fn machines_of_data(change: &Change<'_, Metal3Data>) -> Vec<Key> {
    old_and_new(change, |data| {
        let name = data.spec.claim.as_ref()?.name.clone()?;
        Some(Key {
            namespace: data.metadata.namespace.clone()?,
            name,
        })
    })
}
