//! The writes of a plan. Each carries its own precondition.
//!
//! The steps run in order. The process may stop after any of them: the next reconcile continues from what it then
//! observes. A failed step ends the reconcile.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::HardwareData;
use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_ironic::calls::node::NewNode;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::state::Power;
use metal3_runtime::events::Importance;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::reason::Reason;

use crate::facts::Read;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Patches metadata or spec of the host, with the observed version as precondition.
    PatchHost(MergePatch),
    /// Patches the status of the host, with the observed version as precondition. At most one in a plan, and the last
    /// write to the host.
    PatchStatus(MergePatch),
    /// Creates the HardwareData.
    CreateHardwareData(Box<HardwareData>),
    /// Patches the HardwareData, with the observed version as precondition.
    PatchHardwareData(MergePatch),
    /// Patches label, owners and finalizers of a Secret in the host's namespace, with the observed version as
    /// precondition.
    PatchSecret {
        /// The name.
        name: String,
        /// The patch.
        patch: MergePatch,
    },
    /// Sends a request to Ironic.
    Ironic(Order),
}

/// A request to Ironic and its audit record.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The request.
    pub request: Request,
    /// The reason, for each request with an [impact](Request::impact).
    pub audit: Option<Audit>,
}

/// Why a disruptive request is sent. The executor adds Ironic's request id and logs one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// What caused it: `deletion of the host`, `spec.image was removed`.
    pub why: String,
    /// The live observation that allows it.
    pub observed: String,
}

/// Every request that the host controller sends to Ironic.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Creates the node. The response is the node; [`Wait::Replan`] follows, so that its UUID is recorded at once.
    CreateNode(Box<NewNode>),
    /// Changes fields of the node. The response is the node, live.
    PatchNode(NodeUuid, Patch),
    /// Creates a port.
    CreatePort {
        /// The node.
        node: NodeUuid,
        /// The MAC address.
        address: MacAddress,
        /// Whether the machine boots through it.
        pxe_enabled: bool,
    },
    /// Requests a transition of the provision state.
    Provision(NodeUuid, Transition),
    /// Requests a power change.
    Power(NodeUuid, Power),
    /// Puts the node into maintenance, so that Ironic deletes its record without touching the machine.
    SetMaintenance(NodeUuid, &'static str),
    /// Ends maintenance.
    ClearMaintenance(NodeUuid),
    /// Deletes the record of the node. The machine stays as it is.
    DeleteNode(NodeUuid),
}

/// The effect of a request on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    /// No effect on what runs.
    None,
    /// Ironic deletes its record.
    RemovesRecord,
    /// A running system is interrupted.
    Interrupts,
    /// Data on the disks may be lost.
    Erases,
}

impl Request {
    /// The effect on the machine.
    #[must_use]
    pub const fn impact(&self) -> Impact {
        match self {
            Self::Provision(_, transition) if transition.is_destructive() => Impact::Erases,
            Self::Power(_, power) if power.is_destructive() => Impact::Interrupts,
            Self::DeleteNode(_) => Impact::RemovesRecord,
            Self::CreateNode(_)
            | Self::PatchNode(..)
            | Self::CreatePort { .. }
            | Self::Provision(..)
            | Self::Power(..)
            | Self::SetMaintenance(..)
            | Self::ClearMaintenance(_) => Impact::None,
        }
    }

    /// Whether it may interrupt or erase what runs.
    #[must_use]
    pub const fn is_destructive(&self) -> bool {
        matches!(self.impact(), Impact::Interrupts | Impact::Erases)
    }

    /// The name in metrics and messages.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::CreateNode(_) => "create node",
            Self::PatchNode(..) => "change node",
            Self::CreatePort { .. } => "create port",
            Self::Provision(_, transition) => transition.verb(),
            Self::Power(_, Power::On) => "power on",
            Self::Power(_, Power::Off) => "power off",
            Self::Power(_, Power::SoftOff(_)) => "soft power off",
            Self::Power(_, Power::Reboot) => "rebooting",
            Self::Power(_, Power::SoftReboot) => "soft rebooting",
            Self::SetMaintenance(..) => "set maintenance",
            Self::ClearMaintenance(_) => "clear maintenance",
            Self::DeleteNode(_) => "delete node",
        }
    }
}

/// An event, recorded once all steps are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Normal or warning.
    pub importance: Importance,
    /// The reason.
    pub reason: Reason,
    /// The message.
    pub message: String,
}

/// Cause of a [`Wait::After`]: the backoff of a failed operation.
pub(crate) const RETRY_AFTER_FAILURE: &str = "retry after a failure";
/// Cause of a [`Wait::After`]: the backoff of a failed deployment.
pub(crate) const RETRY_AFTER_DEPLOYMENT: &str = "retry after a failed deployment";
/// Cause of a [`Wait::After`]: nothing reports that Ironic responds again.
pub(crate) const IRONIC_UNREACHABLE: &str = "Ironic is unreachable";

/// What the host waits for after the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wait {
    /// A change of any observed object.
    #[default]
    Settled,
    /// Plan again in the same reconcile with the responses to the steps: the host and the node of a response are live,
    /// a node after a transition or power request is stale.
    Replan,
    /// A change of the node in the change feed, or the first complete poll of the feed.
    OnNode(&'static str),
    /// A change of a Secret.
    OnSecret(String),
    /// A busy-host slot.
    OnSlot,
    /// A delay.
    After(Duration, &'static str),
    /// A change of the host by the user.
    OnUser(&'static str),
}

/// What happens to the busy-host slot of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SlotUse {
    /// The host keeps its slot, if it has one.
    #[default]
    Keep,
    /// The host releases its slot.
    Release,
}

/// A change of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    /// The host changed state.
    StateChange {
        /// The old state.
        from: String,
        /// The new state.
        to: String,
    },
    /// An error was recorded; the label is the reason of its event.
    Error(Reason),
    /// The name of a counter to increment.
    One(&'static str),
    /// The histogram of an operation that ended, and its duration.
    Duration(&'static str, Duration),
}

/// The plan for one host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Reads needed first. While this is not empty, all other fields are empty and planning is repeated after the
    /// reads.
    pub reads: BTreeSet<Read>,
    /// The writes, in order.
    pub steps: Vec<Step>,
    /// Events to record when the steps are done.
    pub events: Vec<Event>,
    /// Metrics to count when the steps are done.
    pub counts: Vec<Count>,
    /// What the host waits for.
    pub wait: Wait,
    /// What happens to its busy-host slot.
    pub slot_use: SlotUse,
    /// Whether the steps use one unit of the deprovision budget.
    pub spends_budget: bool,
}

impl Plan {
    /// A plan of reads only.
    #[must_use]
    pub fn reading(reads: impl IntoIterator<Item = Read>) -> Self {
        Self {
            reads: reads.into_iter().collect(),
            wait: Wait::Replan,
            ..Self::default()
        }
    }

    /// A plan without writes.
    #[must_use]
    pub fn waiting(wait: Wait) -> Self {
        Self {
            wait,
            ..Self::default()
        }
    }

    /// The requests to Ironic among the steps.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.steps.iter().filter_map(|step| match step {
            Step::Ironic(order) => Some(&order.request),
            Step::PatchHost(_)
            | Step::PatchStatus(_)
            | Step::CreateHardwareData(_)
            | Step::PatchHardwareData(_)
            | Step::PatchSecret { .. } => None,
        })
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cause: {}; observed: {}", self.why, self.observed)
    }
}
