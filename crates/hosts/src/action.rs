//! The actions of a plan. Each write carries its own precondition.
//!
//! The process may stop after any of them: the next reconcile continues from what it then observes. A failed action
//! ends the reconcile.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use metal3_api::metal3::v1alpha1::{FirmwareSchema, HardwareData, PreprovisioningImage};
use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_domain::uri::redacted_url;
use metal3_ironic::calls::node::NewNode;
use metal3_ironic::calls::patch::Patch;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::calls::state::Power;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::{self, PlannedEvent};
use metal3_runtime::reason::Reason;
use serde_json::Value;

use crate::facts::{CleaningOrder, CleaningProgress, DiscOrder, Read};
use crate::node::{bios, firmware};

/// The plan for one host. Its status is a patch with the observed version as precondition, and is absent when the plan
/// patches the host. [`Next::Requeue`](metal3_runtime::work::Next::Requeue) plans again in the same reconcile with the
/// responses to the actions: the host and the node of a response are live, a node after a transition or power request
/// is stale.
pub type Plan = plan::Plan<BTreeSet<Read>, Action>;

/// A write, or a record in this process.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Reserves one unit of the deprovision budget. Planning is repeated when another host took the last one.
    ReserveBudget,
    /// Patches metadata or spec of the host, with the observed version as precondition.
    PatchHost(MergePatch),
    /// Creates the HardwareData.
    CreateHardwareData(Box<HardwareData>),
    /// Patches the HardwareData, with the observed version as precondition.
    PatchHardwareData(MergePatch),
    /// Patches label and finalizers of a Secret in the host's namespace, with the observed version as
    /// precondition.
    PatchSecret {
        /// The name.
        name: String,
        /// The patch.
        patch: MergePatch,
    },
    /// Creates the PreprovisioningImage.
    CreateAgentImage(Box<PreprovisioningImage>),
    /// Patches the PreprovisioningImage, with the observed version as precondition.
    PatchAgentImage(MergePatch),
    /// Sends a request to Ironic.
    Ironic(Order),
    /// Patches the status of the HostFirmwareComponents with what was ordered or became of it, with the observed version as
    /// precondition. What follows in the plan relies on it.
    RecordUpdates(MergePatch),
    /// Patches the owners of the HostFirmwareComponents, with the observed version as precondition.
    PatchFirmwareComponents(MergePatch),
    /// Patches the status of the HostFirmwareComponents with a report, with the observed version as precondition.
    ReportFirmwareComponents {
        /// The patch.
        patch: MergePatch,
        /// Recorded on the object after it.
        event: Option<PlannedEvent>,
    },
    /// Creates the FirmwareSchema, unless it exists: one of this name describes the same settings.
    CreateFirmwareSchema(Box<FirmwareSchema>),
    /// Patches the owners of the HostFirmwareSettings, with the observed version as precondition.
    PatchFirmwareSettings(MergePatch),
    /// Patches the owners of the HostUpdatePolicy, with the observed version as precondition.
    PatchUpdatePolicy(MergePatch),
    /// Patches the status of the HostFirmwareSettings, with the observed version as precondition.
    ReportFirmwareSettings {
        /// The patch.
        patch: MergePatch,
        /// Recorded on the object after it.
        event: Option<PlannedEvent>,
    },
    /// Patches the finalizers of the DataImage, with the observed version as precondition. What follows relies on it.
    ProtectDisc(MergePatch),
    /// Patches the status of the DataImage with the disc that is inserted next, with the observed version as precondition. What
    /// follows in the plan relies on it. For the node of a deleted host: that the drive is empty, before nothing could read it.
    RecordDisc {
        /// The patch.
        patch: MergePatch,
        /// Recorded on the object after it.
        event: Option<PlannedEvent>,
    },
    /// Patches the status of the DataImage with a report, with the observed version as precondition.
    ReportDisc {
        /// The patch.
        patch: MergePatch,
        /// Recorded on the object after it.
        event: Option<PlannedEvent>,
    },
    /// An attempt to insert or eject the disc of the host failed.
    DiscFailed {
        /// Why, as reported.
        message: String,
        /// Whether nothing more is attempted before the machine starts.
        is_last: bool,
    },
    /// The machine runs: what was attempted with its disc is over.
    EndDiscAttempts,
    /// Counts in a metric, once all writes are done.
    Count(Count),
    /// The requested power change is over or not wanted any more: later errors of the node are not its result.
    EndPowerRequest,
    /// The retry of a rejected request is due, or the host left the state that needed it: it is reported no more.
    EndRefusal,
    /// Releases the busy-host slot of the host, once all writes are done.
    ReleaseSlot,
}

