//! The states of a host and the transitions between them, as a table.
//!
//! The code of a state returns a trigger; the table maps it to the next state. The page about hosts is rendered from
//! it.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;

use self::Trigger as T;

/// A reason to leave a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trigger {
    /// The host has a BMC.
    Managed,
    /// The host has no BMC.
    Unmanaged,
    /// The host is externally provisioned.
    External,
    /// Inspection is disabled.
    NotInspected,
    /// Inspection is needed.
    Inspect,
    /// The hardware is known.
    Inspected,
    /// Preparation is complete.
    Prepared,
    /// The root device hints changed.
    Prepare,
    /// An image is requested.
    Provision,
    /// The image is deployed.
    Provisioned,
    /// The deployment failed.
    Failed,
    /// The image is not requested any more, or another one is.
    Cancelled,
    /// The host is not externally provisioned any more.
    NoLongerExternal,
    /// The removed image is requested again and still runs.
    ImageRestored,
    /// The image is removed.
    Deprovisioned,
    /// The machine is off, or must not be powered off.
    PoweredOff,
    /// Ironic has no node of the host.
    NodeAbsent,
    /// The operation failed too often to delay the deletion further.
    GivenUp,
    /// The host is deleted.
    Deleted,
    /// The host is deleted while it is detached.
    DeletedDetached,
}

/// A transition between states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The old state.
    pub from: State,
    /// The trigger.
    pub trigger: Trigger,
    /// The new state.
    pub to: State,
    /// The condition, for the documentation.
    pub when: &'static str,
    /// Whether the transition clears the error and its count.
    pub clears_errors: bool,
}

const fn edge(from: State, trigger: Trigger, to: State, when: &'static str) -> Edge {
    Edge {
        from,
        trigger,
        to,
        when,
        clears_errors: true,
    }
}

/// A transition that keeps the error: it is its reason, or counts towards giving up.
const fn failing(from: State, trigger: Trigger, to: State, when: &'static str) -> Edge {
    Edge {
        from,
        trigger,
        to,
        when,
        clears_errors: false,
    }
}

const DELETED: &str = "the host is deleted";
const DETACHED: &str = "the host is deleted while it is detached, and its deletion is not delayed";

