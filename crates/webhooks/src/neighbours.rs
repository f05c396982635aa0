//! Verdicts that need more than the object at hand: whether hosts still refer to an attachment, and whether addresses
//! were granted that a pool would no longer hold.
//!
//! What is seen comes from the watches of the process. It is not asked of the API server, which waits for our answer.
//! Invariant: what has not been seen yet is refused, never taken for nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostNetworkAttachment};
use metal3_api::rules::{Finding, Level, Operation, Reason, Reviewer};
use serde_json::Value;

/// What is known of other objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight<T> {
    /// All of it.
    Seen(T),
    /// Not all of it, and why.
    Unknown(String),
}

/// What the process has seen of other objects.
pub trait Neighbours: Send + Sync {
    /// Every host.
    fn hosts(&self) -> Sight<Vec<Arc<BareMetalHost>>> {
        Sight::Unknown("this process does not watch hosts".into())
    }

    /// The addresses granted from a pool, to claims of either kind.
    fn granted(&self, namespace: &str, pool: &str) -> Sight<Vec<String>> {
        let _ = (namespace, pool);
        Sight::Unknown("this process does not watch addresses".into())
    }
}

/// A process that watches nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Neighbours for Nobody {}

/// Whether requests to delete objects of a kind are judged.
#[must_use]
pub(crate) fn judges_deletion(kind: &str) -> bool {
    kind == HostNetworkAttachment::KIND
}

/// What the neighbours of an object have against a request. Both documents decode: the rules have read them before.
pub(crate) fn objections(
    reviewer: &Reviewer,
    operation: Operation,
    (old, new): (Option<&Value>, Option<&Value>),
    neighbours: &dyn Neighbours,
) -> Vec<Finding> {
    match (reviewer.group, reviewer.kind) {
        (HostNetworkAttachment::GROUP, HostNetworkAttachment::KIND) => {
            attachment(operation, decode(old), decode(new), neighbours)
        }
        (IPPool::GROUP, IPPool::KIND) => pool(operation, decode(old), decode(new), neighbours),
        _ => Vec::new(),
    }
}

fn decode<K: metal3_api::kind::Kind>(document: Option<&Value>) -> Option<K> {
    serde_json::from_value(document?.clone()).ok()
}

/// An attachment in use keeps its spec and stays.
fn attachment(
    operation: Operation,
    old: Option<HostNetworkAttachment>,
    new: Option<HostNetworkAttachment>,
    neighbours: &dyn Neighbours,
) -> Vec<Finding> {
    let (path, problem, old) = match (operation, old, new) {
        (Operation::Update, Some(old), Some(new)) if old.spec != new.spec => ("spec", "cannot be modified", old),
        (Operation::Delete, Some(old), _) => ("metadata.name", "cannot be deleted", old),
        (Operation::Create | Operation::Update | Operation::Delete, ..) => return Vec::new(),
    };
    let objection = match neighbours.hosts() {
        Sight::Unknown(why) => (
            format!("{problem}: whether hosts refer to it is not known: {why}"),
            "try again in a moment".to_owned(),
        ),
        Sight::Seen(hosts) => {
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
    vec![refusal("attachment-in-use", path, objection)]
}

/// An address that was granted a moment ago is not in the status of the pool yet. differs (`pool-fresh-grants`): the Go
/// manager looks at the status alone.
fn pool(operation: Operation, old: Option<IPPool>, new: Option<IPPool>, neighbours: &dyn Neighbours) -> Vec<Finding> {
    let (old, new) = match (operation, old, new) {
        (Operation::Update, Some(old), Some(new)) if old.spec.pools != new.spec.pools => (old, new),
        (Operation::Create | Operation::Update | Operation::Delete, ..) => return Vec::new(),
    };
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let objection = match neighbours.granted(&name(&new.metadata.namespace), &name(&new.metadata.name)) {
        Sight::Unknown(why) => (
            format!("cannot be modified: which addresses are granted is not known: {why}"),
            "try again in a moment".to_owned(),
        ),
        Sight::Seen(granted) => {
            // What the status lists, the rules have judged.
            let listed: BTreeSet<&str> = old.status.indexes.values().map(|address| address.as_str()).collect();
            let fresh = granted
                .iter()
                .map(String::as_str)
                .filter(|address| !listed.contains(address));
            let stranded = new.stranded(fresh);
            if stranded.is_empty() {
                return Vec::new();
            }
            (
                format!("in use but out of bounds of the pools given: {}", few(&stranded)),
                "keep a range that holds them, or delete their claims first".to_owned(),
            )
        }
    };
    vec![refusal("granted-address-in-range", "spec.pools", objection)]
}

fn refusal(rule: &'static str, path: &str, (problem, cure): (String, String)) -> Finding {
    Finding {
        rule,
        level: Level::Refuse,
        path: path.into(),
        reason: Reason::Forbidden,
        value: None,
        problem,
        cure,
    }
}

/// The first few, and how many more there are: a message has a limit, and a pool has many addresses.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