impl Action {
    /// Whether it deletes the record of the node. What precedes it in a plan only prepares that.
    #[must_use]
    pub fn removes_record(&self) -> bool {
        matches!(self, Self::Ironic(order) if matches!(order.request.impact(), Impact::RemovesRecord))
    }

    /// Whether it reports about the HostFirmwareSettings, the HostFirmwareComponents or the DataImage. What the host needs does not wait for it: it comes after the status of
    /// the host.
    #[must_use]
    pub const fn is_report(&self) -> bool {
        matches!(
            self,
            Self::CreateFirmwareSchema(_)
                | Self::PatchFirmwareSettings(_)
                | Self::PatchUpdatePolicy(_)
                | Self::ReportFirmwareSettings { .. }
                | Self::PatchFirmwareComponents(_)
                | Self::ReportFirmwareComponents { .. }
                | Self::ReportDisc { .. }
        )
    }

    /// Whether it takes effect in this process only, once all writes are done.
    #[must_use]
    pub const fn is_record(&self) -> bool {
        matches!(
            self,
            Self::Count(_)
                | Self::DiscFailed { .. }
                | Self::EndDiscAttempts
                | Self::EndPowerRequest
                | Self::EndRefusal
                | Self::ReleaseSlot
        )
    }
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
    /// Creates the node. The response is the node; the plan requeues, so that its UUID is recorded at once.
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
    /// Sets the RAID volumes that the next cleaning makes.
    SetRaid(NodeUuid, Vec<Value>),
    /// Requests a transition of the provision state.
    Provision(NodeUuid, Transition),
    /// Requests a power change.
    Power(NodeUuid, Power),
    /// Inserts a disc into the virtual drive.
    InsertDisc(NodeUuid, Disc),
    /// Ejects the discs from the virtual drives.
    EjectDiscs(NodeUuid),
    /// Puts the node into maintenance, so that Ironic deletes its record without touching the machine.
    SetMaintenance(NodeUuid, &'static str),
    /// Ends maintenance.
    ClearMaintenance(NodeUuid),
    /// Deletes the record of the node. The machine stays as it is.
    DeleteNode(NodeUuid),
}

/// Where a disc is. `Debug` hides what may be a login.
#[derive(Clone, PartialEq, Eq)]
pub struct Disc {
    /// Its URL, as the user wrote it.
    pub url: String,
}

impl fmt::Debug for Disc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted_url(&self.url))
    }
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
    pub fn impact(&self) -> Impact {
        match self {
            Self::Provision(_, transition) if transition.is_destructive() => Impact::Erases,
            // One that erases nothing boots the machine.
            Self::Provision(_, Transition::Clean(_) | Transition::Service(_)) => Impact::Interrupts,
            Self::Power(_, power) if power.is_destructive() => Impact::Interrupts,
            Self::DeleteNode(_) => Impact::RemovesRecord,
            Self::CreateNode(_)
            | Self::PatchNode(..)
            | Self::CreatePort { .. }
            | Self::SetRaid(..)
            | Self::Provision(..)
            | Self::Power(..)
            | Self::InsertDisc(..)
            | Self::EjectDiscs(_)
            | Self::SetMaintenance(..)
            | Self::ClearMaintenance(_) => Impact::None,
        }
    }

    /// Whether host and node must be compared again when others delayed it: it boots another system, it interrupts or ends something
    /// that is wanted again by then, or a maintenance that an operator began.
    pub(crate) fn is_compared_again(&self) -> bool {
        let is_late = matches!(
            self,
            Self::ClearMaintenance(_)
                | Self::InsertDisc(..)
                | Self::EjectDiscs(_)
                | Self::Provision(_, Transition::Abort | Transition::Inspect)
        );
        is_late || !matches!(self.impact(), Impact::None)
    }

    /// Whether it only changes Ironic's record of the node.
    pub(crate) const fn is_of_record(&self) -> bool {
        match self {
            Self::CreateNode(_)
            | Self::PatchNode(..)
            | Self::CreatePort { .. }
            | Self::SetRaid(..)
            | Self::SetMaintenance(..)
            | Self::ClearMaintenance(_) => true,
            Self::Provision(..)
            | Self::Power(..)
            | Self::InsertDisc(..)
            | Self::EjectDiscs(_)
            | Self::DeleteNode(_) => false,
        }
    }

    /// What it changes in the BIOS or the firmware, if it is a cleaning or a service.
    pub(crate) fn cleaning_order(&self) -> Option<CleaningOrder> {
        let Self::Provision(node, transition @ (Transition::Clean(steps) | Transition::Service(steps))) = self else {
            return None;
        };
        let (settings, files) = (bios::settings_of(steps), firmware::in_steps(steps));
        if settings.is_none() && files.is_empty() {
            return None;
        }
        Some(CleaningOrder {
            node: node.clone(),
            settings: settings.unwrap_or_default(),
            files,
            left: None,
            is_only: !transition.is_destructive(),
            progress: CleaningProgress::Unconfirmed,
        })
    }

    /// What it does with the disc of the host.
    pub(crate) const fn disc_order(&self) -> Option<DiscOrder> {
        match self {
            Self::InsertDisc(..) => Some(DiscOrder::Insert),
            Self::EjectDiscs(_) => Some(DiscOrder::Eject),
            _ => None,
        }
    }

    /// Whether it is a cleaning with steps.
    pub(crate) const fn is_cleaning(&self) -> bool {
        matches!(self, Self::Provision(_, Transition::Clean(_)))
    }

    /// Whether it is a cleaning or a service with steps.
    pub(crate) const fn runs_steps(&self) -> bool {
        matches!(self, Self::Provision(_, Transition::Clean(_) | Transition::Service(_)))
    }

    /// The node that it reboots.
    pub(crate) fn rebooted_node(&self) -> Option<NodeUuid> {
        match self {
            Self::Power(node, Power::Reboot | Power::SoftReboot) => Some(node.clone()),
            _ => None,
        }
    }

    /// The power state that it leads to: on or off.
    pub(crate) const fn power_state(&self) -> Option<bool> {
        match self {
            Self::Power(_, Power::On | Power::Reboot | Power::SoftReboot) => Some(true),
            Self::Power(_, Power::Off | Power::SoftOff(_)) => Some(false),
            _ => None,
        }
    }

    /// The name in metrics and messages.
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::CreateNode(_) => "create node",
            Self::PatchNode(..) => "change node",
            Self::CreatePort { .. } => "create port",
            Self::SetRaid(..) => "set RAID",
            Self::Provision(_, transition) => transition.verb(),
            Self::Power(_, Power::On) => "power on",
            Self::Power(_, Power::Off) => "power off",
            Self::Power(_, Power::SoftOff(_)) => "soft power off",
            Self::Power(_, Power::Reboot) => "rebooting",
            Self::Power(_, Power::SoftReboot) => "soft rebooting",
            Self::InsertDisc(..) => "insert disc",
            Self::EjectDiscs(_) => "eject discs",
            Self::SetMaintenance(..) => "set maintenance",
            Self::ClearMaintenance(_) => "clear maintenance",
            Self::DeleteNode(_) => "delete node",
        }
    }
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
    /// A power change was requested.
    Power {
        /// Whether to on.
        on: bool,
    },
    /// A Secret for the config drive has no value; the label is the key of the value.
    ConfigData(&'static str),
    /// The name of a counter to increment.
    One(&'static str),
    /// The histogram of an operation that ended, and its duration.
    Duration(&'static str, Duration),
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cause: {}; observed: {}", self.why, self.observed)
    }
}
