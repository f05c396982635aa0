//! The record of an order to update the firmware, in the status of HostFirmwareComponents.
//!
//! `status.updates` lists what was ordered, as with the Go manager. The condition `Updating` says what is known of it: it is written
//! before the order, with the node, the time of its last change of state, and digests of the updates that it is about. Ironic changes
//! that time when it begins, and also when it finds no worker or does something else, so a changed time alone does not say that an
//! update was made. An update of which nothing shows that it was made is made again.

use chrono::{DateTime, SecondsFormat, Utc};
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::v1alpha1::{FirmwareComponentStatus, FirmwareUpdate, HostFirmwareComponents};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::hardware::FirmwareComponent;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::condition::set_condition;
use metal3_runtime::reason::Reason;

use super::files::{self, Covered, Files};
use super::report::shown;
use super::{names_text, requested};
use crate::names::components_reason::{UPDATE_BEGUN, UPDATE_FAILED, UPDATE_MADE, UPDATE_ORDERED};

/// Condition: updates were ordered, and their end is not known. The Go manager keeps it and does not read it.
const UPDATING: &str = "Updating";
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

impl Order {
    /// What the status of the object records.
    #[must_use]
    pub fn of(object: &HostFirmwareComponents) -> Self {
        let mut conditions = object.status.conditions.iter();
        let Some(condition) = conditions.find(|condition| condition.type_ == UPDATING) else {
            return Self::None;
        };
        let (message, _) = Covered::split(&condition.message);
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

/// The order and what is recorded as made, as far as the status of the object says it.
fn covered(object: &HostFirmwareComponents) -> Covered {
    let (_, mut covered) = Covered::split(message(object));
    if covered.ordered.is_empty() && Order::of(object).is_open() {
        // It does not say which.
        covered.ordered = files::of_all(&object.status.updates);
    }
    covered
}

fn message(object: &HostFirmwareComponents) -> &str {
    record_of(object).map_or("", |condition| condition.message.as_str())
}

fn record_of(object: &HostFirmwareComponents) -> Option<&Condition> {
    let mut conditions = object.status.conditions.iter();
    conditions.find(|condition| condition.type_ == UPDATING)
}

/// When the open order was recorded.
#[must_use]
pub fn ordered_at(object: &HostFirmwareComponents) -> Option<Time> {
    record_of(object).map(|condition| condition.last_transition_time)
}

/// The recorded updates of the open order.
#[must_use]
pub fn ordered(object: &HostFirmwareComponents) -> Vec<FirmwareUpdate> {
    let ordered = covered(object).ordered;
    let all = object.status.updates.iter();
    all.filter(|update| ordered.contains(&files::of(update)))
        .cloned()
        .collect()
}

/// The recorded updates of which this program does not know that they were made, because a Go manager recorded them: those that the
/// cleaning which failed had, if the node shows its steps.
#[must_use]
pub fn of_others(object: &HostFirmwareComponents, node: &Node) -> Vec<FirmwareUpdate> {
    let (covered, steps) = (covered(object), node.last_steps());
    let begun = (!steps.is_empty()).then(|| files::in_steps(steps));
    let is_known = |file: &String| covered.made.contains(file) || covered.ordered.contains(file);
    let is_doubtful = |file: &String| begun.as_ref().is_none_or(|begun| begun.contains(file));
    let all = object.status.updates.iter().map(|update| (update, files::of(update)));
    all.filter(|(_, file)| !is_known(file) && is_doubtful(file))
        .map(|(update, _)| update.clone())
        .collect()
}

/// Whether a cleaning with these updates is for the open order.
#[must_use]
pub fn covers(of_cleaning: &Files, object: &HostFirmwareComponents) -> bool {
    let ordered = covered(object).ordered;
    !ordered.is_empty() && ordered.is_subset(of_cleaning)
}

/// Whether the node shows the cleaning of the open order.
#[must_use]
pub fn is_under_way(object: &HostFirmwareComponents, node: &Node) -> bool {
    covers(&files::in_steps(node.steps_under_way()), object)
}

/// Whether Ironic changed the state of its node since an order was recorded.
#[must_use]
pub fn has_changed(changed: &str, node: &Node) -> bool {
    changed != last_change(node)
}

/// The updates of the open order that these have not ended; all when the list is not of this order.
#[must_use]
pub fn not_ended(object: &HostFirmwareComponents, left: Option<&Files>) -> Vec<FirmwareUpdate> {
    let all = ordered(object);
    match left.filter(|left| left.is_subset(&covered(object).ordered)) {
        Some(left) => all
            .into_iter()
            .filter(|update| left.contains(&files::of(update)))
            .collect(),
        None => all,
    }
}

/// The updates of the open order whose component has the version of before, or of which that cannot be said: a component may have
/// two updates.
#[must_use]
pub fn unproven(object: &HostFirmwareComponents, versions: &[FirmwareComponent]) -> Vec<FirmwareUpdate> {
    let all = ordered(object);
    let is_only = |update: &FirmwareUpdate| {
        let same = all.iter().filter(|other| other.component == update.component);
        same.count() == 1
    };
    let is_proven = |update: &&FirmwareUpdate| {
        is_only(update) && has_changed_version(&object.status.components, versions, &update.component)
    };
    all.iter().filter(|update| !is_proven(update)).cloned().collect()
}

fn has_changed_version(before: &[FirmwareComponentStatus], now: &[FirmwareComponent], name: &str) -> bool {
    let before = before.iter().find(|component| component.component == name);
    let now = now.iter().find(|component| component.component == name);
    before
        .zip(now)
        .is_some_and(|(before, now)| now.current_version.is_some() && before.current_version != now.current_version)
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

/// The object with the record that these updates are ordered of this node, in its present state and with these versions.
#[must_use]
pub fn with_order(
    object: &HostFirmwareComponents,
    updates: &[FirmwareUpdate],
    (node, versions): (&Node, &[FirmwareComponent]),
    now: Time,
) -> HostFirmwareComponents {
    let mut record = object.clone();
    let asked = requested(object);
    // In the order in which they are requested, which the Go manager compares.
    record.status.updates = asked
        .iter()
        .filter(|update| updates.contains(update) || object.status.updates.contains(update))
        .cloned()
        .collect();
    if !versions.is_empty() {
        // They are compared when it has ended.
        record.status.components = versions.iter().map(shown).collect();
    }
    let ordered = files::of_all(updates);
    let known = files::of_all(&record.status.updates);
    let made = covered(object).made.intersection(&known).cloned().collect::<Files>();
    let made = made.difference(&ordered).cloned().collect();
    let (names, uuid, changed) = (names_text(updates), &node.uuid, last_change(node));
    let message = Covered { ordered, made }.append(&format!("{names}{OF_NODE}{uuid}{CHANGED}{changed}"));
    let condition = updating(object, true, UPDATE_ORDERED, message, now);
    set_condition(&mut record.status.conditions, condition);
    record
}

fn names_of_order(object: &HostFirmwareComponents) -> String {
    let (message, _) = Covered::split(message(object));
    let names = [OF_NODE, BEGUN].iter().find_map(|end| Some(message.split_once(end)?.0));
    names.map_or_else(|| names_text(&object.status.updates), str::to_owned)
}

/// The object with the record that Ironic began with its order.
#[must_use]
pub fn with_begun(object: &HostFirmwareComponents, node: &NodeUuid, now: Time) -> HostFirmwareComponents {
    let mut begun = object.clone();
    let message = covered(object).append(&format!("{}{BEGUN}{node}", names_of_order(object)));
    let condition = updating(object, true, UPDATE_BEGUN, message, now);
    set_condition(&mut begun.status.conditions, condition);
    begun
}

/// The object without its order, of which these updates were not made.
#[must_use]
pub fn without_order(object: &HostFirmwareComponents, lost: &[FirmwareUpdate], now: Time) -> HostFirmwareComponents {
    let (mut free, made) = without(object, lost);
    close(&mut free, &made, now);
    free
}

/// The object after these updates of its order, or of a Go manager, have failed: they are not recorded, so that they are repeated.
#[must_use]
pub fn with_failure(object: &HostFirmwareComponents, lost: &[FirmwareUpdate], now: Time) -> HostFirmwareComponents {
    let (mut failed, made) = without(object, lost);
    let message = format!("{}: the update failed; it is repeated", names_text(lost));
    record(&mut failed, UPDATE_FAILED, &message, made, now);
    failed
}

/// The object without the record of these updates, and those that were made, as far as this program knows.
fn without(object: &HostFirmwareComponents, lost: &[FirmwareUpdate]) -> (HostFirmwareComponents, Files) {
    let mut free = object.clone();
    free.status.updates.retain(|update| !lost.contains(update));
    let (covered, lost) = (covered(object), files::of_all(lost));
    let known = covered.made.union(&covered.ordered);
    let made = known.filter(|file| !lost.contains(*file)).cloned().collect();
    (free, made)
}

fn record(object: &mut HostFirmwareComponents, reason: Reason, message: &str, made: Files, now: Time) {
    let ordered = Files::default();
    // What is not recorded any more may be requested and ordered by a Go manager once more.
    let made = &made & &files::of_all(&object.status.updates);
    let message = Covered { ordered, made }.append(message);
    let condition = updating(object, false, reason, message, now);
    set_condition(&mut object.status.conditions, condition);
}

/// Records which of the recorded updates were made, when there is no order, and none that failed is requested.
fn close(object: &mut HostFirmwareComponents, made: &Files, now: Time) {
    let is_made = |update: &&FirmwareUpdate| made.contains(&files::of(update));
    let kept: Vec<_> = object.status.updates.iter().filter(is_made).cloned().collect();
    if kept.is_empty() {
        object.status.conditions.retain(|condition| condition.type_ != UPDATING);
    } else {
        let message = format!("{}: made", names_text(&kept));
        record(object, UPDATE_MADE, &message, files::of_all(&kept), now);
    }
}

/// The object without the record of a failure whose updates are not requested any more.
pub(super) fn without_failure(object: &HostFirmwareComponents, now: Time) -> HostFirmwareComponents {
    let mut free = object.clone();
    close(&mut free, &covered(object).made, now);
    free
}

/// The object after its order has ended, with a hint if the BMC reports the versions of before.
#[must_use]
pub fn with_success(
    object: &HostFirmwareComponents,
    versions: &[FirmwareComponent],
    now: Time,
) -> HostFirmwareComponents {
    let mut ended = object.clone();
    let Covered { ordered, made } = covered(object);
    let before = &object.status.components;
    let components = self::ordered(object);
    let has_changed = |update: &FirmwareUpdate| has_changed_version(before, versions, &update.component);
    let is_same = !versions.is_empty() && !before.is_empty() && !components.iter().any(has_changed);
    let names = names_of_order(object);
    let message = if is_same {
        format!(
            "{names}: Ironic reports success, and the versions of before; look whether the BMC has the firmware of spec.updates"
        )
    } else {
        format!("{names}: made")
    };
    record(&mut ended, UPDATE_MADE, &message, &made | &ordered, now);
    ended
}

/// Whether Ironic cleans or services the node now.
#[must_use]
pub const fn is_worked_on(node: &Node) -> bool {
    matches!(
        node.provision_state,
        S::Cleaning | S::CleanWait | S::Servicing | S::ServiceWait
    )
}
