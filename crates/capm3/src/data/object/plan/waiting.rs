//! Why nothing can be rendered: the objects that a Metal3Data waits for, with messages for users, and errors.

use thiserror::Error;

use crate::data::DataError;
use crate::data::object::action::Plan;

/// Why nothing can be rendered.
pub(super) enum Stop {
    /// An object is missing.
    Wait(Waiting),
    /// Only a change of an object resolves it. The error names its field.
    Fail(DataError),
    /// A write must precede.
    First(Box<Plan>),
}

impl From<Waiting> for Stop {
    fn from(waiting: Waiting) -> Self {
        Self::Wait(waiting)
    }
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Self {
        Self::Fail(error)
    }
}

/// The object to wait for. The text is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(in crate::data) enum Waiting {
    /// The template.
    #[error("waiting for Metal3DataTemplate {0}; create it")]
    Template(String),
    /// The claim.
    #[error("waiting for Metal3DataClaim {0}")]
    Claim(String),
    /// The machine of the claim.
    #[error("waiting for Metal3Machine {0}")]
    Metal3Machine(String),
    /// The Machine of the Metal3Machine.
    #[error("waiting for a Machine to own Metal3Machine {0}")]
    Machine(String),
    /// The host.
    #[error("waiting for Metal3Machine {0} to get a host")]
    Host(String),
    /// Addresses.
    #[error("waiting for addresses from {0}")]
    Addresses(String),
    /// A claim that has another owner or is in deletion.
    #[error("waiting for the claim {claim} on pool {pool} to be deleted; it belongs to {owner}")]
    ForeignClaim { claim: String, pool: String, owner: String },
    /// A claim in deletion although its address may be in use.
    #[error(
        "claim {claim} on pool {pool} is being deleted, but {why}; delete the Machine, so that a new one is created"
    )]
    LostClaim { claim: String, pool: String, why: String },
    /// A Secret of an earlier machine.
    #[error("waiting for Secret {0} of an earlier machine to be deleted; delete it if it is not in use")]
    Secret(String),
}

impl Waiting {
    /// Whether the user must act, so that the status gets the message.
    pub(super) const fn needs_user_action(&self) -> bool {
        match self {
            Self::Template(_) | Self::ForeignClaim { .. } | Self::LostClaim { .. } | Self::Secret(_) => true,
            Self::Claim(_) | Self::Metal3Machine(_) | Self::Machine(_) | Self::Host(_) | Self::Addresses(_) => false,
        }
    }
}
