//! Annotations of a host that require a right of their own.
//!
//! A restored status says what the host runs, a former instance lets the controller erase a node that serves it, and the record
//! of the Ironic says where its node is: another one would register a running machine a second time. Write
//! access to a host is not a right to either: the user must have the verb `update` on the virtual subresource
//! `baremetalhosts/restore`. Pure: which right a request requires. A request without such a change requires none, so
//! nothing is sent for it. Invariant: an unknown right is a denial.
//!
//! differs: `host-restore-guarded`. The Go manager restores any status.

use k8s_openapi::api::authentication::v1::UserInfo;
use k8s_openapi::api::authorization::v1::ResourceAttributes;
use metal3_api::kind::Kind as _;
use metal3_api::metal3::names::{FORMER_INSTANCE_ANNOTATION, REGISTERED_IN_ANNOTATION, STATUS_ANNOTATION};
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalHostStatus, ProvisioningState};
use metal3_api::rules::{Operation, Reviewer, beginning};
use serde_json::Value;

/// The virtual subresource.
pub const SUBRESOURCE: &str = "restore";
/// The verb on it.
pub const VERB: &str = "update";

/// Longest name of a user in a message, in bytes.
const LONGEST_USER: usize = 253;

/// A right that a request requires.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessQuestion {
    /// The user who sent the request.
    pub user: UserInfo,
    /// The right.
    pub right: ResourceAttributes,
    /// The annotation that requires it.
    pub(crate) annotation: &'static str,
}

impl AccessQuestion {
    /// Why the request is rejected without the right.
    pub(crate) fn denial(&self, decision: &Result<bool, String>) -> String {
        let user = beginning(&self.user.username.as_deref().unwrap_or_default(), LONGEST_USER);
        let why = match decision {
            Err(why) => format!("whether {user:?} may set it is not known ({why}); try again"),
            Ok(_) => format!("{user:?} may not set it"),
        };
        format!(
            "metadata.annotations[{}]: {why}. It requires the verb {VERB} on {}/{SUBRESOURCE} in the namespace of the host, which \
             the ClusterRole baremetal-operator-host-restore grants",
            self.annotation,
            BareMetalHost::PLURAL,
        )
    }
}

/// The annotation of a request that requires the right, if there is one.
pub(crate) fn guarded_annotation(
    reviewer: &Reviewer,
    operation: Operation,
    (old, new): (Option<&Value>, Option<&Value>),
) -> Option<&'static str> {
    let is_host = (reviewer.group, reviewer.kind) == (BareMetalHost::GROUP, BareMetalHost::KIND);
    if !is_host || operation == Operation::Delete {
        return None;
    }
    if is_set(old, new, FORMER_INSTANCE_ANNOTATION).is_some() {
        return Some(FORMER_INSTANCE_ANNOTATION);
    }
    if value(old, REGISTERED_IN_ANNOTATION) != value(new, REGISTERED_IN_ANNOTATION) {
        return Some(REGISTERED_IN_ANNOTATION);
    }
    let saved = is_set(old, new, STATUS_ANNOTATION)?;
    (takes_status(old) && holds_status(saved)).then_some(STATUS_ANNOTATION)
}

/// The value that the request gives to an annotation; `None` when it keeps or removes it.
fn is_set<'a>(old: Option<&Value>, new: Option<&'a Value>, annotation: &str) -> Option<&'a str> {
    value(new, annotation).filter(|set| Some(*set) != value(old, annotation))
}

fn value<'a>(object: Option<&'a Value>, annotation: &str) -> Option<&'a str> {
    object?.get("metadata")?.get("annotations")?.get(annotation)?.as_str()
}

/// Whether a saved status would be restored. A Go manager saves the status into the hosts of a paused cluster, which have
/// one: nothing is restored there.
fn takes_status(old: Option<&Value>) -> bool {
    let decoded = old.and_then(|old| BareMetalHost::from_document(old).ok());
    decoded.is_none_or(|host| host.takes_saved_status())
}

/// Whether there is something to restore. What does not decode may be a status for another manager.
fn holds_status(saved: &str) -> bool {
    let decoded = serde_json::from_str::<BareMetalHostStatus>(saved);
    decoded.map_or(!saved.is_empty(), |status| {
        status.provisioning.state != ProvisioningState::None
    })
}
