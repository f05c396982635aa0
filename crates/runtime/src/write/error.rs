//! What became of a write that did not simply succeed.

use std::error::Error;
use std::time::Duration;

use crate::work::{Category, Class, Fault, classify, without_content};

/// A write that was refused, or of which nobody knows.
#[derive(Debug, thiserror::Error)]
#[error("{op}")]
pub struct WriteError {
    /// What was attempted: `patch ippools ns/name`.
    pub op: String,
    /// What a caller may treat differently.
    pub kind: WriteErrorKind,
    source: Box<dyn Error + Send + Sync>,
}

/// Why a write is not known to be done. All but the last two were refused without effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteErrorKind {
    /// The object is not what the precondition says.
    Conflict,
    /// Somebody else looks after a member that was to be applied, and says something else.
    Contested,
    /// An object of that name exists. It may be ours, from a write whose answer was lost.
    AlreadyExists,
    /// The object or its namespace is not there.
    NotFound,
    /// The server refuses the content.
    Invalid,
    /// We lack a permission.
    Forbidden,
    /// Nothing can be created in a namespace that is going away.
    Terminating,
    /// The server asks us to come back later.
    Throttled {
        /// How much later, if it says so.
        after: Option<Duration>,
    },
    /// It never left: what was to be sent is no request.
    Malformed,
    /// It never left: another replica may lead, or another program serves the group.
    WriteBlocked,
    /// It took effect, and the answer cannot be decoded.
    Unreadable,
    /// Nobody knows: the connection broke, or the server failed while at it.
    OutcomeUnknown,
}

impl WriteErrorKind {
    /// Whether it may come from an old view of the object, or leaves one behind.
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

    /// The sort of kind for metrics.
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

/// Of a write, an error that does not say "refused" does not say "not done" either.
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

/// None of them is terminal by itself: whether only a change of the spec helps is for the product to know. Where it
/// does, it looks at [`WriteError::kind`] before this.
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
