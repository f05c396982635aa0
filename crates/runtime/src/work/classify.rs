//! What an error of the Kubernetes client means. No other place looks inside one.

use std::time::Duration;

use kube::core::Status;

use crate::client::WriteBlocked;

use super::fault::{Category, Fault};

/// What became of a request, as far as its error tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The object, or its namespace or kind, is not there.
    NotFound,
    /// The object is not what the request expected it to be.
    Conflict,
    /// Somebody else looks after a member that was to be applied, and says something else.
    Contested,
    /// There is an object of that name.
    AlreadyExists,
    /// The server refuses the content.
    Invalid,
    /// We may not, or the server does not know us.
    Forbidden,
    /// Nothing can be created in a namespace that is going away.
    Terminating,
    /// The version or page that was asked for is forgotten.
    Expired,
    /// Refused without effect: come back later.
    Throttled {
        /// How much later, if the server says so.
        after: Option<Duration>,
    },
    /// The server failed while it worked on the request.
    Server,
    /// No answer came.
    Unreachable,
    /// It never left: another replica may lead, or another program serves the group.
    WriteBlocked,
    /// An answer came that cannot be decoded. The request took effect.
    Unreadable,
    /// The request could not be built: it never left.
    Malformed,
}

impl Class {
    /// The sort of trouble for metrics, where nothing was to be changed.
    #[must_use]
    pub const fn category(self) -> Category {
        match self {
            Self::NotFound => Category::NOT_FOUND,
            Self::Conflict | Self::Contested | Self::Expired => Category::CONFLICT,
            Self::AlreadyExists => Category::ALREADY_EXISTS,
            Self::Invalid | Self::Malformed => Category::INVALID,
            Self::Forbidden => Category::FORBIDDEN,
            Self::Terminating => Category::TERMINATING,
            Self::Throttled { .. } => Category::THROTTLED,
            Self::Server => Category::SERVER,
            Self::Unreachable => Category::UNREACHABLE,
            Self::WriteBlocked => Category::WRITE_BLOCKED,
            Self::Unreadable => Category::UNREADABLE,
        }
    }

    /// How long to stay away, where the server says so.
    #[must_use]
    pub const fn after(self) -> Option<Duration> {
        match self {
            Self::Throttled { after } => after,
            _ => None,
        }
    }
}

/// Sorts an error of the Kubernetes client.
#[must_use]
pub fn classify(error: &kube::Error) -> Class {
    use kube::Error;
    match error {
        Error::Api(status) => classify_status(status),
        Error::SerdeError(_) | Error::FromUtf8(_) | Error::LinesCodecMaxLineLengthExceeded => Class::Unreadable,
        Error::BuildRequest(_) | Error::HttpError(_) => Class::Malformed,
        Error::Service(error) if is_not_ours(&**error) => Class::WriteBlocked,
        // Whatever else there is, or will be, happens around the connection: whether the request arrived is not known.
        _ => Class::Unreachable,
    }
}

/// Layers between the client and the one that asks may wrap what it says.
fn is_not_ours(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<WriteBlocked>())
}

/// Sorts an answer that says what went wrong.
fn classify_status(status: &Status) -> Class {
    let details = status.details.as_ref();
    let after = details
        .map(|details| details.retry_after_seconds)
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Duration::from_secs(seconds.into()));
    let caused_by = |reason: &str| details.is_some_and(|details| details.causes.iter().any(|c| c.reason == reason));
    match (status.code, status.reason.as_str()) {
        (409, "AlreadyExists") => Class::AlreadyExists,
        (409, _) if caused_by("FieldManagerConflict") => Class::Contested,
        (409, _) => Class::Conflict,
        (403, _) if caused_by("NamespaceTerminating") => Class::Terminating,
        (401 | 403, _) => Class::Forbidden,
        (404, _) => Class::NotFound,
        (410, _) => Class::Expired,
        (429, _) => Class::Throttled { after },
        // With a time to come back, the server says that it did not begin.
        (503, _) if after.is_some() => Class::Throttled { after },
        (400..=499, _) => Class::Invalid,
        _ => Class::Server,
    }
}

/// The fault of a read that failed.
#[must_use]
pub fn read_fault(op: impl Into<String>, error: kube::Error) -> Fault {
    let class = classify(&error);
    Fault::Transient {
        op: op.into(),
        category: class.category(),
        after: class.after(),
        source: without_content(error),
    }
}

/// The error, without what a decoder may quote of an object.
pub(crate) fn without_content(error: kube::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        kube::Error::SerdeError(error) => {
            let (line, column) = (error.line(), error.column());
            format!("the answer cannot be decoded at line {line}, column {column}").into()
        }
        other => other.into(),
    }
}
