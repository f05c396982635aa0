//! Which host a claim gets. Pure.
//!
//! First a host that was kept for the claim's namespace and its value for reuse, then any; within each, one of its failure domain.
//! Among equals a digest of claim and host decides, so that claims that choose at the same time rarely choose the same.
//!
//! The choice is no bond: that is a write with the host's version as its precondition, after live reads.

use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;

use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::infrastructure::names::{LEGACY_UNHEALTHY_ANNOTATION, UNHEALTHY_ANNOTATION};
use metal3_api::metal3::names::{
    CLAIM_KEPT_ANNOTATION, CLAIM_RECORD_ANNOTATION, DETACHED_ANNOTATION, FAILURE_DOMAIN_LABEL, NODE_REUSE_LABEL,
    STATUS_ANNOTATION,
};
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostClaim, HostSelector, OperationalStatus, ProvisioningState};
use metal3_domain::selector::Selector;
use metal3_runtime::cache::Key;
use ring::digest::{SHA256, digest};

use super::bond;

/// The longest value of a label.
const LONGEST_LABEL: usize = 63;
/// How long a released host is kept for claims of its namespace: a claim that replaces another one is created within minutes, and a
/// tenant does not keep hosts that he gave back.
pub(super) const KEPT: TimeDelta = TimeDelta::hours(1);
/// More than the clocks of two processes differ.
const CLOCK_DIFFERENCE: TimeDelta = TimeDelta::minutes(10);
/// More conditions of a selector are not evaluated.
const MOST_CONDITIONS: usize = 100;
/// More values of all conditions together neither.
const MOST_VALUES: usize = 1000;
const MARKS: [&str; 5] = [
    DELETE_FOR_MOVE_ANNOTATION,
    DETACHED_ANNOTATION,
    STATUS_ANNOTATION,
    UNHEALTHY_ANNOTATION,
    LEGACY_UNHEALTHY_ANNOTATION,
];

/// Hexadecimal digits of a digest.
pub(super) fn hash(parts: &[&str]) -> String {
    let digest = digest(&SHA256, parts.join("\n").as_bytes());
    digest
        .as_ref()
        .iter()
        .take(20)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Whether nothing but its consumer speaks against giving the host to a claim: it runs nothing, and is in order.
pub(super) fn is_unused(host: &BareMetalHost) -> bool {
    let (spec, status) = (&host.spec, &host.status);
    let is_in_order = status.error_message.is_empty()
        && !matches!(
            status.operational_status,
            OperationalStatus::Detached | OperationalStatus::Error
        );
    let is_marked = host.is_paused() || MARKS.iter().any(|mark| host.annotation(mark).is_some());
    is_clean(host)
        && is_in_order
        && !is_marked
        && host.metadata.deletion_timestamp.is_none()
        && spec.externally_provisioned != Some(true)
        && spec.image.is_none()
        && spec.custom_deploy.is_none()
}

/// Whether the host is in a state in which nothing is deployed, or removed.
pub(super) fn is_clean(host: &BareMetalHost) -> bool {
    let state = &host.status.provisioning.state;
    matches!(state, ProvisioningState::Available | ProvisioningState::Ready) && is_empty(host)
}

/// Whether nothing is deployed on the host.
pub(super) fn is_empty(host: &BareMetalHost) -> bool {
    let provisioning = &host.status.provisioning;
    provisioning.image.url.is_empty() && provisioning.custom_deploy.is_none()
}

/// Whether the host may be bound to any claim: nothing of a former bond is left on it either.
pub(super) fn is_free(host: &BareMetalHost) -> bool {
    host.spec.consumer_ref.is_none() && is_unused(host) && !has_record(host)
}

fn has_record(host: &BareMetalHost) -> bool {
    host.annotation(CLAIM_RECORD_ANNOTATION).is_some()
}

/// Whether the host may be bound to this claim: it is free, or names the claim already, is in no use, and has no record of another
/// bond: a claim does not take over what another one of its name left.
pub(super) fn is_candidate(host: &BareMetalHost, claim: &Key) -> bool {
    is_free(host) || (bond::consumer(host).as_ref() == Some(claim) && is_unused(host) && !has_record(host))
}

/// Until when a host is kept for the claims of its label; `None`: it was not released by a claim.
pub(super) fn kept_until(host: &BareMetalHost) -> Option<DateTime<Utc>> {
    // A text that is no time has passed.
    let text = host.annotation(CLAIM_KEPT_ANNOTATION)?;
    Some(text.parse().unwrap_or(DateTime::<Utc>::UNIX_EPOCH))
}

/// Whether the host is not kept any more; one that the controllers of machines keep has no time.
pub(super) fn was_kept(host: &BareMetalHost, now: DateTime<Utc>) -> bool {
    // A time that is too far away was not written by this program.
    kept_until(host).is_some_and(|until| until <= now || until > now + KEPT + CLOCK_DIFFERENCE)
}

/// The label of hosts that are kept for claims of this namespace with the same value. A namespace contains no dot, and a digest
/// neither, so that two namespaces never have the same label.
pub(super) fn reuse_label(claim: &HostClaim, namespace: &str) -> Option<String> {
    let labels = claim.metadata.labels.as_ref()?;
    let value = labels.get(NODE_REUSE_LABEL).filter(|value| !value.is_empty())?;
    let plain = format!("{namespace}.{value}");
    Some(match plain.len() {
        0..=LONGEST_LABEL => plain,
        _ => hash(&[namespace, value]),
    })
}

/// Whether the host is in the only namespace that the claim accepts, if it names one.
pub(super) fn is_in_namespace(claim: &HostClaim, host: &BareMetalHost) -> bool {
    let selector = claim.spec.host_selector.as_ref();
    let only = selector.and_then(|selector| selector.in_namespace.as_deref());
    only.is_none_or(|only| only.is_empty() || host.metadata.namespace.as_deref() == Some(only))
}

/// Whether it takes too long to evaluate: it is evaluated at each step of each claim that waits.
fn is_too_large(selector: &HostSelector) -> bool {
    let values = selector.match_expressions.iter().map(|one| one.values.len());
    selector.match_expressions.len() + selector.match_labels.len() > MOST_CONDITIONS
        || values.sum::<usize>() > MOST_VALUES
}

/// What a claim asks for.
pub(super) struct Chooser<'a> {
    claim: &'a HostClaim,
    key: &'a Key,
    now: DateTime<Utc>,
    selector: Selector,
    reuse: Option<String>,
}

