//! The states of a host and the transitions between them, as a table.
//!
//! The code of a state returns a trigger; the table maps it to the next state. The page about hosts is rendered from
//! it.

use metal3_api::metal3::v1alpha1::ProvisioningState as State;

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
    /// Other root device hints or RAID volumes are asked for.
    Prepare,
    /// An image or a deploy step is requested.
    Provision,
    /// What was requested is deployed.
    Provisioned,
    /// The deployment failed.
    Failed,
    /// What was requested is not any more, or something else is.
    Cancelled,
    /// The host is not externally provisioned any more.
    NoLongerExternal,
    /// What is to be removed is requested again and still runs.
    ImageRestored,
    /// What was deployed is removed.
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

/// The table of transitions, grouped by the old state. `edge` clears the error and its count; `failing` keeps it: it is
/// the reason of the transition, or counts towards giving up.
macro_rules! edges {
    ($($from:ident { $($kind:ident $trigger:ident => $to:ident: $when:expr;)+ })+) => {
        &[$($(Edge {
            from: State::$from,
            trigger: Trigger::$trigger,
            to: State::$to,
            when: $when,
            clears_errors: edges!(@clears $kind),
        },)+)+]
    };
    (@clears edge) => { true };
    (@clears failing) => { false };
}

const DELETED: &str = "the host is deleted";
const DETACHED: &str = "the host is deleted while it is detached, and its deletion is not delayed";

/// All transitions.
pub const EDGES: &[Edge] = edges! {
    None {
        edge Managed => Registering: "`spec.bmc` has an address or credentials";
        edge Unmanaged => Unmanaged: "`spec.bmc` has neither";
        edge Deleted => Deleting: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Unmanaged {
        edge Managed => Registering: "`spec.bmc` has an address or credentials";
        edge Deleted => Deleting: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Registering {
        edge External => ExternallyProvisioned: "the BMC is verified, and `spec.externallyProvisioned` is set";
        edge NotInspected => Preparing: "the BMC is verified, and inspection is disabled";
        edge Inspect => Inspecting: "the BMC is verified, and the host has a busy-host slot";
        edge Deleted => Deleting: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Inspecting {
        edge NotInspected => Preparing: "inspection is disabled";
        edge Inspected => Preparing: "Ironic has an inventory of the machine";
        edge Deleted => PoweringOffBeforeDelete: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    MatchProfile {
        edge Inspected => Preparing: "always: an older manager wrote this state";
        edge Deleted => PoweringOffBeforeDelete: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Preparing {
        edge Prepared => Available: "preparation is complete";
        edge Deleted => PoweringOffBeforeDelete: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Available {
        edge External => ExternallyProvisioned: "`spec.externallyProvisioned` is set";
        edge Inspect => Inspecting: "the annotation `inspect.metal3.io` requests it, and the host has a busy-host slot";
        edge Prepare => Preparing: "other root device hints or RAID volumes are asked for";
        failing Provision => Provisioning:
            "`spec.image` or `spec.customDeploy` is set, `spec.online` is true, the host has a busy-host slot and no backoff is pending";
        edge Deleted => PoweringOffBeforeDelete: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Provisioning {
        edge Provisioned => Provisioned: "the node is active with what was requested";
        failing Failed => Deprovisioning:
            "the deployment failed, or Ironic lost the software volumes: what remains is removed at once";
        edge Cancelled => Deprovisioning: "neither `spec.image` nor `spec.customDeploy` is set any more";
        edge Deleted => Deprovisioning: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Provisioned {
        edge Cancelled => Deprovisioning:
            "`spec.image` is no longer set or has another URL, or `spec.customDeploy` is removed or changed, and the budget allows it";
        edge Deleted => Deprovisioning: "the host is deleted, and the budget allows it";
        edge External => PoweringOffBeforeDelete:
            "the host is deleted, and `spec.externallyProvisioned` is set: nothing is erased";
        edge DeletedDetached => Deleting: DETACHED;
    }
    ExternallyProvisioned {
        edge NoLongerExternal => Provisioned: "`spec.externallyProvisioned` is no longer set";
        edge Deleted => PoweringOffBeforeDelete: DELETED;
        edge DeletedDetached => Deleting: DETACHED;
    }
    Deprovisioning {
        failing Deprovisioned => Available: "the node is available, and the host is not deleted";
        edge ImageRestored => Provisioned: "what ran is requested again, and nothing was removed yet";
        edge PoweredOff => PoweringOffBeforeDelete: "the node is available, and the host is deleted";
        // The error count starts again, so powering off gets its own attempts.
        edge GivenUp => PoweringOffBeforeDelete: "the host is deleted, and deprovisioning failed more than three times";
        edge External => PoweringOffBeforeDelete:
            "the host is deleted, and `spec.externallyProvisioned` is set: nothing is erased";
        edge NodeAbsent => Deleting: "the host is deleted, Ironic has no node of it and the credentials are unusable";
        edge DeletedDetached => Deleting: DETACHED;
    }
    PoweringOffBeforeDelete {
        edge PoweredOff => Deleting: "the machine is off, or `spec.disablePowerOff` is set";
        edge NodeAbsent => Deleting: "Ironic has no node of the host";
        edge GivenUp => Deleting:
            "powering off failed more than three times, or the node belongs to another host or instance";
        edge DeletedDetached => Deleting: DETACHED;
    }
};

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
