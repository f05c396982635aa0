//! What a BMC answers to the login that Ironic has.

use metal3_domain::uri::public_text;
use metal3_ironic::Error;

/// How Ironic reports a BMC that answers, and refuses the login. Redfish names the status; `ipmitool` does not say why it failed.
const REFUSALS: [&str; 2] = ["returned code 401", "returned code 403"];

/// The result of a request for which Ironic logs in to the BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginAnswer {
    /// The BMC accepted the login.
    Accepted,
    /// The BMC answered and refused it. Ironic's words, without secrets.
    Refused(String),
    /// No answer of the BMC is known: it is slow or away, Ironic was busy with the node, or `ipmitool` failed. It says nothing
    /// about the login.
    Unknown,
    /// Ironic does not read the boot device of this node, or not for this program.
    Unsupported,
}

impl LoginAnswer {
    /// From the response of Ironic.
    pub(crate) fn of<T>(response: &Result<T, Error>) -> Self {
        match response {
            Ok(_) => Self::Accepted,
            Err(Error::Unexpected {
                status: Some(500..),
                reason,
                ..
            }) if REFUSALS.iter().any(|text| reason.contains(text)) => Self::Refused(public_text(reason)),
            Err(Error::Invalid(_)) => Self::Unsupported,
            Err(error @ Error::Unauthorised(_)) if !error.is_of_every_request() => Self::Unsupported,
            Err(_) => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use metal3_ironic::error::Refusal;

    use super::*;

    /// What the real Ironic answers.
    const REDFISH: &str = "Redfish exception occurred. Error: HTTP GET https://bmc.example/redfish/v1/Systems/1 returned code 401. \
                           Base.1.0.GeneralError: login required Extended information: None";

    fn failed(reason: &str) -> Error {
        Error::Unexpected {
            operation: "read the boot device",
            status: Some(500),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn only_an_answer_of_the_bmc_says_something_about_the_login() {
        let refusal = |status, message: &str| Refusal {
            operation: "read the boot device",
            status,
            message: message.to_owned(),
            request_id: None,
        };
        let operation = "read the boot device";
        let rows = [
            (failed(REDFISH), LoginAnswer::Refused(REDFISH.to_owned())),
            (
                failed("Redfish connection failed for node N: Unable to connect to https://bmc.example"),
                LoginAnswer::Unknown,
            ),
            (
                failed("Redfish exception occurred. Error: HTTP GET https://bmc.example returned code 503."),
                LoginAnswer::Unknown,
            ),
            (
                failed("IPMI call failed: chassis bootparam get 5."),
                LoginAnswer::Unknown,
            ),
            (Error::Timeout { operation }, LoginAnswer::Unknown),
            (
                Error::Locked(refusal(409, "Node N is locked by host c")),
                LoginAnswer::Unknown,
            ),
            // Ironic's own login, not that of the BMC.
            (
                Error::Unauthorised(refusal(401, "returned code 401")),
                LoginAnswer::Unknown,
            ),
            (Error::Invalid(refusal(400, "no driver")), LoginAnswer::Unsupported),
            (Error::Unauthorised(refusal(403, "policy")), LoginAnswer::Unsupported),
        ];
        for (error, answer) in rows {
            assert_eq!(LoginAnswer::of::<()>(&Err(error.clone())), answer, "{error}");
        }
        assert_eq!(LoginAnswer::of(&Ok(())), LoginAnswer::Accepted);
        let url = failed("HTTP GET https://root:hunter2@bmc.example returned code 403.");
        assert!(matches!(LoginAnswer::of::<()>(&Err(url)), LoginAnswer::Refused(why) if !why.contains("hunter2")));
    }
}
