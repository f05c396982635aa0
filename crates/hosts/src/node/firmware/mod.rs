//! Updates of the firmware: what HostFirmwareComponents ask for, which of it can be made, and the cleaning step for it.
//!
//! `order` records what was ordered, `report` is the status for the user.
//!
//! Invariants: an update that cannot be made is in no step; no message contains a URL, which may contain credentials.

mod files;
mod order;
mod report;

use metal3_api::metal3::names::host_error::NOT_IN_IMAGE_HOSTS;
use metal3_api::metal3::v1alpha1::{FirmwareUpdate, HostFirmwareComponents};
use metal3_domain::allowed::Allowed;
use metal3_domain::image::check_firmware_url;
use metal3_ironic::calls::provision::Step;
use metal3_ironic::model::hardware::FirmwareComponent;
use metal3_ironic::model::node::Node;
use serde_json::{Map, json};

pub use super::reported::{When, is_changed_since_report, is_current};
pub use files::{Files, in_steps, left, left_text, of_all, step_left};
pub use order::{
    Order, covers, has_changed, is_under_way, is_worked_on, not_ended, of_others, ordered, ordered_at, unproven,
    with_begun, with_failure, with_order, with_success, without_order,
};
pub use report::{Report, is_reported_otherwise, owned, status};

const INTERFACE: &str = "firmware";
const UPDATE: &str = "update";
/// What separates names and files in a record.
const SEPARATORS: [char; 2] = [';', ','];
/// The prefix of network cards.
const CARD: &str = "nic:";

/// The updates that the object asks for, in their order.
#[must_use]
pub fn requested(object: &HostFirmwareComponents) -> &[FirmwareUpdate] {
    match object.metadata.deletion_timestamp {
        Some(_) => &[],
        None => &object.spec.updates,
    }
}

/// The requested updates that are not recorded with the same URL.
#[must_use]
pub fn due(object: &HostFirmwareComponents) -> Vec<FirmwareUpdate> {
    let is_recorded = |update: &&FirmwareUpdate| object.status.updates.contains(update);
    let all = requested(object).iter();
    all.filter(|update| !is_recorded(update)).cloned().collect()
}

/// An update that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The component.
    pub component: String,
    /// What is wrong, and what to do.
    pub problem: String,
}

/// What is known of a machine that updates are compared with.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// Its node.
    pub node: &'a Node,
    /// Its components, as Ironic reports them.
    pub components: &'a [FirmwareComponent],
    /// The hosts that files may be on.
    pub hosts: &'a Allowed,
}

/// The updates that this machine cannot have.
#[must_use]
pub fn invalid(updates: &[FirmwareUpdate], machine: Machine<'_>) -> Vec<Invalid> {
    let found = updates.iter().filter_map(|update| {
        Some(Invalid {
            component: update.component.clone(),
            problem: problem(update, machine)?,
        })
    });
    found.collect()
}

fn problem(update: &FirmwareUpdate, machine: Machine<'_>) -> Option<String> {
    let name = update.component.as_str();
    if !matches!(name, "bios" | "bmc") && !name.starts_with(CARD) {
        return Some(format!(
            "only bios, bmc, or names that start with {CARD} are allowed; correct its name or remove it"
        ));
    }
    if name.contains(|sign: char| sign.is_control() || SEPARATORS.contains(&sign)) {
        return Some("no component has such a name; correct it or remove it".to_owned());
    }
    // `no-firmware`, and an Ironic without this interface.
    let interface = machine.node.firmware_interface.as_deref();
    if interface.is_none_or(|interface| interface == "no-firmware") {
        return Some(
            "the driver of its BMC has no interface for firmware updates in Ironic; remove the update, or use a Redfish address in \
             spec.bmc.address of the host"
                .to_owned(),
        );
    }
    if is_missing(name, machine.components) {
        return Some(format!(
            "Ironic knows no such component of the machine, but {}; correct its name or remove it",
            listed(machine.components, ", ", |component| shown(&component.component))
        ));
    }
    if let Some(error) = check_firmware_url(&update.url) {
        return Some(format!("its URL is not valid: {error}"));
    }
    // Ironic downloads it, or the BMC.
    (!machine.hosts.url(&update.url)).then(|| {
        format!("the host of its URL {NOT_IN_IMAGE_HOSTS}; ask the administrator of this program to add it, or use another URL")
    })
}

/// Whether Ironic would list this component if the machine had it. Some BMCs list no network cards while no system runs.
fn is_missing(name: &str, known: &[FirmwareComponent]) -> bool {
    let is_of_kind = |component: &&FirmwareComponent| !name.starts_with(CARD) || component.component.starts_with(CARD);
    let mut comparable = known.iter().filter(is_of_kind).peekable();
    comparable.peek().is_some() && !comparable.any(|component| component.component == name)
}

/// The cleaning step that makes these updates.
#[must_use]
pub fn step(updates: &[FirmwareUpdate]) -> Step {
    let one = |update: &FirmwareUpdate| json!({ "component": update.component, "url": update.url });
    let settings: Vec<_> = updates.iter().map(one).collect();
    Step {
        interface: INTERFACE.to_owned(),
        step: UPDATE.to_owned(),
        args: Map::from_iter([("settings".to_owned(), settings.into())]),
        priority: None,
    }
}

/// The updates that these steps make before anything else.
#[must_use]
pub fn first_in(steps: &[Step]) -> Files {
    in_steps(steps.get(..1).unwrap_or_default())
}

/// Whether an operation that begins with these updates would go on with others: Ironic polls the first one that an earlier cleaning
/// left, which reboots the machine or ends the step of another interface, and begins with those behind it. A step that begins with
/// updates replaces what is left.
#[must_use]
pub fn leaves_others(node: &Node, first: &Files) -> bool {
    !left(node).is_subset(first)
}

/// The beginning of the error of a host whose updates cannot be made.
const UNUSABLE: &str = "its HostFirmwareComponents cannot be applied: ";

/// Whether an error is about updates, and not about an operation that failed.
#[must_use]
pub fn is_of_updates(message: &str) -> bool {
    message.starts_with(UNUSABLE)
}

/// The error of a host with invalid updates.
#[must_use]
pub fn unusable_text(invalid: &[Invalid]) -> String {
    format!(
        "{UNUSABLE}{}. Nothing is changed until spec.updates is corrected",
        invalid_text(invalid)
    )
}

/// The error of a host whose cleaning with updates failed.
#[must_use]
pub fn failure_text(names: &str, error: &str) -> String {
    format!("the cleaning with updates of the firmware ({names}) failed: {error}")
}

/// The error of a host whose service with updates failed.
#[must_use]
pub fn service_failure_text(names: &str, error: &str) -> String {
    format!("the service with updates of the firmware ({names}) failed: {error}")
}

/// A message names at most this many components, each up to this length.
const MOST: usize = 5;
const LONGEST: usize = 80;

fn invalid_text(invalid: &[Invalid]) -> String {
    listed(invalid, "; ", |one| {
        format!("{}: {}", shown(&one.component), one.problem)
    })
}

/// The names of the components of these updates.
#[must_use]
pub fn names_text(updates: &[FirmwareUpdate]) -> String {
    listed(updates, ", ", |update| shown(&update.component))
}

fn listed<T>(all: &[T], separator: &str, show: impl Fn(&T) -> String) -> String {
    let first = all.iter().take(MOST).map(show).collect::<Vec<_>>().join(separator);
    match all.len().saturating_sub(MOST) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Text of a user or a BMC, on one line and not too long.
fn shown(text: &str) -> String {
    text.escape_debug().to_string().chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests;
