//! What binds a host to a claim, and what was promised then. Pure.
//!
//! The consumer of a host says whose it is, and permits nothing: permission is a HostDeployPolicy. A bond is an identifier on both
//! sides: the *trace* in an annotation of the claim names the host, and is written before the host is; the *record* in an annotation
//! of the host names the claim. Who writes hosts writes records, and who writes claims writes traces, so that one without the other
//! binds nothing. Both sides name each other by name, so that a bond survives a move or a restoration, which change UIDs.
//!
//! The record keeps whether the host is cleaned: what its owner decided before the claim had it holds until it is released, and ends
//! with the bond: another consumer's disks are cleaned as the spec says.

use metal3_api::kind::Kind as _;
use metal3_api::meta::{ObjectReference, Time};
use metal3_api::metal3::names::{CLAIM_RECORD_ANNOTATION, CLAIM_TRACE_ANNOTATION, GROUP};
use metal3_api::metal3::v1alpha1::{AutomatedCleaningMode, BareMetalHost, HostClaim};
use metal3_domain::names::{Namespace, ObjectName};
use metal3_runtime::cache::Key;
use serde::{Deserialize, Serialize};

use super::choice::{hash, is_clean, kept_until};

/// How long an identifier is.
const DIGITS: usize = 40;
/// A longer text is no trace: four names and an identifier are shorter.
const LONGEST_TRACE: usize = 2048;

/// Whether a text is an identifier of this program. A host gets that of its claim, so that a text of a tenant may be nothing else.
fn is_id(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether the disks of the host are cleaned when it is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cleaning {
    Metadata,
    Disabled,
}

/// What a claim has of its bond.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Trace {
    /// Namespace and name of the claim: a claim that was made from the text of another one has none.
    claim: String,
    /// Namespace and name of the host.
    host: String,
    /// The identifier, which the record repeats.
    pub(super) id: String,
    /// The UID of the claim when the host was chosen. A move or a restoration changes it.
    uid: String,
}

impl Trace {
    /// For a host that is bound next. A claim keeps its identifier, so that what an overtaken process binds is recognized.
    pub(super) fn new(claim: &HostClaim, key: &Key, host: (&Key, &BareMetalHost)) -> Self {
        let uid = uid(claim);
        let former = Self::of(claim, key).filter(|former| former.uid == uid);
        let version = claim.metadata.resource_version.as_deref().unwrap_or_default();
        let of_host = host.1.metadata.uid.as_deref().unwrap_or_default();
        let fresh = || hash(&[uid, version, &host.0.to_string(), of_host]);
        Self {
            claim: key.to_string(),
            host: host.0.to_string(),
            id: former.map_or_else(fresh, |former| former.id),
            uid: uid.to_owned(),
        }
    }

    /// The one that a record of the same claim shows was lost.
    fn recovered(record: &Record, host: &Key) -> Self {
        Self {
            claim: record.claim.clone(),
            host: host.to_string(),
            id: record.id.clone(),
            uid: record.uid.clone(),
        }
    }

    /// The trace of a claim; `None`: there is none, or it is none of this claim.
    pub(super) fn of(claim: &HostClaim, key: &Key) -> Option<Self> {
        let text = claim.metadata.annotations.as_ref()?.get(CLAIM_TRACE_ANNOTATION)?;
        let found: Self = serde_json::from_str(text)
            .ok()
            .filter(|_| text.len() <= LONGEST_TRACE)?;
        (found.claim == key.to_string() && is_id(&found.id) && found.host().is_some()).then_some(found)
    }

    /// The host that it names.
    pub(super) fn host(&self) -> Option<Key> {
        let (namespace, name) = self.host.split_once('/')?;
        self::key(namespace, name)
    }

    /// Whether the host was chosen for this object, which was neither moved nor restored since.
    pub(super) fn is_of_object(&self, claim: &HostClaim) -> bool {
        self.uid == uid(claim)
    }

    /// Writes it to the claim.
    pub(super) fn write(&self, claim: &mut HostClaim) {
        // Four texts.
        let text = serde_json::to_string(self).unwrap_or_default();
        let annotations = claim.metadata.annotations.get_or_insert_default();
        annotations.insert(CLAIM_TRACE_ANNOTATION.to_owned(), text);
    }
}

fn uid(claim: &HostClaim) -> &str {
    claim.metadata.uid.as_deref().unwrap_or_default()
}

/// What was recorded when the host was bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Namespace and name of the claim.
    pub(crate) claim: String,
    /// The identifier of the bond.
    #[serde(default)]
    pub(crate) id: String,
    /// The UID of the claim, which recovers a trace that was removed from the claim.
    #[serde(default)]
    pub(crate) uid: String,
    pub(crate) cleaning: Cleaning,
    /// When it was bound.
    pub(crate) at: Time,
    /// It was kept for the namespace of the claim then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) reused: bool,
    /// It ran what the claim asked for when that was taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) deployed: bool,
    /// The last reboot that was passed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reboot: Option<String>,
}

impl Record {
    /// For a host that is bound now.
    pub(super) fn new(claim: &HostClaim, trace: &Trace, host: &BareMetalHost, now: Time) -> Self {
        let is_forbidden = host.spec.automated_cleaning_mode == Some(AutomatedCleaningMode::Disabled);
        let is_disabled = is_forbidden || host.is_cleaned_first();
        Self {
            claim: trace.claim.clone(),
            id: trace.id.clone(),
            uid: uid(claim).to_owned(),
            cleaning: if is_disabled {
                Cleaning::Disabled
            } else {
                Cleaning::Metadata
            },
            at: now,
            reused: kept_until(host).is_some(),
            deployed: false,
            reboot: None,
        }
    }

