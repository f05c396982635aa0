//! What may be done for a host: one write each, with what it relies on inside.
//!
//! The steps of a plan are carried out in order, and after any of them the program may stop: the next pass goes on from
//! what it then sees. A step that fails ends the pass.

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
    /// Changes metadata or spec of the host. Carries the version it relies on.
    PatchHost(MergePatch),
    /// Changes the status of the host. Carries the version it relies on. At most one in a plan, and then the last
    /// write to the host.
    PatchStatus(MergePatch),
    /// Creates the HardwareData, whole.
    CreateHardwareData(Box<HardwareData>),
    /// Changes it. Carries the version it relies on.
    PatchHardwareData(MergePatch),
    /// Changes label, owners and finalizers of a Secret of the host's namespace. Carries the version it relies on.
    PatchSecret {
        /// Which.
        name: String,
        /// How.
        patch: MergePatch,
    },
    /// Asks something of Ironic.
    Ironic(Order),
}

/// A request, and what is put on record about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// The request.
    pub request: Request,
    /// For each request that [harms](Request::harm): why it is made.
    pub audit: Option<Audit>,
}

/// Why a harmful request is made. The shell adds the request id that Ironic answers with and writes one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Who or what asked for it: `deletion of the host`, `spec.image was removed`.
    pub why: String,
    /// What was seen, live, that allows it.
    pub seen: String,
}

/// Exactly what hosts ask of Ironic.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Creates the node. The answer is the node; [`Wait::Again`] follows, so that its identity is recorded at once.
    CreateNode(Box<NewNode>),
    /// Changes fields of the node. The answer is a live view of it.
    PatchNode(NodeUuid, Patch),
    /// Creates a port.
    CreatePort {
        /// Of which node.
        node: NodeUuid,
        /// Its address.
        address: MacAddress,
        /// Whether the machine boots from it.
        pxe_enabled: bool,
    },
    /// Asks for a transition.
    Provision(NodeUuid, Transition),
    /// Asks for a change of power.
    Power(NodeUuid, Power),
    /// Has Ironic leave the node alone, so that it lets its record go without touching the machine.
    SetMaintenance(NodeUuid, &'static str),
    /// Has Ironic look after it again.
    ClearMaintenance(NodeUuid),
    /// Removes the record of the node. The machine goes on as it is.
    DeleteNode(NodeUuid),
}

/// What a request may do to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// Nothing that anybody would miss.
    None,
    /// Ironic no longer knows it.
    Forgets,
    /// A running system is cut off.
    Interrupts,
    /// Data on its disks may be lost.
    Erases,
}

impl Request {
    /// What it may do to the machine.
    #[must_use]
    pub const fn harm(&self) -> Harm {
        match self {
            Self::Provision(_, transition) if transition.is_destructive() => Harm::Erases,
            Self::Power(_, power) if power.is_destructive() => Harm::Interrupts,
            Self::DeleteNode(_) => Harm::Forgets,
            Self::CreateNode(_)
            | Self::PatchNode(..)
            | Self::CreatePort { .. }
            | Self::Provision(..)
            | Self::Power(..)
            | Self::SetMaintenance(..)
            | Self::ClearMaintenance(_) => Harm::None,
        }
    }

    /// Whether it may cut off or erase what runs.
    #[must_use]
    pub const fn is_destructive(&self) -> bool {
        matches!(self.harm(), Harm::Interrupts | Harm::Erases)
    }

    /// A word for it, for figures and messages.
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

/// Something to tell about the host, once all steps are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether somebody should look.
    pub importance: Importance,
    /// A word for programs.
    pub reason: Reason,
    /// A sentence for people.
    pub message: String,
}

/// What a pass ends with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Wait {
    /// Nothing is to be done until something changes.
    #[default]
    Settled,
    /// The plan is made again in this pass, from the answers to the steps: the host and the node that a write answered
    /// with are live, and a node that was asked for a transition or a change of power is stale.
    Again,
    /// Until the change feed shows the node changed, or has come by for the first time.
    OnNode(&'static str),
    /// Until a Secret is there or changes.
    OnSecret(String),
    /// Until the host has its turn.
    OnTurn,
    /// Until time has passed.
    After(Duration, &'static str),
    /// Until somebody changes the host.
    OnUser(&'static str),
}

/// What becomes of the host's place among those that load the provisioning network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// It keeps its place, if it has one.
    #[default]
    Keep,
    /// It gives it back.
    Leave,
}

/// A change of a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Count {
    /// The host went from one state to another.
    StateChange {
        /// From.
        from: String,
        /// To.
        to: String,
    },
    /// An error was recorded; the label is that of its event.
    Error(Reason),
    /// Something else happened: the name of the counter.
    One(&'static str),
    /// An operation ended: its histogram, and how long it took.
    Duration(&'static str, Duration),
}

/// What to do for a host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// What is to be looked at first. While this is not empty there is nothing else: the plan is made again.
    pub reads: BTreeSet<Read>,
    /// The writes, in order.
    pub steps: Vec<Step>,
    /// What to tell when they are done.
    pub events: Vec<Event>,
    /// What to count when they are done.
    pub counts: Vec<Count>,
    /// What to wait for.
    pub wait: Wait,
    /// What becomes of its place in the queue.
    pub place: Place,
    /// Whether the steps, once done, take one from the budget of hosts that may be torn down.
    pub spends_budget: bool,
}

impl Plan {
    /// A plan that only asks.
    #[must_use]
    pub fn asking(reads: impl IntoIterator<Item = Read>) -> Self {
        Self {
            reads: reads.into_iter().collect(),
            wait: Wait::Again,
            ..Self::default()
        }
    }

    /// A plan that only waits.
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
        write!(f, "because of {}; seen: {}", self.why, self.seen)
    }
}
