//! The states of a host and every way from one to another, as a table.
//!
//! A state's code names a reason to leave; where that leads is said here and nowhere else, so no host can go a way that
//! is not in the table. The page about hosts is rendered from it.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;

/// A reason to leave a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// A BMC is given.
    Managed,
    /// None is.
    Unmanaged,
    /// Registered, and something else deployed the machine.
    External,
    /// Inspection is forbidden.
    NotInspected,
    /// Registered, and its hardware is to be looked at.
    Inspect,
    /// The hardware is known.
    Inspected,
    /// Disks and firmware are as asked for.
    Prepared,
    /// The disk to deploy to changed.
    Prepare,
    /// An image is asked for.
    Provision,
    /// The image is deployed.
    Provisioned,
    /// The deployment failed.
    Failed,
    /// The image is no longer asked for, or another is.
    Cancelled,
    /// What something else deployed is ours now.
    Claimed,
    /// What was to be removed is wanted again, and still runs.
    TakenBack,
    /// What ran is removed.
    Deprovisioned,
    /// The machine is off, or may not be switched off.
    PoweredOff,
    /// Ironic has no node, so there is nothing to do to the machine.
    Forgotten,
    /// It failed too often to keep the host from going.
    GivenUp,
    /// The host is deleted.
    Deleted,
    /// The host is deleted while it is detached.
    DeletedDetached,
}

/// A way from one state to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// From.
    pub from: State,
    /// Why.
    pub why: Why,
    /// To.
    pub to: State,
    /// In words.
    pub when: &'static str,
    /// Whether what went wrong before is forgotten.
    pub forgets_errors: bool,
}

const fn edge(from: State, why: Why, to: State, when: &'static str) -> Edge {
    Edge {
        from,
        why,
        to,
        when,
        forgets_errors: true,
    }
}

/// A way on which the errors stay: they say why the host goes it, or count towards giving up.
const fn failing(from: State, why: Why, to: State, when: &'static str) -> Edge {
    Edge {
        from,
        why,
        to,
        when,
        forgets_errors: false,
    }
}

const DELETED: &str = "the host is deleted";
const DETACHED: &str = "the host is deleted while it is detached, and its deletion is not delayed";

