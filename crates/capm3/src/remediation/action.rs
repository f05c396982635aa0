//! What a plan for a remediation consists of: live reads, actions of one write each, and the status.

use metal3_api::infrastructure::v1beta2::Metal3RemediationStatus;
use metal3_capi::workload::NodeChange;
use metal3_runtime::patch::MergePatch;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Patches the remediation, at its last version in this reconcile.
    PatchRemediation(MergePatch),
    /// Patches a host. The patch contains the version that the plan is based on.
    PatchHost {
        /// Name of the host.
        host: String,
        /// The purpose.
        change: HostChange,
        /// The patch.
        patch: MergePatch,
    },
    /// Changes the Node that was read.
    ChangeNode(NodeChange),
    /// Patches the status of the Machine. The patch contains the version that the plan is based on.
    PatchMachineStatus(MergePatch),
}

/// The purpose of a patch of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostChange {
    /// Requests that it is powered off and stays off.
    PowerOff,
    /// Ends that request.
    PowerOn,
    /// Excludes it from selection, and ends that request.
    Exclude,
    /// Ends a request of a remediation that does not exist.
    Orphan,
}

/// The plan for a remediation. When the process stops after any of its writes, the next reconcile continues from there.
pub type Plan = metal3_runtime::plan::Plan<Reads, Action, Metal3RemediationStatus>;

/// The live read without which the planner cannot decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reads {
    /// None.
    #[default]
    Nothing,
    /// The Node.
    Node,
    /// What is left on the Node.
    Drained,
    /// Remediation, Machine, Metal3Machine, host and Cluster, before a step that cannot be undone.
    Everything,
}
