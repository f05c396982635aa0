//! How Ironic says no: a status, and a document within a document.

use http::StatusCode;
use serde_json::{Value, json};

/// An answer that says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    form: Form,
    words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// What Ironic's own code refuses.
    Fault,
    /// What the layers above it refuse: versions, paths, methods.
    Titled,
    /// What the login refuses.
    Login,
}

impl Refusal {
    fn fault(status: StatusCode, words: impl Into<String>) -> Self {
        let (form, words) = (Form::Fault, words.into());
        Self { status, form, words }
    }

    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    pub(crate) fn invalid(words: impl Into<String>) -> Self {
        Self::fault(StatusCode::BAD_REQUEST, words)
    }

    pub(crate) fn conflict(words: impl Into<String>) -> Self {
        Self::fault(StatusCode::CONFLICT, words)
    }

    pub(crate) fn not_found(what: &str, ident: &str) -> Self {
        Self::fault(StatusCode::NOT_FOUND, format!("{what} {ident} could not be found."))
    }

    /// A path that this dialect does not have yet.
    pub(crate) fn newer_resource() -> Self {
        Self::fault(StatusCode::NOT_FOUND, "The resource could not be found.")
    }

    /// A field or argument that this dialect does not have yet.
    pub(crate) fn newer_argument() -> Self {
        Self::fault(StatusCode::NOT_ACCEPTABLE, "Request not acceptable.")
    }

    pub(crate) fn wrong_state(action: &str, node: &str, state: &str) -> Self {
        Self::invalid(format!(
            "The requested action \"{action}\" can not be performed on node \"{node}\" while it is in state \"{state}\"."
        ))
    }

    pub(crate) fn in_maintenance(operation: &str, node: &str) -> Self {
        Self::invalid(format!(
            "The {operation} operation can't be performed on node {node} because it's in maintenance mode."
        ))
    }

    pub(crate) fn locked(node: &str, host: &str) -> Self {
        Self::conflict(format!(
            "Node {node} is locked by host {host}, please retry after the current operation is completed."
        ))
    }

    pub(crate) fn unsupported(driver: &str, what: &str) -> Self {
        Self::invalid(format!(
            "Driver {driver} does not support {what} (disabled or not implemented)."
        ))
    }

    pub(crate) fn no_such_version(words: impl Into<String>) -> Self {
        Self {
            status: StatusCode::NOT_ACCEPTABLE,
            form: Form::Titled,
            words: words.into(),
        }
    }

    pub(crate) fn no_such_path(status: StatusCode) -> Self {
        let (form, words) = (Form::Titled, String::new());
        Self { status, form, words }
    }

    pub(crate) fn login(words: &str) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            form: Form::Login,
            words: words.to_owned(),
        }
    }

    /// What failed while the client waits: a BMC that was asked, or Ironic itself.
    pub(crate) fn failed(words: &str) -> Self {
        Self::fault(StatusCode::INTERNAL_SERVER_ERROR, words)
    }

    /// What Ironic may do and this simulator does not.
    pub(crate) fn not_simulated(what: &str) -> Self {
        Self::fault(
            StatusCode::NOT_IMPLEMENTED,
            format!("{what} is not simulated; ask a real Ironic"),
        )
    }

    /// The refusal that a fault plan orders.
    pub(crate) fn ordered(code: u16) -> Self {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        Self::fault(status, "refused by the fault plan")
    }

    /// The body.
    pub(crate) fn body(&self) -> Value {
        let words = &self.words;
        let inner = match self.form {
            Form::Login => return json!({"error": {"message": words, "code": self.status.as_u16()}}),
            Form::Fault => {
                let side = if self.status.is_server_error() {
                    "Server"
                } else {
                    "Client"
                };
                json!({"faultcode": side, "faultstring": words, "debuginfo": null})
            }
            Form::Titled => json!({
                "code": self.status.as_u16(),
                "title": self.status.canonical_reason().unwrap_or_default(),
                "description": words,
            }),
        };
        json!({"error_message": inner.to_string()})
    }
}
