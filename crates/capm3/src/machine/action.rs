//! What may be done for a machine: one write each.

use metal3_api::infrastructure::v1beta2::{Metal3DataClaim, Metal3MachineStatus};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::version::ResourceVersion;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Changes the machine, at the version that this pass saw last: the one the plan was made from, or the one that its
    /// own earlier write left.
    PatchMachine(MergePatch),
    /// Changes a host. The patch carries the version of the host that the plan was made from.
    PatchHost {
        /// Name of the host.
        host: String,
        /// What is done.
        deed: Deed,
        /// How.
        patch: MergePatch,
    },
    /// Marks the Secret with the credentials of a host as belonging to a Cluster, or to none. One that is not there is
    /// no trouble.
    LabelSecret {
        /// Name of the Secret.
        secret: String,
        /// The Cluster.
        cluster: Option<String>,
    },
    /// Asks for data.
    CreateClaim(Box<Metal3DataClaim>),
    /// Changes the finalizers of the claim on data.
    PatchClaim {
        /// Name of the claim.
        claim: String,
        /// How, with the version inside.
        patch: MergePatch,
    },
    /// Deletes one version of the claim on data.
    DeleteClaim {
        /// Name of the claim.
        claim: String,
        /// Which claim of that name.
        uid: String,
        /// Which version of it.
        version: ResourceVersion,
    },
    /// Gives a Node of the workload cluster its provider ID. It has none yet.
    AdoptNode {
        /// Name of the Node.
        node: String,
        /// The ID.
        provider_id: String,
    },
}

/// What a change of a host is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Deed {
    /// It gets the machine as its consumer.
    Claim,
    /// It is told what to run.
    Provision,
    /// It is kept as it should be.
    Keep,
    /// Its controller is stopped.
    Pause,
    /// Its controller goes on.
    Resume,
    /// What it runs is removed.
    Deprovision,
    /// It loses its consumer.
    Release,
}

/// What to do for a machine. After any number of its writes the process may stop, and the next pass goes on from there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Whether the machine has to be read live, with the hosts as they were seen before. The decision is then made
    /// again.
    pub confirm: bool,
    /// The host that has to be read live, and the hosts looked up once more. The decision is then made again.
    pub confirm_host: Option<String>,
    /// In order; when one fails, the rest and the status are left for another pass.
    pub actions: Vec<Action>,
    /// What to say of the machine when all are done. Nothing is written where it says so already.
    pub status: Option<Box<Metal3MachineStatus>>,
    /// Whether that only says what is waited for: nobody else acts on it, and the next event may end it.
    pub is_wait: bool,
    /// Whether it says what no later pass can find out: it is written together with what was done.
    pub tells_once: bool,
    /// Whether the Nodes of the workload cluster are of interest.
    pub wants_nodes: bool,
}

impl Plan {
    /// A plan that needs a live read first.
    #[must_use]
    pub fn confirm() -> Self {
        Self {
            confirm: true,
            ..Self::default()
        }
    }

    /// A plan that needs a live read of a host first.
    #[must_use]
    pub fn confirm_host(name: &str) -> Self {
        Self {
            confirm_host: Some(name.to_owned()),
            ..Self::default()
        }
    }

    /// Whether there is nothing to do before the status.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.confirm && self.confirm_host.is_none() && self.actions.is_empty()
    }
}