impl<'a> Chooser<'a> {
    /// `None`: the selector cannot be evaluated.
    pub(super) fn new(claim: &'a HostClaim, key: &'a Key, now: DateTime<Utc>) -> Option<Self> {
        let selector = match &claim.spec.host_selector {
            None => Selector::default(),
            Some(selector) if is_too_large(selector) => return None,
            Some(selector) => selector.parse().ok()?,
        };
        Some(Self {
            claim,
            key,
            now,
            selector,
            reuse: reuse_label(claim, &key.namespace),
        })
    }

    /// Whether the host is one that the claim asks for.
    pub(super) fn selects(&self, host: &BareMetalHost) -> bool {
        let kept = host.label(NODE_REUSE_LABEL);
        // A label without a time is that of a machine, whatever it says.
        let is_kept_for_this = kept == self.reuse.as_deref() && kept_until(host).is_some();
        let is_kept_for_another = kept.is_some() && !is_kept_for_this && !was_kept(host, self.now);
        let labels = host.metadata.labels.as_ref().unwrap_or(const { &BTreeMap::new() });
        !is_kept_for_another && is_in_namespace(self.claim, host) && self.selector.matches(labels)
    }

    /// The host to bind.
    pub(super) fn choose<'h>(&self, hosts: impl Iterator<Item = (&'h Key, &'h BareMetalHost)>) -> Option<&'h Key> {
        hosts
            .max_by_key(|(key, host)| self.weight(key, host))
            .map(|(key, _)| key)
    }

    fn weight(&self, key: &Key, host: &BareMetalHost) -> (bool, bool, bool, String) {
        let domain = self.claim.spec.failure_domain.as_deref();
        let domain = domain.filter(|domain| !domain.is_empty());
        let uid = self.claim.metadata.uid.as_deref().unwrap_or_default();
        (
            host.spec.consumer_ref.is_some(),
            host.label(NODE_REUSE_LABEL).is_some() && host.label(NODE_REUSE_LABEL) == self.reuse.as_deref(),
            domain.is_some() && host.label(FAILURE_DOMAIN_LABEL) == domain,
            hash(&[uid, &self.key.to_string(), &key.to_string()]),
        )
    }
}