/// All transitions.
pub const EDGES: &[Edge] = &[
    edge(
        State::None,
        T::Managed,
        State::Registering,
        "`spec.bmc` has an address or credentials",
    ),
    edge(State::None, T::Unmanaged, State::Unmanaged, "`spec.bmc` has neither"),
    edge(State::None, T::Deleted, State::Deleting, DELETED),
    edge(
        State::Unmanaged,
        T::Managed,
        State::Registering,
        "`spec.bmc` has an address or credentials",
    ),
    edge(State::Unmanaged, T::Deleted, State::Deleting, DELETED),
    edge(
        State::Registering,
        T::External,
        State::ExternallyProvisioned,
        "the BMC is verified, and `spec.externallyProvisioned` is set",
    ),
    edge(
        State::Registering,
        T::NotInspected,
        State::Preparing,
        "the BMC is verified, and inspection is disabled",
    ),
    edge(
        State::Registering,
        T::Inspect,
        State::Inspecting,
        "the BMC is verified, and the host has a busy-host slot",
    ),
    edge(State::Registering, T::Deleted, State::Deleting, DELETED),
    edge(
        State::Inspecting,
        T::NotInspected,
        State::Preparing,
        "inspection is disabled",
    ),
    edge(
        State::Inspecting,
        T::Inspected,
        State::Preparing,
        "Ironic has an inventory of the machine",
    ),
    edge(State::Inspecting, T::Deleted, State::PoweringOffBeforeDelete, DELETED),
    edge(
        State::MatchProfile,
        T::Inspected,
        State::Preparing,
        "always: an older manager wrote this state",
    ),
    edge(State::MatchProfile, T::Deleted, State::PoweringOffBeforeDelete, DELETED),
    edge(
        State::Preparing,
        T::Prepared,
        State::Available,
        "preparation is complete",
    ),
    edge(State::Preparing, T::Deleted, State::PoweringOffBeforeDelete, DELETED),
    edge(
        State::Available,
        T::External,
        State::ExternallyProvisioned,
        "`spec.externallyProvisioned` is set",
    ),
    edge(
        State::Available,
        T::Inspect,
        State::Inspecting,
        "the annotation `inspect.metal3.io` requests it, and the host has a busy-host slot",
    ),
    edge(
        State::Available,
        T::Prepare,
        State::Preparing,
        "the root device hints changed",
    ),
    failing(
        State::Available,
        T::Provision,
        State::Provisioning,
        "`spec.image` is set, `spec.online` is true, the host has a busy-host slot and no backoff is pending",
    ),
    edge(State::Available, T::Deleted, State::PoweringOffBeforeDelete, DELETED),
    edge(State::Available, T::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::Provisioning,
        T::Provisioned,
        State::Provisioned,
        "the node is active with the image",
    ),
    failing(
        State::Provisioning,
        T::Failed,
        State::Deprovisioning,
        "the deployment failed: its remains are removed at once",
    ),
    edge(
        State::Provisioning,
        T::Cancelled,
        State::Deprovisioning,
        "`spec.image` is no longer set",
    ),
    edge(State::Provisioning, T::Deleted, State::Deprovisioning, DELETED),
    edge(State::Provisioning, T::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::Provisioned,
        T::Cancelled,
        State::Deprovisioning,
        "`spec.image` is no longer set or has another URL, and the budget allows it",
    ),
    edge(
        State::Provisioned,
        T::Deleted,
        State::Deprovisioning,
        "the host is deleted, and the budget allows it",
    ),
    edge(
        State::Provisioned,
        T::External,
        State::PoweringOffBeforeDelete,
        "the host is deleted, and `spec.externallyProvisioned` is set: nothing is erased",
    ),
    edge(State::Provisioned, T::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::ExternallyProvisioned,
        T::NoLongerExternal,
        State::Provisioned,
        "`spec.externallyProvisioned` is no longer set",
    ),
    edge(
        State::ExternallyProvisioned,
        T::Deleted,
        State::PoweringOffBeforeDelete,
        DELETED,
    ),
    edge(
        State::ExternallyProvisioned,
        T::DeletedDetached,
        State::Deleting,
        DETACHED,
    ),
    failing(
        State::Deprovisioning,
        T::Deprovisioned,
        State::Available,
        "the node is available, and the host is not deleted",
    ),
    edge(
        State::Deprovisioning,
        T::ImageRestored,
        State::Provisioned,
        "the image is requested again, and nothing was removed yet",
    ),
    edge(
        State::Deprovisioning,
        T::PoweredOff,
        State::PoweringOffBeforeDelete,
        "the node is available, and the host is deleted",
    ),
    // The error count starts again, so powering off gets its own attempts.
    edge(
        State::Deprovisioning,
        T::GivenUp,
        State::PoweringOffBeforeDelete,
        "the host is deleted, and deprovisioning failed more than three times",
    ),
    edge(
        State::Deprovisioning,
        T::External,
        State::PoweringOffBeforeDelete,
        "the host is deleted, and `spec.externallyProvisioned` is set: nothing is erased",
    ),
    edge(
        State::Deprovisioning,
        T::NodeAbsent,
        State::Deleting,
        "the host is deleted, Ironic has no node of it and the credentials are unusable",
    ),
    edge(State::Deprovisioning, T::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::PoweringOffBeforeDelete,
        T::PoweredOff,
        State::Deleting,
        "the machine is off, or `spec.disablePowerOff` is set",
    ),
    edge(
        State::PoweringOffBeforeDelete,
        T::NodeAbsent,
        State::Deleting,
        "Ironic has no node of the host",
    ),
    edge(
        State::PoweringOffBeforeDelete,
        T::GivenUp,
        State::Deleting,
        "powering off failed more than three times, or the node belongs to another host or instance",
    ),
    edge(
        State::PoweringOffBeforeDelete,
        T::DeletedDetached,
        State::Deleting,
        DETACHED,
    ),
    edge(State::Registering, T::DeletedDetached, State::Deleting, DETACHED),
    edge(State::Inspecting, T::DeletedDetached, State::Deleting, DETACHED),
    edge(State::Preparing, T::DeletedDetached, State::Deleting, DETACHED),
];

/// Every state of the graph, in the order of the life cycle.
pub const STATES: [State; 13] = [
    State::None,
    State::Unmanaged,
    State::Registering,
    State::MatchProfile,
    State::Inspecting,
    State::Preparing,
    State::Available,
    State::Provisioning,
    State::Provisioned,
    State::ExternallyProvisioned,
    State::Deprovisioning,
    State::PoweringOffBeforeDelete,
    State::Deleting,
];

/// The transition for a trigger.
#[must_use]
pub fn edge_for(from: &State, trigger: Trigger) -> Option<&'static Edge> {
    EDGES.iter().find(|edge| edge.from == *from && edge.trigger == trigger)
}

/// The name of a state; the empty state is `(new)`.
#[must_use]
pub fn name(state: &State) -> String {
    match state {
        State::None => "(new)".to_owned(),
        other => other.to_string(),
    }
}

/// The rendered section of the page about hosts.
#[must_use]
pub fn page() -> String {
    let mut text = String::from("## States\n\n```mermaid\nstateDiagram-v2\n");
    let key = |state: &State| name(state).replace(['(', ')'], "").replace(' ', "_");
    for state in &STATES {
        text.push_str(&format!("    state \"{}\" as {}\n", name(state), key(state)));
    }
    for Edge { from, trigger, to, .. } in EDGES {
        text.push_str(&format!("    {} --> {}: {trigger:?}\n", key(from), key(to)));
    }
    text.push_str("```\n\n| From | To | When |\n| --- | --- | --- |\n");
    for Edge { from, to, when, .. } in EDGES {
        text.push_str(&format!("| `{}` | `{}` | {when} |\n", name(from), name(to)));
    }
    text.push_str(
        "| `deleting` | (deleted) | Ironic has no node of the host |\n\n`ready` is an older name of \
                   `available`.\n",
    );
    text
}
