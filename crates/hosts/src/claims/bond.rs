//! What binds a host to a claim, and what was promised then. Pure.
//!
//! The consumer of a host says whose it is, and permits nothing: permission is a HostDeployPolicy. The record in an
//! annotation of the host exists only where this program bound it after it had read one. It keeps whether the host is
//! cleaned: what its owner decided before the claim had it holds until it is released.

use metal3_api::kind::Kind as _;
use metal3_api::meta::{ObjectReference, Time};
use metal3_api::metal3::names::{CLAIM_RECORD_ANNOTATION, GROUP};
use metal3_api::metal3::v1alpha1::{AutomatedCleaningMode, BareMetalHost, HostClaim};
use metal3_domain::names::{Namespace, ObjectName};
use metal3_runtime::cache::Key;
use serde::{Deserialize, Serialize};

/// Whether the disks of the host are cleaned when it is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cleaning {
    Metadata,
    Disabled,
}

/// What was recorded when the host was bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Namespace and name of the claim.
    pub(crate) claim: String,
    pub(crate) cleaning: Cleaning,
    /// When it was bound.
    pub(crate) at: Time,
    /// The last reboot that was passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reboot: Option<String>,
}

impl Record {
    /// For a host that is bound now.
    pub(crate) fn new(claim: &Key, host: &BareMetalHost, now: Time) -> Self {
        let is_disabled = host.spec.automated_cleaning_mode == Some(AutomatedCleaningMode::Disabled);
        Self {
            claim: claim.to_string(),
            cleaning: if is_disabled {
                Cleaning::Disabled
            } else {
                Cleaning::Metadata
            },
            at: now,
            reboot: None,
        }
    }

    /// The record of a host; `None`: there is none, or it cannot be read.
    pub(crate) fn of(host: &BareMetalHost) -> Option<Self> {
        serde_json::from_str(host.annotation(CLAIM_RECORD_ANNOTATION)?).ok()
    }

    /// The record of a host that is bound to this claim.
    pub(crate) fn of_bond(host: &BareMetalHost, claim: &Key) -> Option<Self> {
        let is_bound = consumer(host).as_ref() == Some(claim);
        Self::of(host).filter(|record| is_bound && record.claim == claim.to_string())
    }

    /// Writes it to a host.
    pub(crate) fn write(&self, host: &mut BareMetalHost) {
        // Text, two words and a time.
        let text = serde_json::to_string(self).unwrap_or_default();
        let annotations = host.metadata.annotations.get_or_insert_default();
        annotations.insert(CLAIM_RECORD_ANNOTATION.to_owned(), text);
    }
}

/// Whether a host with a record is cleaned, whatever its spec says today. A record that cannot be read promises it.
pub(crate) fn promises_cleaning(host: &BareMetalHost) -> bool {
    let has_record = host.annotation(CLAIM_RECORD_ANNOTATION).is_some();
    has_record && Record::of(host).is_none_or(|record| record.cleaning == Cleaning::Metadata)
}

/// The claim that is the consumer of a host. Anyone who may write hosts writes this text, so it is no key unless both names
/// are valid.
pub(crate) fn consumer(host: &BareMetalHost) -> Option<Key> {
    let consumer = host.spec.consumer_ref.as_ref()?;
    let group = consumer.api_version.as_deref()?.split_once('/')?.0;
    if consumer.kind.as_deref() != Some(HostClaim::KIND) || group != GROUP {
        return None;
    }
    key(consumer.namespace.as_deref()?, consumer.name.as_deref()?)
}

/// A key of two names that some object contains; `None` if one is no valid name.
pub(crate) fn key(namespace: &str, name: &str) -> Option<Key> {
    Some(Key {
        namespace: Namespace::parse(namespace).ok()?.to_string(),
        name: ObjectName::parse(name).ok()?.to_string(),
    })
}

/// The reference that makes a claim the consumer.
pub(super) fn reference(claim: &Key) -> ObjectReference {
    ObjectReference {
        kind: Some(HostClaim::KIND.to_owned()),
        api_version: Some(HostClaim::group_version()),
        name: Some(claim.name.clone()),
        namespace: Some(claim.namespace.clone()),
        ..ObjectReference::default()
    }
}
