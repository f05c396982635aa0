//! The rules of the way back to Go managers.

mod ironics;
mod machines;
mod members;

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::IPAddressClaim;
use metal3_api::infrastructure::names::{BLOCK_MOVE_ANNOTATION, CLUSTER_FINALIZER, NODE_REUSE_LABEL};
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::kind::Kind;
use metal3_api::meta::ConditionStatus;
use metal3_api::metal3::names::SUBSCRIPTION_RECORD_ANNOTATION;
use metal3_api::metal3::v1alpha1::{
    BMCEventSubscription, BareMetalHost, HostClaim, HostFirmwareComponents, HostFirmwareSettings,
};
use serde_json::Value;

use crate::facts::Facts;
use crate::finding::{Decision, Finding, NotRead};
use crate::hosts;
use crate::managers::{Manager, Series};
use crate::objects::{KindName, Objects, name, named};

/// The first release that knows the block on moves, and a Cluster as the consumer of a kept host.
const KNOWS_BLOCKS: Series = Series::new(1, 14);
/// The first release with `v1beta2`.
const HAS_V1BETA2: Series = Series::new(1, 13);
/// Nothing answers these webhooks after the program was scaled to 0, and the API server rejects the writes of `hand-back`.
const HAND_BACK: &str = "capm3 hand-back removes it, after this program was scaled to 0 and its webhooks of hosts and addresses \
    were deleted: kubectl delete --ignore-not-found \
    validatingwebhookconfiguration/baremetal-operator-validating-webhook-configuration \
    validatingwebhookconfiguration/ipam-validating-webhook-configuration \
    mutatingwebhookconfiguration/ipam-mutating-webhook-configuration";

/// The same for those of machines.
const OWNERS: &str = "capm3 hand-back gives them the older version, after this program was scaled to 0, objects are stored in the \
    older version, and the webhooks of machines were deleted: kubectl delete --ignore-not-found \
    validatingwebhookconfiguration/capm3-validating-webhook-configuration \
    mutatingwebhookconfiguration/capm3-mutating-webhook-configuration";

/// The controllers of Cluster API that watch objects of machines, by the names that its release has.
const RESTART: &str = "after that release is installed: kubectl -n capi-system rollout restart deployment capi-controller-manager; \
    kubectl -n capi-kubeadm-control-plane-system rollout restart deployment capi-kubeadm-control-plane-controller-manager";

pub(crate) fn findings(facts: &Facts, managers: &[Manager], to: Series) -> Vec<Finding> {
    let objects = &facts.objects;
    let mut findings = Vec::new();
    findings.extend(stored_versions(facts, to));
    findings.extend(watched_version(facts, to));
    findings.extend(owners(objects, to));
    findings.extend(machines::findings(objects, to));
    findings.extend(members::dropped(objects, to));
    findings.extend(hosts::of_way_back(facts));
    findings.extend(ironics::findings(objects));
    findings.extend(blocked_or_kept(objects, to));
    findings.extend(claims::<IPClaim>(objects));
    findings.extend(claims::<IPAddressClaim>(objects));
    findings.extend(firmware(objects));
    findings.extend(subscriptions(objects));
    findings.extend(open_updates(objects));
    findings.extend(claimed(objects));
    if facts.are_listed("deployments") && !managers.iter().any(|manager| manager.is_this_program) {
        let what = "this program was not found by the names that its release has";
        findings.push(Finding::new(Decision::Go, "Deployments", what, ""));
    }
    findings
}

/// HostClaims: the Go manager binds hosts only.
fn claimed(objects: &Objects) -> impl Iterator<Item = Finding> {
    objects.documents::<HostClaim>().iter().map(|document| {
        let what = "is served by the Go manager with its flag --hostclaims, since 0.13, which gives the host nothing of the claim and does not \
                    deprovision it at the release: what runs stays on the disk";
        let cure = "start the Go manager with --hostclaims; delete claims that shall end before, while this program runs";
        Finding::new(Decision::Go, name::<HostClaim>(document), what, cure).row("claim-cleaning")
    })
}

/// Objects that the rules of the way back could not be applied to.
pub(crate) fn not_decoded(objects: &Objects) -> Vec<NotRead> {
    let mut not_read = objects.not_decoded::<BareMetalHost>();
    not_read.extend(objects.not_decoded::<Metal3Machine>());
    not_read.extend(objects.not_decoded::<Metal3Remediation>());
    not_read.extend(objects.not_decoded::<HostFirmwareSettings>());
    not_read.extend(objects.not_decoded::<HostFirmwareComponents>());
    not_read.extend(objects.not_decoded::<BMCEventSubscription>());
    not_read.extend(objects.not_decoded::<IPClaim>());
    not_read.extend(objects.not_decoded::<IPAddressClaim>());
    not_read
}

