//! What a plan for a machine consists of: live reads, actions of one write each, and the status.

use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3MachineStatus};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::version::ResourceVersion;

use crate::label_sync::CopiedLabels;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Patches the machine, at its last version in this reconcile: the planned one, or the result of the preceding
    /// write.
    PatchMachine(MergePatch),
    /// Patches a host. The patch contains the version that the plan is based on.
    PatchHost {
        /// Name of the host.
        host: String,
        /// The purpose.
        change: HostChange,
        /// The patch.
        patch: MergePatch,
    },
    /// Sets or removes the cluster label of the Secret with a host's credentials. A missing Secret is not an error.
    LabelSecret {
        /// Name of the Secret.
        secret: String,
        /// The Cluster.
        cluster: Option<String>,
    },
    /// Creates the claim on data.
    CreateClaim(Box<Metal3DataClaim>),
    /// Patches the finalizers of the claim on data.
    PatchClaim {
        /// Name of the claim.
        claim: String,
        /// The patch, with the version inside.
        patch: MergePatch,
    },
    /// Deletes the claim on data at one version.
    DeleteClaim {
        /// Name of the claim.
        claim: String,
        /// UID of the claim.
        uid: String,
        /// Resource version of the claim.
        version: ResourceVersion,
    },
    /// Sets the provider ID of a Node in the workload cluster that has none.
    AdoptNode {
        /// Name of the Node.
        node: String,
        /// The ID.
        provider_id: String,
    },
    /// Gives the Node the labels of the host, and remembers it.
    CopyLabels {
        /// The patch, with the version inside; `None` when the Node has the labels.
        patch: Option<MergePatch>,
        /// The Node, and its labels afterwards.
        copied: CopiedLabels,
    },
}

/// The purpose of a patch of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostChange {
    /// Sets the machine as its consumer.
    Claim,
    /// Writes image and data.
    Provision,
    /// Updates what may change while it is provisioned.
    Update,
    /// Pauses its reconciliation.
    Pause,
    /// Resumes its reconciliation.
    Resume,
    /// Removes image and data.
    Deprovision,
    /// Removes the consumer.
    Release,
    /// Removes the machine from the owners.
    Disown,
}

/// The plan for a machine. When the process stops after any of its writes, the next reconcile continues from there.
pub type Plan = metal3_runtime::plan::Plan<Reads, Action, StatusWrite>;

/// The live read without which the planner cannot decide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reads {
    /// None.
    #[default]
    Nothing,
    /// The machine. The hosts are not observed again, so that the read confirms them.
    Machine,
    /// The host of this name; the other objects are then observed again.
    Host(String),
    /// The Metal3Cluster of this name; the other objects are then observed again.
    Metal3Cluster(String),
    /// The Metal3MachineTemplate of this name.
    Template(String),
    /// The set of the machine, with its template.
    Set,
    /// The Nodes of the workload cluster.
    Nodes,
    /// The Node of this name in the workload cluster.
    Node(String),
    /// The labels of the Node of this name.
    NodeLabels(String),
}

/// The status to write.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusWrite {
    /// The status.
    pub status: Box<Metal3MachineStatus>,
    /// When it is written.
    pub urgency: Urgency,
}

/// When a status is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It only changes the message of a wait that is reported already, or reports a wait for the labels of the Node: the
    /// numbers of hosts, which every waiting machine has, or the Nodes, which the server of a tenant decides about. It is
    /// written once for many changes.
    Recount,
    /// It only reports a wait, so that its write may be delayed.
    Wait,
    /// After the actions, unless they changed the generation.
    Report,
    /// In the same reconcile: it records what no later reconcile can derive.
    Record,
}
