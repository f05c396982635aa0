//! What can go wrong in a pass, by what follows from it.

use std::error::Error;
use std::time::Duration;

use crate::queue::Outcome;
use crate::reason::Reason;

/// A pass that could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// It may pass by itself: the network, a lost race, a busy server. Tried again after the key's back-off.
    #[error("{op}")]
    Transient {
        /// What was attempted, in lower case.
        op: String,
        /// What sort of trouble.
        category: Category,
        /// How long the other side asks us to stay away.
        after: Option<Duration>,
        /// Why it failed.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Only a change of the spec helps, and that wakes the key. Not tried again before.
    #[error("{message}")]
    Terminal {
        /// For programs; the condition carries it.
        reason: Reason,
        /// For people: what is wrong and how to cure it.
        message: String,
    },
    /// The program contradicts itself. Tried again after the key's back-off, and reported loudly.
    #[error("this is a defect of the program: {what}")]
    Bug {
        /// Which promise was broken.
        what: String,
    },
}

impl Fault {
    /// A fault that may pass by itself.
    #[must_use]
    pub fn transient(
        op: impl Into<String>,
        category: Category,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Transient {
            op: op.into(),
            category,
            after: None,
            source: source.into(),
        }
    }

    /// A fault that only a change of the spec cures.
    #[must_use]
    pub fn terminal(reason: Reason, message: impl Into<String>) -> Self {
        Self::Terminal {
            reason,
            message: message.into(),
        }
    }

    /// A broken promise of the program itself.
    #[must_use]
    pub fn bug(what: impl Into<String>) -> Self {
        Self::Bug { what: what.into() }
    }

    /// The sort of trouble, from a closed set: the one label of errors in metrics.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Transient { category, .. } => category.as_str(),
            Self::Terminal { .. } => "terminal",
            Self::Bug { .. } => "bug",
        }
    }

    /// What the queue makes of it.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Transient { after: Some(pause), .. } => Outcome::Throttled(*pause),
            Self::Transient { after: None, .. } | Self::Bug { .. } => Outcome::Failed,
            Self::Terminal { .. } => Outcome::Done,
        }
    }

    /// What was attempted and each cause of its failure, in one line.
    #[must_use]
    pub fn report(&self) -> String {
        let mut line = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            line.push_str(": ");
            line.push_str(&error.to_string());
            cause = error.source();
        }
        line
    }
}

/// A sort of trouble. Each is a constant, so the set of them is closed when the program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Category(&'static str);

impl Category {
    /// Somebody else wrote first, or the cache was behind.
    pub const CONFLICT: Self = Self("conflict");
    /// An object of that name is there already.
    pub const ALREADY_EXISTS: Self = Self("already_exists");
    /// What was to be changed or read is not there.
    pub const NOT_FOUND: Self = Self("not_found");
    /// The server refuses what we sent.
    pub const INVALID: Self = Self("invalid");
    /// We lack a permission, or credentials that count.
    pub const FORBIDDEN: Self = Self("forbidden");
    /// The namespace is going away.
    pub const TERMINATING: Self = Self("namespace_terminating");
    /// The server asks us to slow down.
    pub const THROTTLED: Self = Self("throttled");
    /// The server answered that it failed.
    pub const SERVER: Self = Self("server_failed");
    /// No answer, and nothing was to be changed.
    pub const UNREACHABLE: Self = Self("unreachable");
    /// A write was held back: others may be the ones to make it.
    pub const WRITE_BLOCKED: Self = Self("not_ours");
    /// Nobody knows whether a write took effect.
    pub const OUTCOME_UNKNOWN: Self = Self("outcome_unknown");
    /// The answer made no sense to us.
    pub const UNREADABLE: Self = Self("unreadable");

    /// A sort of trouble of a product's own, for a constant: one low-cardinality word in `snake_case`.
    #[must_use]
    pub const fn new(word: &'static str) -> Self {
        Self(word)
    }

    /// As metrics carry it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}