/// All of them.
pub const EDGES: &[Edge] = &[
    edge(
        State::None,
        Why::Managed,
        State::Registering,
        "`spec.bmc` has an address or credentials",
    ),
    edge(State::None, Why::Unmanaged, State::Unmanaged, "`spec.bmc` has neither"),
    edge(State::None, Why::Deleted, State::Deleting, DELETED),
    edge(
        State::Unmanaged,
        Why::Managed,
        State::Registering,
        "`spec.bmc` has an address or credentials",
    ),
    edge(State::Unmanaged, Why::Deleted, State::Deleting, DELETED),
    edge(
        State::Registering,
        Why::External,
        State::ExternallyProvisioned,
        "the BMC obeys, and `spec.externallyProvisioned` is set",
    ),
    edge(
        State::Registering,
        Why::NotInspected,
        State::Preparing,
        "the BMC obeys, and inspection is disabled",
    ),
    edge(
        State::Registering,
        Why::Inspect,
        State::Inspecting,
        "the BMC obeys, and it is the host's turn",
    ),
    edge(State::Registering, Why::Deleted, State::Deleting, DELETED),
    edge(
        State::Inspecting,
        Why::NotInspected,
        State::Preparing,
        "inspection was disabled meanwhile",
    ),
    edge(
        State::Inspecting,
        Why::Inspected,
        State::Preparing,
        "Ironic has an inventory of the machine",
    ),
    edge(State::Inspecting, Why::Deleted, State::PoweringOffBeforeDelete, DELETED),
    edge(
        State::MatchProfile,
        Why::Inspected,
        State::Preparing,
        "always: an older manager wrote this state",
    ),
    edge(
        State::MatchProfile,
        Why::Deleted,
        State::PoweringOffBeforeDelete,
        DELETED,
    ),
    edge(
        State::Preparing,
        Why::Prepared,
        State::Available,
        "nothing is left to set up",
    ),
    edge(State::Preparing, Why::Deleted, State::PoweringOffBeforeDelete, DELETED),
    edge(
        State::Available,
        Why::External,
        State::ExternallyProvisioned,
        "`spec.externallyProvisioned` is set",
    ),
    edge(
        State::Available,
        Why::Inspect,
        State::Inspecting,
        "the annotation `inspect.metal3.io` asks for it, and it is the host's turn",
    ),
    edge(
        State::Available,
        Why::Prepare,
        State::Preparing,
        "the root device hints changed",
    ),
    failing(
        State::Available,
        Why::Provision,
        State::Provisioning,
        "`spec.image` is set, `spec.online` is true, it is the host's turn and no attempt has to be waited for",
    ),
    edge(State::Available, Why::Deleted, State::PoweringOffBeforeDelete, DELETED),
    edge(State::Available, Why::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::Provisioning,
        Why::Provisioned,
        State::Provisioned,
        "the node is active with the image",
    ),
    failing(
        State::Provisioning,
        Why::Failed,
        State::Deprovisioning,
        "the deployment failed: what is left of it is removed at once",
    ),
    edge(
        State::Provisioning,
        Why::Cancelled,
        State::Deprovisioning,
        "`spec.image` is no longer set",
    ),
    edge(State::Provisioning, Why::Deleted, State::Deprovisioning, DELETED),
    edge(State::Provisioning, Why::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::Provisioned,
        Why::Cancelled,
        State::Deprovisioning,
        "`spec.image` is no longer set or has another URL, and the budget allows it",
    ),
    edge(
        State::Provisioned,
        Why::Deleted,
        State::Deprovisioning,
        "the host is deleted, and the budget allows it",
    ),
    edge(
        State::Provisioned,
        Why::External,
        State::PoweringOffBeforeDelete,
        "the host is deleted, and `spec.externallyProvisioned` is set: nothing is erased",
    ),
    edge(State::Provisioned, Why::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::ExternallyProvisioned,
        Why::Claimed,
        State::Provisioned,
        "`spec.externallyProvisioned` is no longer set",
    ),
    edge(
        State::ExternallyProvisioned,
        Why::Deleted,
        State::PoweringOffBeforeDelete,
        DELETED,
    ),
    edge(
        State::ExternallyProvisioned,
        Why::DeletedDetached,
        State::Deleting,
        DETACHED,
    ),
    failing(
        State::Deprovisioning,
        Why::Deprovisioned,
        State::Available,
        "the node is available, and the host is not deleted",
    ),
    edge(
        State::Deprovisioning,
        Why::TakenBack,
        State::Provisioned,
        "the image is wanted again, and nothing was removed yet",
    ),
    edge(
        State::Deprovisioning,
        Why::PoweredOff,
        State::PoweringOffBeforeDelete,
        "the node is available, and the host is deleted",
    ),
    // Switching off is attempted as often as it always is.
    edge(
        State::Deprovisioning,
        Why::GivenUp,
        State::PoweringOffBeforeDelete,
        "the host is deleted, and removal failed more than three times",
    ),
    edge(
        State::Deprovisioning,
        Why::External,
        State::PoweringOffBeforeDelete,
        "the host is deleted, and `spec.externallyProvisioned` is set: nothing is erased",
    ),
    edge(
        State::Deprovisioning,
        Why::Forgotten,
        State::Deleting,
        "the host is deleted, Ironic has no node of it and the credentials cannot be used",
    ),
    edge(State::Deprovisioning, Why::DeletedDetached, State::Deleting, DETACHED),
    edge(
        State::PoweringOffBeforeDelete,
        Why::PoweredOff,
        State::Deleting,
        "the machine is off, or `spec.disablePowerOff` is set",
    ),
    edge(
        State::PoweringOffBeforeDelete,
        Why::Forgotten,
        State::Deleting,
        "Ironic has no node of the host",
    ),
    edge(
        State::PoweringOffBeforeDelete,
        Why::GivenUp,
        State::Deleting,
        "switching off failed more than three times, or the node is not the host's or serves another",
    ),
    edge(
        State::PoweringOffBeforeDelete,
        Why::DeletedDetached,
        State::Deleting,
        DETACHED,
    ),
    edge(State::Registering, Why::DeletedDetached, State::Deleting, DETACHED),
    edge(State::Inspecting, Why::DeletedDetached, State::Deleting, DETACHED),
    edge(State::Preparing, Why::DeletedDetached, State::Deleting, DETACHED),
];

/// Every state of the graph, in the order of a host's life.
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

/// The way out of a state for a reason.
#[must_use]
pub fn way(from: &State, why: Why) -> Option<&'static Edge> {
    EDGES.iter().find(|edge| edge.from == *from && edge.why == why)
}

/// The name of a state, where there may be none.
#[must_use]
pub fn name(state: &State) -> String {
    match state {
        State::None => "(new)".to_owned(),
        other => other.to_string(),
    }
}

/// The section of the page about hosts.
#[must_use]
pub fn page() -> String {
    let mut text = String::from("## States\n\n```mermaid\nstateDiagram-v2\n");
    let key = |state: &State| name(state).replace(['(', ')'], "").replace(' ', "_");
    for state in &STATES {
        text.push_str(&format!("    state \"{}\" as {}\n", name(state), key(state)));
    }
    for Edge { from, why, to, .. } in EDGES {
        text.push_str(&format!("    {} --> {}: {why:?}\n", key(from), key(to)));
    }
    text.push_str("```\n\n| From | To | When |\n| --- | --- | --- |\n");
    for Edge { from, to, when, .. } in EDGES {
        text.push_str(&format!("| `{}` | `{}` | {when} |\n", name(from), name(to)));
    }
    text.push_str("| `deleting` | gone | Ironic has no node of the host |\n\n`ready`, an older word for `available`, is read as that.\n");
    text
}
