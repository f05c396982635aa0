//! The record of an order to update the firmware, in the status of HostFirmwareComponents.
//!
//! `status.updates` lists what was ordered, as with the Go manager. The condition `Updating` says what is known of it: it is written
//! before the order, with the node and the time of its last change of state. Ironic changes that time when it begins, and also when it
//! finds no worker, so a changed time alone does not say that an update was made.

use chrono::{DateTime, SecondsFormat, Utc};
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::{FirmwareComponentStatus, FirmwareUpdate, HostFirmwareComponents};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::hardware::FirmwareComponent;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::condition::set_condition;
use metal3_runtime::plan::Observed;
use metal3_runtime::reason::Reason;

use super::{names_text, requested};
use crate::names::components_reason::{UPDATE_BEGUN, UPDATE_FAILED, UPDATE_MADE, UPDATE_ORDERED};

/// Condition: updates were ordered, and their end is not known. The Go manager keeps it and does not read it.
pub(super) const UPDATING: &str = "Updating";
const OF_NODE: &str = ": ordered of Ironic for node ";
const CHANGED: &str = ", which changed its state last at ";
const BEGUN: &str = ": under way in Ironic for node ";

/// What is recorded of the last order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// There was none of this program.
    None,
    /// It was sent, or the program ended before.
    Ordered {
        /// The node.
        node: String,
        /// When its state changed last.
        changed: String,
    },
    /// Ironic began with it.
    Begun {
        /// The node.
        node: String,
    },
    /// It failed, and is not recorded any more. The names of the components.
    Failed(String),
    /// The updates were made.
    Made,
}

/// What became of an order, of a node that is not cleaned now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Ironic did not begin with it, or lost it.
    NotMade,
    /// It ended.
    Made,
    /// The versions of the machine must be read.
    Unknown,
}

impl Order {
    /// What the status of the object records.
    #[must_use]
    pub fn of(object: &HostFirmwareComponents) -> Self {
        let mut conditions = object.status.conditions.iter();
        let Some(condition) = conditions.find(|condition| condition.type_ == UPDATING) else {
            return Self::None;
        };
        let message = condition.message.as_str();
        let names = |text: &str| text.split(": ").next().unwrap_or_default().to_owned();
        match condition.reason.as_str() {
            reason if reason == UPDATE_ORDERED.as_str() => {
                let rest = message.split_once(OF_NODE).map_or("", |(_, rest)| rest);
                let (node, changed) = rest.split_once(CHANGED).unwrap_or_default();
                Self::Ordered {
                    node: node.to_owned(),
                    changed: changed.to_owned(),
                }
            }
            reason if reason == UPDATE_BEGUN.as_str() => Self::Begun {
                node: message.split_once(BEGUN).map_or("", |(_, node)| node).to_owned(),
            },
            reason if reason == UPDATE_FAILED.as_str() => Self::Failed(names(message)),
            _ => Self::Made,
        }
    }

    /// Whether its end is not known yet.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Ordered { .. } | Self::Begun { .. })
    }
}

/// What became of an open order. `is_accepted`: Ironic accepted it from this process, on this node.
#[must_use]
pub fn outcome(
    object: &HostFirmwareComponents,
    node: &Node,
    is_accepted: bool,
    versions: &Observed<&[FirmwareComponent]>,
) -> Outcome {
    let is_of_node = |of: &str| of == node.uuid.as_str();
    match Order::of(object) {
        Order::Begun { node } if is_of_node(&node) => Outcome::Made,
        Order::Ordered { node: of, .. } if is_of_node(&of) && is_accepted => Outcome::Made,
        Order::Ordered { node: of, changed } if is_of_node(&of) && changed != last_change(node) => match versions {
            Observed::Present(versions) if have_changed(&object.status.components, versions) => Outcome::Made,
            Observed::Present(_) | Observed::Absent => Outcome::NotMade,
            Observed::Unknown(_) => Outcome::Unknown,
        },
        _ => Outcome::NotMade,
    }
}

/// Whether a component has another version than before.
fn have_changed(before: &[FirmwareComponentStatus], now: &[FirmwareComponent]) -> bool {
    now.iter().any(|component| {
        let mut before = before.iter().filter(|before| before.component == component.component);
        before.any(|before| before.current_version != component.current_version)
    })
}

fn last_change(node: &Node) -> String {
    let text = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Micros, true);
    node.provision_updated_at.map_or_else(|| "no time".to_owned(), text)
}

