//! What can go wrong between us and Ironic, one kind per thing a caller does differently.
//!
//! [`classify`] turns an answer into a kind. It looks at the status and at the effect of the request; the text is used
//! for one thing only, because Ironic says it nowhere else: to tell a locked node from the other conflicts. A text that
//! is not recognised falls to the kind whose cure is always safe, reading the node again. The phrases are held against
//! the real Ironic by the contract claims.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::request::Effect;
use crate::text::printable;
use crate::version::{Microversion, NoCommonVersion};

/// What Ironic writes when a node is reserved by a running task.
const LOCKED_PHRASE: &str = "is locked by host";
/// What it writes when an action does not fit the state of the node.
const WRONG_STATE_PHRASE: &str = "can not be performed on node";

/// An answer that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What was attempted: `delete a node`.
    pub operation: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Ironic's words, on one line, without secrets of the request.
    pub message: String,
    /// The identity that Ironic's log gives the request.
    pub request_id: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)?;
        match &self.request_id {
            Some(id) => write!(f, " (status {}, {id})", self.status),
            None => write!(f, " (status {})", self.status),
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Error {
    /// There is no such thing, or not yet (an inventory before the first inspection).
    #[error("not found: {0}")]
    NotFound(Refusal),
    /// The node is reserved by a running task. Wait until the change feed shows it free.
    #[error("node is locked: {0}")]
    Locked(Refusal),
    /// The node is not in a state that allows this, perhaps because someone asked first. Read it and decide again.
    #[error("wrong state: {0}")]
    WrongState(Refusal),
    /// Something with this name or address exists already. Look it up.
    #[error("exists already: {0}")]
    Exists(Refusal),
    /// Ironic will not take this however often it is sent.
    #[error("invalid: {0}")]
    Invalid(Refusal),
    /// The login is missing, wrong, or not allowed to do this.
    #[error("Ironic refuses the login: {0}; check user name and password")]
    Unauthorised(Refusal),
    /// Ironic has no free worker or database connection. Wait.
    #[error("Ironic is busy: {0}")]
    Busy(Refusal),
    /// Ironic does not speak a dialect that we do.
    #[error(transparent)]
    NoCommonVersion(#[from] NoCommonVersion),
    /// This Ironic is too old for the request. Nothing was sent.
    #[error("{operation}: needs Ironic API {needs}, this Ironic speaks {speaks}: upgrade Ironic")]
    TooOld {
        /// What was attempted.
        operation: &'static str,
        /// The oldest dialect that has it.
        needs: Microversion,
        /// The dialect in use.
        speaks: Microversion,
    },
    /// No whole answer came: refused, reset, or broken off. The request may have been carried out.
    #[error("{operation}: Ironic cannot be reached: {reason}")]
    Unreachable {
        /// What was attempted.
        operation: &'static str,
        /// The innermost cause.
        reason: String,
    },
    /// The server's certificate is not trusted, or it does not trust ours. Nothing was sent.
    #[error("{operation}: no trust between us and Ironic: {reason}; check the CA bundle and the client certificate")]
    Untrusted {
        /// What was attempted.
        operation: &'static str,
        /// What TLS says.
        reason: String,
    },
    /// No answer in time. The request may have been carried out.
    #[error("{operation}: no answer from Ironic within the time limit")]
    Timeout {
        /// What was attempted.
        operation: &'static str,
    },
    /// An answer that is not Ironic's, or not one that we can read. A change may have been carried out.
    #[error("{operation}: unexpected answer: {reason}")]
    Unexpected {
        /// What was attempted.
        operation: &'static str,
        /// The status, where there was one.
        status: Option<u16>,
        /// What is wrong with it.
        reason: String,
    },
}

impl Error {
    /// A label for metrics, from a closed set.
    #[must_use]
    pub const fn category(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::Locked(_) => "locked",
            Self::WrongState(_) => "wrong_state",
            Self::Exists(_) => "exists",
            Self::Invalid(_) => "invalid",
            Self::Unauthorised(_) => "unauthorised",
            Self::Busy(_) => "busy",
            Self::NoCommonVersion(_) | Self::TooOld { .. } => "version",
            Self::Unreachable { .. } => "unreachable",
            Self::Untrusted { .. } => "untrusted",
            Self::Timeout { .. } => "timeout",
            Self::Unexpected { .. } => "unexpected",
        }
    }

    /// Whether the request may have been carried out although the call failed. True whenever that is unknown.
    #[must_use]
    pub const fn may_have_happened(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Unexpected { .. }
        )
    }
}

/// The kind of an answer that is not a success. `None` for a status that Ironic does not use for a refusal.
#[must_use]
pub fn classify(effect: Effect, refusal: Refusal) -> Error {
    let says = |phrase| refusal.message.contains(phrase);
    match refusal.status {
        404 => Error::NotFound(refusal),
        401 | 403 => Error::Unauthorised(refusal),
        409 if says(LOCKED_PHRASE) => Error::Locked(refusal),
        409 if effect == Effect::Create => Error::Exists(refusal),
        409 => Error::WrongState(refusal),
        // The loser of a race for a transition gets 400.
        400 if says(WRONG_STATE_PHRASE) => Error::WrongState(refusal),
        400 if effect == (Effect::Transition { arguments: false }) => Error::WrongState(refusal),
        400 | 406 | 405 | 413 | 415 | 422 => Error::Invalid(refusal),
        429 | 503 => Error::Busy(refusal),
        status => Error::Unexpected {
            operation: refusal.operation,
            status: Some(status),
            reason: refusal.message,
        },
    }
}

/// The words in the body of a refusal, whatever its form: JSON within JSON, plain JSON, or none of Ironic's.
#[must_use]
pub fn message(status: u16, body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return match std::str::from_utf8(body) {
            Ok(text) if text.trim().is_empty() => format!("status {status} without an explanation"),
            Ok(text) if text.trim_start().starts_with('<') => {
                "a page of HTML, as a proxy or another server would answer; check the endpoint".to_owned()
            }
            Ok(text) => printable(text.trim()),
            Err(_) => "not text; check the endpoint".to_owned(),
        };
    };
    printable(&words(&value).unwrap_or_else(|| format!("status {status} without an explanation")))
}

fn words(value: &Value) -> Option<String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(inner) = value.get("error_message") {
        return match inner {
            // Ironic puts a document into a string; older ones and some layers put it in plainly.
            Value::String(inner) => serde_json::from_str::<Value>(inner)
                .ok()
                .and_then(|value| words(&value))
                .or_else(|| (!inner.is_empty()).then(|| inner.clone())),
            other => words(other),
        };
    }
    if let Some(error) = value.get("error") {
        return match error {
            Value::String(text) => (!text.is_empty()).then(|| text.clone()),
            other => words(other),
        };
    }
    if let Some(first) = value.get("errors").and_then(|errors| errors.get(0)) {
        return words(first);
    }
    text("faultstring")
        .or_else(|| text("message"))
        .or_else(|| text("description"))
        .or_else(|| text("detail"))
        .or_else(|| text("title"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
