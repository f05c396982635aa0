//! Checks that need other objects or flags: whether hosts refer to an attachment, whether a pool still contains all granted
//! addresses, and whether a destination is allowed.
//!
//! The objects are read from the caches of the process, because the API server waits for the response. Invariant: while
//! a cache is not synced, the request is rejected.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostNetworkAttachment};
use metal3_api::rules::{Finding, Level, Operation, Reason, Reviewer, beginning};
use serde_json::Value;

use crate::destinations::Destinations;
use crate::guarded::AccessQuestion;

/// A read from a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation<T> {
    /// The cache is synced.
    Known(T),
    /// The cache is not synced, with the reason.
    Unknown(String),
}

/// Access to other objects, and to the flags of the program.
pub trait RelatedObjects: Send + Sync {
    /// Every host that may refer to an attachment of this namespace.
    fn hosts(&self, namespace: &str) -> Observation<Vec<Arc<BareMetalHost>>> {
        let _ = namespace;
        Observation::Unknown("this process does not watch hosts".into())
    }

    /// The addresses granted from a pool, to claims of either kind.
    fn granted(&self, namespace: &str, pool: &str) -> Observation<Vec<String>> {
        let _ = (namespace, pool);
        Observation::Unknown("this process does not watch addresses".into())
    }

    /// The destinations that users may name; `None` for all.
    fn destinations(&self) -> Option<&Destinations> {
        None
    }

    /// Whether a controller serves a kind of the host operator that needs a setting, so that no warning about it is true.
    fn serves(&self, kind: &str) -> bool {
        let _ = kind;
        false
    }

    /// Whether a user has a right. An error is the reason why it is unknown.
    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Decision<'a> {
        let _ = question;
        Box::pin(async { Err("this process does not review rights".to_owned()) })
    }
}

/// The pending decision about a right.
pub type Decision<'a> = Pin<Box<dyn Future<Output = Result<bool, String>> + Send + 'a>>;

/// A process without watches.
#[derive(Clone, Copy, Debug)]
pub struct NoRelatedObjects;

impl RelatedObjects for NoRelatedObjects {}

/// Whether requests to delete objects of a kind are validated.
#[must_use]
pub(crate) fn validates_deletion(kind: &str) -> bool {
    kind == HostNetworkAttachment::KIND
}

/// Findings that depend on other objects. Both documents decode, because the rules run first.
pub(crate) fn findings_of_related(
    reviewer: &Reviewer,
    operation: Operation,
    (old, new): (Option<&Value>, Option<&Value>),
    related_objects: &dyn RelatedObjects,
) -> Vec<Finding> {
    match (reviewer.group, reviewer.kind) {
        (HostNetworkAttachment::GROUP, HostNetworkAttachment::KIND) => {
            attachment(operation, decode(old), decode(new), related_objects)
        }
        (IPPool::GROUP, IPPool::KIND) => pool(operation, decode(old), decode(new), related_objects),
        _ if operation == Operation::Delete => Vec::new(),
        _ => {
            let destinations = related_objects.destinations();
            let findings = |destinations: &Destinations| destinations.findings(reviewer, (old, new));
            destinations.map(findings).unwrap_or_default()
        }
    }
}

pub(crate) fn decode<K: metal3_api::kind::Kind>(document: Option<&Value>) -> Option<K> {
    K::from_document(document?).ok()
}

/// An attachment in use cannot be changed or deleted.
fn attachment(
    operation: Operation,
    old: Option<HostNetworkAttachment>,
    new: Option<HostNetworkAttachment>,
    related_objects: &dyn RelatedObjects,
) -> Vec<Finding> {
    let (path, problem, old) = match (operation, old, new) {
        (Operation::Update, Some(old), Some(new)) if old.spec != new.spec => ("spec", "cannot be modified", old),
        (Operation::Delete, Some(old), _) => ("metadata.name", "cannot be deleted", old),
        (Operation::Create | Operation::Update | Operation::Delete, ..) => return Vec::new(),
    };
    let namespace = old.metadata.namespace.clone().unwrap_or_default();
    let finding = match related_objects.hosts(&namespace) {
        Observation::Unknown(why) => (
            format!("{problem}: whether hosts refer to it is not known: {why}"),
            "try again in a moment".to_owned(),
        ),
        Observation::Known(hosts) => {
            let users = old.users(hosts.iter().map(AsRef::as_ref));
            if users.is_empty() {
                return Vec::new();
            }
            (
                format!("{problem} while hosts refer to it: {}", few(&users)),
                "remove the reference from spec.networkInterfaces of these hosts first".to_owned(),
            )
        }
    };
    vec![refusal("attachment-in-use", path, finding)]
}

/// The status of a pool may lack the latest grants. differs (`pool-fresh-grants`): the Go manager checks only the
/// status.
fn pool(
    operation: Operation,
    old: Option<IPPool>,
    new: Option<IPPool>,
    related_objects: &dyn RelatedObjects,
) -> Vec<Finding> {
    let (old, new) = match (operation, old, new) {
        (Operation::Update, Some(old), Some(new)) if old.spec.pools != new.spec.pools => (old, new),
        (Operation::Create | Operation::Update | Operation::Delete, ..) => return Vec::new(),
    };
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let finding = match related_objects.granted(&name(&new.metadata.namespace), &name(&new.metadata.name)) {
        Observation::Unknown(why) => (
            format!("cannot be modified: which addresses are granted is not known: {why}"),
            "try again once that is known".to_owned(),
        ),
        Observation::Known(granted) => {
            // The rules have checked the addresses in the status.
            let listed: BTreeSet<&str> = old.status.indexes.values().map(|address| address.as_str()).collect();
            let fresh = granted
                .iter()
                .map(String::as_str)
                .filter(|address| !listed.contains(address));
            let out_of_range = new.out_of_range(fresh);
            if out_of_range.is_empty() {
                return Vec::new();
            }
            (
                format!("in use but out of bounds of the pools given: {}", few(&out_of_range)),
                "keep a range that holds them, or delete their claims first".to_owned(),
            )
        }
    };
    vec![refusal("granted-address-in-range", "spec.pools", finding)]
}

/// Longest problem of a finding, in bytes. Names of interfaces are texts of users.
const LONGEST_PROBLEM: usize = 2048;

/// A finding that rejects the request.
pub(crate) fn refusal(rule: &'static str, path: &str, (problem, cure): (String, String)) -> Finding {
    Finding {
        rule,
        level: Level::Refuse,
        path: path.into(),
        reason: Reason::Forbidden,
        value: None,
        problem: beginning(&problem, LONGEST_PROBLEM),
        cure,
    }
}

/// The first few names and the number of the rest, to limit the length of a message.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
