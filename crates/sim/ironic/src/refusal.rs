//! Error responses of Ironic: a status and a nested JSON document.

use http::StatusCode;
use serde_json::{Value, json};

/// An error response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    form: Form,
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// An error of Ironic's own code.
    Fault,
    /// An error of the web framework: versions, paths, methods.
    Titled,
    /// An authentication error.
    Login,
}

impl Refusal {
    fn fault(status: StatusCode, message: impl Into<String>) -> Self {
        let (form, message) = (Form::Fault, message.into());
        Self { status, form, message }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::fault(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::fault(StatusCode::CONFLICT, message)
    }

    pub(crate) fn not_found(what: &str, ident: &str) -> Self {
        Self::fault(StatusCode::NOT_FOUND, format!("{what} {ident} could not be found."))
    }

    /// A path of a newer microversion.
    pub(crate) fn newer_resource() -> Self {
        Self::fault(StatusCode::NOT_FOUND, "The resource could not be found.")
    }

    /// A field or argument of a newer microversion.
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

    pub(crate) fn protected(node: &str) -> Self {
        let message = format!("Node {node} is protected and cannot be undeployed, rebuilt or deleted");
        Self::fault(StatusCode::FORBIDDEN, message)
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

    pub(crate) fn no_such_version(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::NOT_ACCEPTABLE,
            form: Form::Titled,
            message: message.into(),
        }
    }

    pub(crate) fn no_such_path(status: StatusCode) -> Self {
        let (form, message) = (Form::Titled, String::new());
        Self { status, form, message }
    }

    pub(crate) fn login(message: &str) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            form: Form::Login,
            message: message.to_owned(),
        }
    }

    /// An internal error: a failed synchronous BMC call, or a defect of Ironic.
    pub(crate) fn failed(message: &str) -> Self {
        Self::fault(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// A feature that is not simulated.
    pub(crate) fn not_simulated(what: &str) -> Self {
        Self::fault(
            StatusCode::NOT_IMPLEMENTED,
            format!("{what} is not simulated; ask a real Ironic"),
        )
    }

    /// The error of a fault plan.
    pub(crate) fn ordered(code: u16) -> Self {
        let status = StatusCode::from_u16(code).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        Self::fault(status, "refused by the fault plan")
    }

    /// The response body.
    pub(crate) fn body(&self) -> Value {
        let message = &self.message;
        let inner = match self.form {
            Form::Login => return json!({"error": {"message": message, "code": self.status.as_u16()}}),
            Form::Fault => {
                let side = if self.status.is_server_error() {
                    "Server"
                } else {
                    "Client"
                };
                json!({"faultcode": side, "faultstring": message, "debuginfo": null})
            }
            Form::Titled => json!({
                "code": self.status.as_u16(),
                "title": self.status.canonical_reason().unwrap_or_default(),
                "description": message,
            }),
        };
        json!({"error_message": inner.to_string()})
    }
}
