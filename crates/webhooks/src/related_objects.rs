//! Checks that need other objects: whether hosts refer to an attachment, and whether a pool still contains all granted
//! addresses.
//!
//! The objects are read from the caches of the process, because the API server waits for the response. Invariant: while
//! a cache is not synced, the request is rejected.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use metal3_api::ipam::v1alpha1::IPPool;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HostNetworkAttachment};
use metal3_api::rules::{Finding, Level, Operation, Reason, Reviewer};
use metal3_domain::allowed::Allowed;
use metal3_domain::bmc::BmcAddress;
use metal3_domain::image::ImageField;
use serde_json::Value;

use crate::guarded::AccessQuestion;

/// A read from a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation<T> {
    /// The cache is synced.
    Known(T),
    /// The cache is not synced, with the reason.
    Unknown(String),
}

/// The destinations that an administrator allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    /// The hosts of images and checksums.
    pub image_hosts: Allowed,
    /// The networks of BMCs.
    pub bmc_networks: Allowed,
}

/// Access to other objects, and to the flags of the program.
pub trait RelatedObjects: Send + Sync {
    /// Every host.
    fn hosts(&self) -> Observation<Vec<Arc<BareMetalHost>>> {
        Observation::Unknown("this process does not watch hosts".into())
    }

    /// The addresses granted from a pool, to claims of either kind.
    fn granted(&self, namespace: &str, pool: &str) -> Observation<Vec<String>> {
        let _ = (namespace, pool);
        Observation::Unknown("this process does not watch addresses".into())
    }

    /// The destinations that hosts may name; `None` for all.
    fn destinations(&self) -> Option<&Destinations> {
        None
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
        (BareMetalHost::GROUP, BareMetalHost::KIND) if operation != Operation::Delete => {
            let destinations = related_objects.destinations();
            let findings = |destinations| host(decode(old).as_ref(), decode(new).as_ref(), destinations);
            destinations.map(findings).unwrap_or_default()
        }
        (IPPool::GROUP, IPPool::KIND) => pool(operation, decode(old), decode(new), related_objects),
        _ => Vec::new(),
    }
}

fn decode<K: metal3_api::kind::Kind>(document: Option<&Value>) -> Option<K> {
    K::deserialize(document?).ok()
}

/// A host names allowed destinations only. What an update keeps is not checked: the flag may be newer, and then the
/// controller reports it.
///
/// differs: `destinations-allowed`. The Go manager allows any.
fn host(old: Option<&BareMetalHost>, new: Option<&BareMetalHost>, destinations: &Destinations) -> Vec<Finding> {
    let Some(new) = new else { return Vec::new() };
    let mut findings = Vec::new();
    let image = new.spec.image.as_ref();
    let is_new_image = old.is_none_or(|old| old.spec.image.as_ref() != image);
    let image = image.filter(|image| is_new_image && !image.url.is_empty());
    let field = image.and_then(|image| destinations.image_hosts.forbidden_image_field(&image.fields()));
    if let Some(field) = field {
        let path = match field {
            ImageField::Checksum => "spec.image.checksum",
            _ => "spec.image.url",
        };
        let problem = "its host is not in --allowed-image-hosts".to_owned();
        let cure = "use an allowed host, or ask the administrator to add this one to the flag".to_owned();
        findings.push(refusal("image-host-allowed", path, (problem, cure)));
    }
    let address = |host: &BareMetalHost| {
        host.spec
            .bmc
            .as_ref()
            .map(|bmc| bmc.address.clone())
            .unwrap_or_default()
    };
    let is_new_address = old.is_none_or(|old| address(old) != address(new));
    // What cannot be read is not registered, and another rule reports it.
    let controller = BmcAddress::parse(&address(new)).ok().filter(|_| is_new_address);
    if controller.is_some_and(|controller| !destinations.bmc_networks.controller(&controller)) {
        let problem = "it is not an IP address in the networks of --allowed-bmc-networks".to_owned();
        let cure = "correct it, or ask the administrator to add its network to the flag".to_owned();
        findings.push(refusal("bmc-network-allowed", "spec.bmc.address", (problem, cure)));
    }
    findings
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
    let finding = match related_objects.hosts() {
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

/// The first few names and the number of the rest, to limit the length of a message.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
