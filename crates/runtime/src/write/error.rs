//! Errors of writes.

use std::error::Error;
use std::time::Duration;

use crate::work::{Category, Class, Fault, classify, without_content};

/// A write that was rejected, or whose outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[error("{op}")]
pub struct WriteError {
    /// The operation: `patch ippools ns/name`.
    pub op: String,
    /// For callers that handle kinds differently.
    pub kind: WriteErrorKind,
    source: Box<dyn Error + Send + Sync>,
}

/// Why a write is not known to be done. All but the last two had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteErrorKind {
    /// The object does not match the precondition.
    Conflict,
    /// Another field manager owns a field of the apply request, with another value.
    Contested,
    /// An object of that name exists. It may be from an own write whose response was lost.
    AlreadyExists,
    /// The object or its namespace does not exist.
    NotFound,
    /// The server rejects the content.
    Invalid,
    /// A permission is missing.
    Forbidden,
    /// The namespace is terminating, so nothing can be created in it.
    Terminating,
    /// The server asks to retry later.
    Throttled {
        /// How much later, if the server states it.
        after: Option<Duration>,
    },
    /// Not sent: the request could not be built.
    Malformed,
    /// Not sent: another replica may lead, or another program serves the group.
    WriteBlocked,
    /// It took effect, and the response cannot be decoded.
    Unreadable,
    /// Unknown: the connection broke, or the server failed while it processed the request.
    OutcomeUnknown,
}

impl WriteErrorKind {
    /// Whether the cached object may be out of date, before the write or because of it.
    #[must_use]
    pub const fn may_be_stale(self) -> bool {
        match self {
            Self::Conflict | Self::AlreadyExists | Self::NotFound | Self::Unreadable | Self::OutcomeUnknown => true,
            Self::Contested
            | Self::Invalid
            | Self::Forbidden
            | Self::Terminating
            | Self::Throttled { .. }
            | Self::Malformed
            | Self::WriteBlocked => false,
        }
    }

    /// The error category for metrics.
    #[must_use]
    pub const fn category(self) -> Category {
        match self {
            Self::Conflict | Self::Contested => Category::CONFLICT,
            Self::AlreadyExists => Category::ALREADY_EXISTS,
            Self::NotFound => Category::NOT_FOUND,
            Self::Invalid | Self::Malformed => Category::INVALID,
            Self::Forbidden => Category::FORBIDDEN,
            Self::Terminating => Category::TERMINATING,
            Self::Throttled { .. } => Category::THROTTLED,
            Self::WriteBlocked => Category::WRITE_BLOCKED,
            Self::Unreadable => Category::UNREADABLE,
            Self::OutcomeUnknown => Category::OUTCOME_UNKNOWN,
        }
    }
}

/// For a write, an error other than a rejection does not mean that it had no effect.
impl From<Class> for WriteErrorKind {
    fn from(class: Class) -> Self {
        match class {
            Class::NotFound => Self::NotFound,
            Class::Conflict | Class::Expired => Self::Conflict,
            Class::Contested => Self::Contested,
            Class::AlreadyExists => Self::AlreadyExists,
            Class::Invalid => Self::Invalid,
            Class::Forbidden => Self::Forbidden,
            Class::Terminating => Self::Terminating,
            Class::Throttled { after } => Self::Throttled { after },
            Class::Malformed => Self::Malformed,
            Class::WriteBlocked => Self::WriteBlocked,
            Class::Unreadable => Self::Unreadable,
            Class::Server | Class::Unreachable => Self::OutcomeUnknown,
        }
    }
}

impl WriteError {
    pub(super) fn of(op: impl ToString, error: kube::Error) -> Self {
        Self {
            op: op.to_string(),
            kind: classify(&error).into(),
            source: without_content(error),
        }
    }

    pub(super) fn new(
        op: impl ToString,
        kind: WriteErrorKind,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            op: op.to_string(),
            kind,
            source: source.into(),
        }
    }
}

/// No write error is terminal as such: the product decides whether only a change of the spec helps, and reads
/// [`WriteError::kind`] before this conversion.
impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        let WriteError { op, kind, source } = error;
        let after = match kind {
            WriteErrorKind::Throttled { after } => after,
            _ => None,
        };
        Self::Transient {
            op,
            category: kind.category(),
            after,
            source,
        }
    }
}