/// An older release has no version in which objects are stored now.
fn stored_versions(facts: &Facts, to: Series) -> Option<Finding> {
    if to >= HAS_V1BETA2 {
        return None;
    }
    let suffix = format!(".{}", Metal3Machine::GROUP);
    let is_newer = |version: &String| version == Metal3Machine::VERSION;
    let mut crds = facts.crds.iter().filter(|crd| crd.name.ends_with(&suffix));
    let stored = crds.find(|crd| crd.stored.iter().any(is_newer))?;
    let what = format!(
        "objects may be stored as {}, which release {to} does not have",
        Metal3Machine::VERSION
    );
    let cure = format!("go to {HAS_V1BETA2} or later; docs/migration.md has the long way");
    Some(Finding::new(
        Decision::No,
        format!("CustomResourceDefinition {}", stored.name),
        what,
        cure,
    ))
}

/// Cluster API goes on watching the version that it found first, and learns nothing from it when it is served no more.
fn watched_version(facts: &Facts, to: Series) -> Option<Finding> {
    let suffix = format!(".{}", Metal3Machine::GROUP);
    if to >= HAS_V1BETA2 || !facts.crds.iter().any(|crd| crd.name.ends_with(&suffix)) {
        return None;
    }
    let what = format!(
        "watch machines as {}, which release {to} does not serve: until they are restarted, a Machine whose Metal3Machine has ended \
         may stay for minutes",
        Metal3Machine::VERSION
    );
    Some(Finding::new(Decision::Go, "Deployments of Cluster API", what, RESTART))
}

/// The garbage collector deletes no object one of whose owners is of a version that is not served.
fn owners(objects: &Objects, to: Series) -> Option<Finding> {
    if to >= HAS_V1BETA2 {
        return None;
    }
    let newer = Metal3Machine::group_version();
    let has_newer = |document: &&Value| {
        let owners = document.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.into_iter().flatten().any(|owner| owner["apiVersion"] == newer)
    };
    let of_kind = |(kind, documents): (&KindName, &Vec<Value>)| -> Vec<String> {
        let owned = documents.iter().filter(has_newer);
        owned.map(|document| named(kind.kind, document)).collect()
    };
    let owned: BTreeSet<String> = objects.iter().flat_map(of_kind).collect();
    let first = owned.first()?;
    let what = format!(
        "{} of them, as that of {first}, and those of the Secrets of machines are of {newer}, which release {to} does not serve: \
         an object with such an owner is not deleted with it",
        owned.len()
    );
    Some(Finding::new(Decision::Go, "owner references", what, OWNERS))
}

fn blocked_or_kept(objects: &Objects, to: Series) -> Vec<Finding> {
    let mut findings = Vec::new();
    if to >= KNOWS_BLOCKS {
        return findings;
    }
    for (name, host) in objects.of::<BareMetalHost>() {
        if host.annotation(BLOCK_MOVE_ANNOTATION).is_some() {
            let what = format!("has the annotation {BLOCK_MOVE_ANNOTATION}, and release {to} never removes it");
            let consumer = host
                .spec
                .consumer_ref
                .as_ref()
                .and_then(|consumer| consumer.kind.as_deref());
            // Another program may have set it for a consumer of its own.
            let by_hand = format!(
                "kubectl annotate bmh --namespace {} {} {BLOCK_MOVE_ANNOTATION}-",
                host.metadata.namespace.as_deref().unwrap_or_default(),
                host.metadata.name.as_deref().unwrap_or_default()
            );
            let cure = match consumer == Some(Metal3Machine::KIND) {
                true => HAND_BACK,
                false => &by_hand,
            };
            findings.push(Finding::new(Decision::Go, &name, what, cure));
        }
        let is_kept = host
            .metadata
            .labels
            .as_ref()
            .is_some_and(|all| all.contains_key(NODE_REUSE_LABEL));
        let consumer = host.spec.consumer_ref.as_ref();
        if is_kept && consumer.is_some_and(|consumer| consumer.kind.as_deref() == Some("Cluster")) {
            let what =
                format!("is kept for a set of machines; release {to} skips it, because a Cluster is its consumer");
            let cure = "finish the roll-outs, or remove the consumers of the kept hosts while no manager runs";
            findings.push(Finding::new(Decision::No, name, what, cure).row("host-kept-choice"));
        }
    }
    findings
}