    /// The record of a host; `None`: there is none, or it cannot be read.
    pub(crate) fn of(host: &BareMetalHost) -> Option<Self> {
        serde_json::from_str(host.annotation(CLAIM_RECORD_ANNOTATION)?).ok()
    }

    /// Whether it was written for this object. Only who may read the claim knows its UID.
    pub(super) fn is_of_object(&self, claim: &HostClaim, key: &Key) -> bool {
        let uid = uid(claim);
        self.claim == key.to_string() && is_id(&self.id) && !uid.is_empty() && self.uid == uid
    }

    /// The same, of the claim as it is now.
    pub(super) fn refreshed(self, claim: &HostClaim) -> Self {
        Self {
            uid: uid(claim).to_owned(),
            ..self
        }
    }

    /// Writes it to a host.
    pub(crate) fn write(&self, host: &mut BareMetalHost) {
        let annotations = host.metadata.annotations.get_or_insert_default();
        annotations.insert(CLAIM_RECORD_ANNOTATION.to_owned(), self.text());
    }

    fn text(&self) -> String {
        // Texts, a word and a time.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// What binds a host that names a claim as its consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bond {
    /// Both sides have the identifier.
    Own(Record),
    /// The trace names the host, and its record cannot be read.
    Unreadable,
    /// The trace is lost or names another bond, and the record names the object.
    Untraced(Trace),
    /// The claim names the host, and no record of this bond is there: a Go manager bound it, or the record was removed.
    Unrecorded,
}

impl Bond {
    /// Whether this program made it.
    pub(super) const fn is_of_this_program(&self) -> bool {
        !matches!(self, Self::Unrecorded)
    }
}

/// The bond of a claim with a host that names it.
pub(super) fn bond(claim: &HostClaim, key: &Key, (host_key, host): (&Key, &BareMetalHost)) -> Bond {
    let trace = Trace::of(claim, key).filter(|trace| trace.host().as_ref() == Some(host_key));
    let is_recorded = host.annotation(CLAIM_RECORD_ANNOTATION).is_some();
    match (trace, Record::of(host).filter(|record| record.claim == key.to_string())) {
        (Some(trace), Some(record)) if record.id == trace.id => Bond::Own(record),
        (_, Some(record)) if record.is_of_object(claim, key) => Bond::Untraced(Trace::recovered(&record, host_key)),
        (Some(_), None) if is_recorded && Record::of(host).is_none() => Bond::Unreadable,
        _ => Bond::Unrecorded,
    }
}

/// Whether the host is the claim's by its consumer, and its record was written for this object.
pub(super) fn is_recorded_for(host: &BareMetalHost, claim: &HostClaim, key: &Key) -> bool {
    let is_consumer = consumer(host).as_ref() == Some(key);
    is_consumer && Record::of(host).is_some_and(|record| record.is_of_object(claim, key))
}

/// Whether a host with a record is cleaned, whatever its spec says today: while the claim is its consumer, and without any consumer
/// until the host is clean. A record that cannot be read promises it while there is a consumer: without one anyone's text would have
/// a host cleaned whose owner forbids it.
pub(crate) fn promises_cleaning(host: &BareMetalHost) -> bool {
    if host.annotation(CLAIM_RECORD_ANNOTATION).is_none() {
        return false;
    }
    let record = Record::of(host);
    if record
        .as_ref()
        .is_some_and(|record| record.cleaning == Cleaning::Disabled)
    {
        return false;
    }
    match &host.spec.consumer_ref {
        None => record.is_some() && !is_clean(host),
        Some(_) => !has_ended(host),
    }
}

/// Whether the host has a record of a claim that is not its consumer any more.
pub(crate) fn has_ended(host: &BareMetalHost) -> bool {
    let is_recorded = host.annotation(CLAIM_RECORD_ANNOTATION).is_some();
    let consumer = consumer(host);
    is_recorded
        && match Record::of(host) {
            Some(record) => consumer.is_none_or(|consumer| consumer.to_string() != record.claim),
            None => consumer.is_none(),
        }
}

/// The claim that a host was bound to, while it is its consumer.
pub(crate) fn bound_claim(host: &BareMetalHost) -> Option<Key> {
    let record = Record::of(host)?;
    consumer(host).filter(|consumer| consumer.to_string() == record.claim)
}

/// The text of a record that promises nothing any more, for a host whose bond ended and that is clean: what is deployed from now on
/// is another consumer's.
pub(crate) fn spent(host: &BareMetalHost) -> Option<String> {
    if !has_ended(host) {
        return None;
    }
    let former = Record::of(host);
    if former
        .as_ref()
        .is_some_and(|record| record.cleaning == Cleaning::Disabled)
    {
        return None;
    }
    let record = former.unwrap_or_else(|| Record {
        claim: String::new(),
        id: String::new(),
        uid: String::new(),
        cleaning: Cleaning::Disabled,
        at: Time::default(),
        reused: false,
        deployed: false,
        reboot: None,
    });
    let spent = Record {
        cleaning: Cleaning::Disabled,
        ..record
    };
    Some(spent.text())
}

/// The host that the status of the claim names.
pub(super) fn named(claim: &HostClaim) -> Option<Key> {
    let named = claim.status.bare_metal_host.as_ref()?;
    key(&named.namespace, &named.name)
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
