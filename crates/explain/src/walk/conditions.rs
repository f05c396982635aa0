//! The condition that states why an object is not done.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::Cluster;
use metal3_api::meta::{Condition, ConditionStatus, Time};

use super::Walk;
use crate::chain::Link;
use crate::object::ObjectId;
use crate::table::{Actor, Area};

/// The annotation with which Cluster API pauses an object.
const PAUSED: &str = "cluster.x-k8s.io/paused";

/// A condition and the status with which it states a problem.
pub(crate) type Bad = (&'static str, ConditionStatus);

/// The first of these conditions that states a problem. An unknown one counts where it should be true.
pub(crate) fn first_bad<'a>(conditions: &'a [Condition], order: &[Bad]) -> Option<&'a Condition> {
    order.iter().find_map(|(kind, bad)| {
        let found = conditions.iter().find(|condition| condition.type_ == *kind)?;
        let is_unknown = *bad == ConditionStatus::False && found.status == ConditionStatus::Unknown;
        (found.status == *bad || is_unknown).then_some(found)
    })
}

/// The condition of a type.
pub(crate) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// The time of a condition; that of an absent one is the epoch, which says nothing.
pub(crate) fn since(condition: &Condition) -> Option<Time> {
    Some(condition.last_transition_time).filter(|time| *time != Time::default())
}

/// The link of a condition.
pub(crate) fn link(at: &ObjectId, area: Area, condition: &Condition) -> Link {
    let link = reason_link(at, area, &condition.reason, &condition.message, since(condition));
    match condition.type_.as_str() {
        // It has one reason.
        "Paused" => link,
        _ => link.at_most(since(condition)),
    }
}

/// The link of a reason. One that the table does not have is of another version or program.
pub(crate) fn reason_link(at: &ObjectId, area: Area, reason: &str, message: &str, since: Option<Time>) -> Link {
    match area.find(reason) {
        Some(entry) => Link::explained(at, entry, message, since),
        None => Link {
            reason: Some(reason.to_owned()),
            message: message.to_owned(),
            since,
            ..Link::plain(at, format!("is not done: {reason}"), Actor::System, "See the message.")
        },
    }
}

impl Walk<'_> {
    /// The link of an object that is being deleted.
    pub(crate) fn push_deleting(&mut self, at: &ObjectId, meta: &ObjectMeta) {
        let left = meta.finalizers.as_deref().unwrap_or_default().join(", ");
        let message = format!("it goes when its finalizers are removed: {left}");
        self.push(reason_link(at, Area::Shared, "Deleting", &message, None));
    }

    /// Whether a pause is the reason, which a link then reports.
    pub(crate) fn is_paused(&mut self, at: &ObjectId, meta: &ObjectMeta, cluster: Option<&Cluster>) -> bool {
        let annotations = meta.annotations.as_ref();
        let message = if annotations.is_some_and(|all| all.contains_key(PAUSED)) {
            format!("the annotation {PAUSED} is set")
        } else if cluster.is_some_and(|cluster| cluster.spec.paused == Some(true)) {
            "spec.paused of the Cluster is true".to_owned()
        } else {
            return false;
        };
        self.push(reason_link(at, Area::Shared, "Paused", &message, None));
        true
    }
}
