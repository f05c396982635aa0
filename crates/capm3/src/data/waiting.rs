//! What a Metal3Data waits for, for the person who waits with it. When it is waited for is decided in [`super::step`].

use thiserror::Error;

/// What is waited for. The text is for the user.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Waiting {
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
    /// A claim that is not ours or is going away.
    #[error("waiting for the claim {claim} on pool {pool} to go away; it belongs to {owner}")]
    ForeignClaim {
        /// The claim.
        claim: String,
        /// The pool.
        pool: String,
        /// Who has it.
        owner: String,
    },
    /// A claim of ours that is going away although a Secret may hold its address.
    #[error(
        "claim {claim} on pool {pool} is being deleted, but Secret {secret} is written already and may hold its address; delete the Machine, so that another is made"
    )]
    LostClaim {
        /// The claim.
        claim: String,
        /// The pool.
        pool: String,
        /// The Secret.
        secret: String,
    },
    /// A Secret of an earlier machine.
    #[error("waiting for Secret {0} of an earlier machine to go away; delete it if nobody uses it")]
    Secret(String),
}

impl Waiting {
    /// Whether a person has to do something, so that the status says what.
    #[must_use]
    pub const fn is_for_a_person(&self) -> bool {
        match self {
            Self::Template(_) | Self::ForeignClaim { .. } | Self::LostClaim { .. } | Self::Secret(_) => true,
            Self::Claim(_) | Self::Metal3Machine(_) | Self::Machine(_) | Self::Host(_) | Self::Addresses(_) => false,
        }
    }
}