/// Claims on the address of an endpoint, whose finalizer no Go manager removes.
fn claims<K: Kind>(objects: &Objects) -> Vec<Finding> {
    let is_held = |meta: &ObjectMeta| meta.finalizers.iter().flatten().any(|one| one == CLUSTER_FINALIZER);
    let mut findings = Vec::new();
    for (name, claim) in objects.of::<K>().filter(|(_, claim)| is_held(claim.meta())) {
        let finding = if claim.meta().deletion_timestamp.is_some() {
            let what = "is being deleted, and its address may be the endpoint of a Cluster that is in use";
            let cure = "wait until it is gone, or remove the finalizer yourself when the address is not in use";
            Finding::new(Decision::Wait, name, what, cure)
        } else {
            let what = format!("has the finalizer {CLUSTER_FINALIZER}, which no Go manager removes");
            Finding::new(Decision::Go, name, what, HAND_BACK)
        };
        findings.push(finding);
    }
    findings
}

/// Hosts that this program has registered have no objects about firmware, unless a user made them.
fn firmware(objects: &Objects) -> Vec<Finding> {
    let settings = hosts_with::<HostFirmwareSettings>(objects);
    let components = hosts_with::<HostFirmwareComponents>(objects);
    let finding = |(name, _): (String, BareMetalHost)| {
        let host = name.strip_prefix(BareMetalHost::KIND)?;
        let missing = match (settings.contains(host), components.contains(host)) {
            (true, true) => return None,
            (false, true) => "HostFirmwareSettings",
            (true, false) => "HostFirmwareComponents",
            (false, false) => "HostFirmwareSettings and no HostFirmwareComponents",
        };
        let what = format!(
            "has no {missing}: this program creates none, and a Go manager creates them at its first look at the host"
        );
        Some(Finding::new(Decision::Go, name, what, "").row("firmware-settings-on-demand"))
    };
    objects.of::<BareMetalHost>().filter_map(finding).collect()
}

/// The hosts that have an object of this kind, which has their name.
fn hosts_with<K: Kind>(objects: &Objects) -> BTreeSet<String> {
    let host = |(name, _): (String, K)| name.strip_prefix(K::KIND).map(str::to_owned);
    objects.of::<K>().filter_map(host).collect()
}

/// The webhook of the Go manager rejects each update of a subscription with headers, and its finalizer stays.
fn subscriptions(objects: &Objects) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, subscription) in objects.of::<BMCEventSubscription>() {
        let is_created = subscription.status.subscription_id.is_some();
        let annotations = subscription.metadata.annotations.as_ref();
        let is_recorded = annotations.is_some_and(|all| all.contains_key(SUBSCRIPTION_RECORD_ANNOTATION));
        if subscription.spec.http_headers_ref.is_some() {
            let what = "has HTTP headers, and the webhook of the Go manager rejects the removal of its finalizer";
            let cure = "delete it before the switch";
            findings.push(Finding::new(Decision::No, name, what, cure).row("subscription-with-headers"));
        } else if is_recorded && !is_created {
            let what = "is being created, and a Go manager creates another one instead of looking for it in the BMC";
            let cure = "wait until status.subscriptionID is set, or delete it before the switch";
            findings.push(Finding::new(Decision::Wait, name, what, cure).row("subscription-created-once"));
        }
    }
    findings
}

/// A Go manager takes each update for made that is recorded, and does not read the condition. The update of a paused host does not end.
fn open_updates(objects: &Objects) -> Vec<Finding> {
    let hosts = objects
        .of::<BareMetalHost>()
        .filter(|(_, host)| hosts::stays_paused(host));
    let paused: BTreeSet<_> = hosts
        .map(|(_, host)| (host.metadata.namespace, host.metadata.name))
        .collect();
    let is_paused = |object: &HostFirmwareComponents| {
        let meta = &object.metadata;
        paused.contains(&(meta.namespace.clone(), meta.name.clone()))
    };
    let is_open = |object: &HostFirmwareComponents| {
        let mut conditions = object.status.conditions.iter();
        conditions.any(|condition| condition.type_ == "Updating" && condition.status == ConditionStatus::True)
    };
    let open = objects
        .of::<HostFirmwareComponents>()
        .filter(|(_, object)| is_open(object));
    let finding = |(name, object): (String, HostFirmwareComponents)| {
        let what = "updates of its firmware are ordered and have not ended; a Go manager takes them for made, also those that fail";
        let cure =
            "wait until their condition Updating is False, while this program runs, or take them off status.updates";
        let decision = if is_paused(&object) {
            Decision::Go
        } else {
            Decision::Wait
        };
        Finding::new(decision, name, what, cure).row("firmware-order-recorded")
    };
    open.map(finding).collect()
}
