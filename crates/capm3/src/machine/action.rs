//! The actions of a plan: one write each.

use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3MachineStatus};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::version::ResourceVersion;

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
}

/// The next step for a machine. When the process stops after any of its writes, the next reconcile continues from
/// there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// The machine must be read live, with the same hosts. The plan is then made again.
    pub confirm: bool,
    /// The host to read live; the hosts are then observed, and the plan is made, again.
    pub confirm_host: Option<String>,
    /// In order. When one fails, the rest and the status are skipped.
    pub actions: Vec<Action>,
    /// The status after the actions; `None` when it is unchanged.
    pub status: Option<Box<Metal3MachineStatus>>,
    /// Whether the status only reports a wait, so that its write may be delayed.
    pub is_wait: bool,
    /// Whether the status records what no later reconcile can derive: it is written in the same reconcile.
    pub must_record: bool,
    /// Whether the Nodes of the workload cluster must be read.
    pub needs_nodes: bool,
}

impl Plan {
    /// A plan that requires a live read of the machine.
    #[must_use]
    pub fn confirm() -> Self {
        Self {
            confirm: true,
            ..Self::default()
        }
    }

    /// A plan that requires a live read of a host.
    #[must_use]
    pub fn confirm_host(name: &str) -> Self {
        Self {
            confirm_host: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// Whether no action or live read precedes the status.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.confirm && self.confirm_host.is_none() && self.actions.is_empty()
    }
}
