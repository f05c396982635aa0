//! Errors of requests to Ironic, one kind for each way to handle it.
//!
//! [`classify`] derives the kind from the status and the effect of the request. The message is used only to distinguish
//! a locked node from other conflicts, because Ironic reports that nowhere else. An unknown message leads to the kind
//! that is always safe to handle: read the node again. Claims of the conformance suite compare the phrases with the
//! real Ironic.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

use crate::request::Effect;
use crate::text::printable;
use crate::version::{Microversion, NoCommonVersion};

/// Ironic's message for a node that a running task has reserved.
const LOCKED_PHRASE: &str = "is locked by host";
/// Ironic's message for an action that does not fit the state of the node.
const WRONG_STATE_PHRASE: &str = "can not be performed on node";

/// Ironic's message for a node that an operator protects from removal. It has the status of a refused login.
const PROTECTED_PHRASE: &str = "is protected and cannot be";

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The operation: `delete a node`.
    pub operation: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// Ironic's message, on one line, without secrets of the request.
    pub message: String,
    /// The request ID in Ironic's log.
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
    /// The object does not exist, or not yet (an inventory before the first inspection).
    #[error("not found: {0}")]
    NotFound(Refusal),
    /// A running task has reserved the node. Wait until the change feed shows it unlocked.
    #[error("node is locked: {0}")]
    Locked(Refusal),
    /// The state of the node does not allow this, perhaps because another client was faster. Read the node and decide
    /// again.
    #[error("wrong state: {0}")]
    WrongState(Refusal),
    /// An object with this name or address exists already. Read it.
    #[error("exists already: {0}")]
    Exists(Refusal),
    /// Ironic will not accept this however often it is sent.
    #[error("invalid: {0}")]
    Invalid(Refusal),
    /// The login is missing, wrong, or lacks the permission.
    #[error("Ironic refuses the login: {0}; check user name and password")]
    Unauthorised(Refusal),
    /// An operator protects the node from removal.
    #[error(
        "the node is protected: {0}; an administrator of Ironic unsets `protected` of the node, if it may be removed"
    )]
    Protected(Refusal),
    /// Ironic has no free worker or database connection. Retry later.
    #[error("Ironic is busy: {0}")]
    Busy(Refusal),
    /// Ironic and this client have no microversion in common.
    #[error(transparent)]
    NoCommonVersion(#[from] NoCommonVersion),
    /// This Ironic is too old for the request. Nothing was sent.
    #[error("{operation}: requires Ironic API {required}, this Ironic offers {in_use}: upgrade Ironic")]
    TooOld {
        /// The operation.
        operation: &'static str,
        /// The oldest microversion with this request.
        required: Microversion,
        /// The microversion in use.
        in_use: Microversion,
    },
    /// No complete response: refused, reset, or broken off.
    #[error("{operation}: Ironic cannot be reached: {reason}")]
    Unreachable {
        /// The operation.
        operation: &'static str,
        /// The innermost cause.
        reason: String,
        /// Whether there was a connection, so that the request may have taken effect.
        was_sent: bool,
    },
    /// There is no Ironic to send to now. Nothing was sent.
    #[error("{operation}: {reason}")]
    NotReady {
        /// The operation.
        operation: &'static str,
        /// Why, and what ends it.
        reason: String,
    },
    /// One of the two sides does not trust the other's certificate. Nothing was sent.
    #[error(
        "{operation}: TLS trust failed between this client and Ironic: {reason}; check the CA bundle and the client certificate"
    )]
    Untrusted {
        /// The operation.
        operation: &'static str,
        /// The TLS error.
        reason: String,
    },
    /// No response in time. The request may have taken effect.
    #[error("{operation}: no answer from Ironic within the time limit")]
    Timeout {
        /// The operation.
        operation: &'static str,
    },
    /// The response is not from Ironic, or cannot be decoded. A change may have taken effect.
    #[error("{operation}: unexpected answer: {reason}")]
    Unexpected {
        /// The operation.
        operation: &'static str,
        /// The status, if there is one.
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
            Self::Protected(_) => "protected",
            Self::Busy(_) => "busy",
            Self::NoCommonVersion(_) | Self::TooOld { .. } => "version",
            Self::Unreachable { .. } | Self::NotReady { .. } => "unreachable",
            Self::Untrusted { .. } => "untrusted",
            Self::Timeout { .. } => "timeout",
            Self::Unexpected { .. } => "unexpected",
        }
    }

    /// Whether the request may have taken effect although the call failed. True if that is unknown.
    #[must_use]
    pub const fn may_have_happened(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { was_sent: true, .. } | Self::Timeout { .. } | Self::Unexpected { .. }
        )
    }

    /// Whether Ironic refuses each request of this client for it, whatever the request is. A login without a permission (403) may
    /// be refused one request only.
    #[must_use]
    pub const fn is_of_every_request(&self) -> bool {
        match self {
            Self::Unauthorised(refusal) => refusal.status == 401,
            Self::Untrusted { .. } | Self::NoCommonVersion(_) => true,
            Self::NotFound(_)
            | Self::Locked(_)
            | Self::WrongState(_)
            | Self::Exists(_)
            | Self::Invalid(_)
            | Self::Protected(_)
            | Self::Busy(_)
            | Self::TooOld { .. }
            | Self::Unreachable { .. }
            | Self::NotReady { .. }
            | Self::Timeout { .. }
            | Self::Unexpected { .. } => false,
        }
    }
}

/// The kind of an error response.
#[must_use]
pub fn classify(effect: Effect, refusal: Refusal) -> Error {
    let says = |phrase| refusal.message.contains(phrase);
    match refusal.status {
        404 => Error::NotFound(refusal),
        403 if says(PROTECTED_PHRASE) => Error::Protected(refusal),
        401 | 403 => Error::Unauthorised(refusal),
        409 if says(LOCKED_PHRASE) => Error::Locked(refusal),
        409 if effect == Effect::Create => Error::Exists(refusal),
        409 => Error::WrongState(refusal),
        // The client that loses a race for a transition gets 400.
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

/// The message in the body of an error response: JSON within JSON, plain JSON, or not from Ironic.
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
            // Ironic puts a document into a string; older versions and some layers contain it directly.
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
