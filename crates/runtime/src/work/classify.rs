//! What an error of the Kubernetes client means. No other module inspects one.

use std::time::Duration;

use kube::core::Status;

use crate::client::WriteBlocked;

use super::fault::{Category, Fault};

/// The outcome of a request, as far as its error states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The object, its namespace or its kind does not exist.
    NotFound,
    /// The object does not match the precondition of the request.
    Conflict,
    /// Another field manager owns a field of the apply request, with another value.
    Contested,
    /// An object of that name exists.
    AlreadyExists,
    /// The server rejects the content.
    Invalid,
    /// Missing permission, or unknown credentials.
    Forbidden,
    /// The namespace is terminating, so nothing can be created in it.
    Terminating,
    /// The requested version or page has expired.
    Expired,
    /// Rejected without effect: retry later.
    Throttled {
        /// How much later, if the server states it.
        after: Option<Duration>,
    },
    /// The server failed while it processed the request.
    Server,
    /// No response.
    Unreachable,
    /// Not sent: another replica may lead, or another program serves the group.
    WriteBlocked,
    /// The response cannot be decoded. The request took effect.
    Unreadable,
    /// Not sent: the request could not be built.
    Malformed,
}

impl Class {
    /// The error category for metrics, for requests that change nothing.
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

    /// How long to wait, where the server states it.
    #[must_use]
    pub const fn after(self) -> Option<Duration> {
        match self {
            Self::Throttled { after } => after,
            _ => None,
        }
    }
}

/// Classifies an error of the Kubernetes client.
#[must_use]
pub fn classify(error: &kube::Error) -> Class {
    use kube::Error;
    match error {
        Error::Api(status) => classify_status(status),
        Error::SerdeError(_) | Error::FromUtf8(_) | Error::LinesCodecMaxLineLengthExceeded => Class::Unreadable,
        Error::BuildRequest(_) | Error::HttpError(_) => Class::Malformed,
        Error::Service(error) if is_not_ours(&**error) => Class::WriteBlocked,
        // All other errors concern the connection: whether the request arrived is unknown.
        _ => Class::Unreachable,
    }
}

/// Layers between the client and the caller may wrap the error.
fn is_not_ours(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<WriteBlocked>())
}

/// Classifies an error status.
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
        // With a time to retry, the server states that it did not begin.
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

/// The error, without content of an object that a decoder may quote.
pub(crate) fn without_content(error: kube::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        kube::Error::SerdeError(error) => {
            let (line, column) = (error.line(), error.column());
            format!("the answer cannot be decoded at line {line}, column {column}").into()
        }
        other => other.into(),
    }
}