fn updating(object: &HostFirmwareComponents, is_open: bool, reason: Reason, message: String, now: Time) -> Condition {
    Condition {
        type_: UPDATING.to_owned(),
        status: if is_open {
            ConditionStatus::True
        } else {
            ConditionStatus::False
        },
        reason: reason.as_str().to_owned(),
        message,
        last_transition_time: now,
        observed_generation: object.metadata.generation,
    }
}

/// The object with the record that these updates are ordered of this node, in its present state.
#[must_use]
pub fn with_order(
    object: &HostFirmwareComponents,
    updates: &[FirmwareUpdate],
    node: &Node,
    now: Time,
) -> HostFirmwareComponents {
    let mut ordered = object.clone();
    let asked = requested(object);
    // In the order in which they are requested, which the Go manager compares.
    ordered.status.updates = asked
        .iter()
        .filter(|update| updates.contains(update) || object.status.updates.contains(update))
        .cloned()
        .collect();
    let (names, uuid, changed) = (names_text(updates), &node.uuid, last_change(node));
    let message = format!("{names}{OF_NODE}{uuid}{CHANGED}{changed}");
    let condition = updating(object, true, UPDATE_ORDERED, message, now);
    set_condition(&mut ordered.status.conditions, condition);
    ordered
}

fn names_of_order(object: &HostFirmwareComponents) -> String {
    let mut conditions = object.status.conditions.iter();
    let message = conditions.find(|condition| condition.type_ == UPDATING);
    let message = message.map_or("", |condition| condition.message.as_str());
    let names = [OF_NODE, BEGUN].iter().find_map(|end| Some(message.split_once(end)?.0));
    names.map_or_else(|| names_text(&object.status.updates), str::to_owned)
}

/// The object with the record that Ironic began with its order.
#[must_use]
pub fn with_begun(object: &HostFirmwareComponents, node: &NodeUuid, now: Time) -> HostFirmwareComponents {
    let mut begun = object.clone();
    let message = format!("{}{BEGUN}{node}", names_of_order(object));
    let condition = updating(object, true, UPDATE_BEGUN, message, now);
    set_condition(&mut begun.status.conditions, condition);
    begun
}

/// The object without its order, with which Ironic did not begin.
#[must_use]
pub fn without_order(object: &HostFirmwareComponents) -> HostFirmwareComponents {
    let mut free = object.clone();
    let ordered = ordered_names(object);
    let is_ordered = |update: &FirmwareUpdate| is_named(ordered.as_ref(), update);
    free.status.updates.retain(|update| !is_ordered(update));
    free.status.conditions.retain(|condition| condition.type_ != UPDATING);
    free
}

/// The object after its order, or that of a Go manager, has failed: nothing of it is recorded, so that it is repeated.
#[must_use]
pub fn with_failure(object: &HostFirmwareComponents, now: Time) -> HostFirmwareComponents {
    let mut failed = without_order(object);
    let message = format!("{}: the update failed; it is repeated", names_of_order(object));
    let condition = updating(object, false, UPDATE_FAILED, message, now);
    set_condition(&mut failed.status.conditions, condition);
    failed
}

/// The object after its order has ended, with a hint if the BMC reports the versions of before.
#[must_use]
pub fn with_success(
    object: &HostFirmwareComponents,
    versions: &[FirmwareComponent],
    now: Time,
) -> HostFirmwareComponents {
    let mut made = object.clone();
    let is_same = !versions.is_empty() && !have_changed(&object.status.components, versions);
    let message = if is_same && !object.status.components.is_empty() {
        format!(
            "{}: Ironic reports success, and the versions of before; look whether the BMC has the firmware of spec.updates",
            names_of_order(object)
        )
    } else {
        format!("{}: made", names_of_order(object))
    };
    set_condition(
        &mut made.status.conditions,
        updating(object, false, UPDATE_MADE, message, now),
    );
    made
}

/// The components of the order; `None`: all that are recorded, since a name was cut or has a separator in it.
fn ordered_names(object: &HostFirmwareComponents) -> Option<Vec<String>> {
    let names = names_of_order(object);
    let names: Vec<_> = names.split(", ").map(str::to_owned).collect();
    let is_recorded = |name: &String| {
        let mut recorded = object.status.updates.iter();
        recorded.any(|update| super::shown(&update.component) == *name)
    };
    names.iter().all(is_recorded).then_some(names)
}

fn is_named(names: Option<&Vec<String>>, update: &FirmwareUpdate) -> bool {
    let name = super::shown(&update.component);
    names.is_none_or(|names| names.contains(&name))
}

/// Whether Ironic cleans the node now.
#[must_use]
pub const fn is_cleaned(node: &Node) -> bool {
    matches!(node.provision_state, S::Cleaning | S::CleanWait)
}
