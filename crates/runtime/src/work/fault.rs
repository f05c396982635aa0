//! Errors of a reconcile, by their consequence.

use std::error::Error;
use std::time::Duration;

use crate::queue::Outcome;
use crate::reason::Reason;

/// A reconcile that failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// May pass without a change: the network, a lost race, a busy server. Retried after the key's back-off.
    #[error("{op}")]
    Transient {
        /// What was attempted, in lower case.
        op: String,
        /// The error category.
        category: Category,
        /// How long the server asks to wait.
        after: Option<Duration>,
        /// Why it failed.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Only a change of the spec helps, and that enqueues the key. Not retried before.
    #[error("{message}")]
    Terminal {
        /// For programs; the condition carries it.
        reason: Reason,
        /// For people: what is wrong and how to correct it.
        message: String,
    },
    /// A defect of the program. Retried after the key's back-off, and logged as an error.
    #[error("this is a defect of the program: {what}")]
    Bug {
        /// The broken invariant.
        what: String,
    },
}

impl Fault {
    /// A fault that may pass without a change.
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

    /// A fault that only a change of the spec corrects.
    #[must_use]
    pub fn terminal(reason: Reason, message: impl Into<String>) -> Self {
        Self::Terminal {
            reason,
            message: message.into(),
        }
    }

    /// A defect of the program.
    #[must_use]
    pub fn bug(what: impl Into<String>) -> Self {
        Self::Bug { what: what.into() }
    }

    /// The error category, from a closed set: the one label of errors in metrics.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::Transient { category, .. } => category.as_str(),
            Self::Terminal { .. } => "terminal",
            Self::Bug { .. } => "bug",
        }
    }

    /// The outcome for the queue.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Transient { after: Some(pause), .. } => Outcome::Throttled(*pause),
            Self::Transient { after: None, .. } | Self::Bug { .. } => Outcome::Failed,
            Self::Terminal { .. } => Outcome::Done,
        }
    }

    /// The operation and each cause of its failure, in one line.
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

/// An error category. Each is a constant, so the set is closed at compile time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Category(&'static str);

impl Category {
    /// Another client wrote first, or the cache was behind.
    pub const CONFLICT: Self = Self("conflict");
    /// An object of that name exists already.
    pub const ALREADY_EXISTS: Self = Self("already_exists");
    /// The object to read or change does not exist.
    pub const NOT_FOUND: Self = Self("not_found");
    /// The server rejects the request.
    pub const INVALID: Self = Self("invalid");
    /// A permission is missing, or the credentials are not valid.
    pub const FORBIDDEN: Self = Self("forbidden");
    /// The namespace is terminating.
    pub const TERMINATING: Self = Self("namespace_terminating");
    /// The server asks us to slow down.
    pub const THROTTLED: Self = Self("throttled");
    /// The server answered that it failed.
    pub const SERVER: Self = Self("server_failed");
    /// No response to a request that changes nothing.
    pub const UNREACHABLE: Self = Self("unreachable");
    /// A write was not sent: this process does not lead, or another program serves the group.
    pub const WRITE_BLOCKED: Self = Self("not_ours");
    /// Whether a write took effect is unknown.
    pub const OUTCOME_UNKNOWN: Self = Self("outcome_unknown");
    /// The response could not be decoded.
    pub const UNREADABLE: Self = Self("unreadable");

    /// An error category of a product, for a constant: one low-cardinality word in `snake_case`.
    #[must_use]
    pub const fn new(word: &'static str) -> Self {
        Self(word)
    }

    /// The label value in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}
