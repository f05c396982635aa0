//! Which errors are about the login, and what its end means for a person.

use std::error::Error;
use std::io;
use std::time::Duration;

use kube::client::AuthError;
use metal3_api::meta::Time;
use rustls::AlertDescription as Alert;

use super::checked::NotSent;
use super::{Ended, Failure};

/// The pauses between two tries to log in, the last one for all further ones.
const PAUSES: [u64; 8] = [2, 4, 8, 15, 30, 60, 120, 300];
/// The first of them after a program has failed, which may open a window each time.
const PROGRAM: usize = 4;
/// The last of them while the API server does not answer.
const SILENT: usize = 3;

/// The answers of a proxy whose API server does not answer.
const OF_PROXY: [u16; 3] = [502, 503, 504];

/// Why a login is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The API server answers 401.
    Refused,
    /// The connection ends because of the client certificate.
    Certificate,
    /// The program that logs in has failed.
    Program,
    /// What the kubeconfig says cannot be used, in these words.
    Unusable(String),
    /// The API server does not answer, so that nothing is known about the login, and nothing new about any object.
    Silent,
    /// Another user logs in now.
    OtherUser { first: String, now: String },
    /// Another API server is meant now.
    OtherServer,
    /// The API server does not say who logs in.
    Unproven,
}

impl From<Failure> for Cause {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unusable(why) => Self::Unusable(why),
            Failure::Program => Self::Program,
        }
    }
}

impl Cause {
    /// Whether another login than the first is there, or may be.
    const fn is_other(&self) -> bool {
        matches!(self, Self::OtherUser { .. } | Self::OtherServer | Self::Unproven)
    }

    fn why(&self) -> String {
        match self {
            Self::Refused => "the API server does not accept the login of the kubeconfig".to_owned(),
            Self::Certificate => "the API server does not accept the client certificate of the kubeconfig".to_owned(),
            Self::Program => "the program that logs in for the kubeconfig has failed".to_owned(),
            Self::Unusable(why) => why.clone(),
            Self::Silent => "no request is answered".to_owned(),
            Self::OtherUser { first, now } if first == now => {
                format!("the kubeconfig logs in as {now} with other groups than when this console was started")
            }
            Self::OtherUser { first, now } => {
                format!("the kubeconfig logs in as {now} now, and this console was started as {first}")
            }
            Self::OtherServer => {
                "the kubeconfig names another API server than when this console was started".to_owned()
            }
            Self::Unproven => {
                "the API server does not say who logs in with the kubeconfig now, so that it may be another user"
                    .to_owned()
            }
        }
    }

    const fn cure(&self) -> &'static str {
        match self {
            Self::Refused | Self::Certificate => {
                "Log in again as you do for kubectl; kubectl auth whoami says whether it works. The console goes on by itself then."
            }
            Self::Program => "Run kubectl auth whoami, and log in as it asks. The console goes on by itself then.",
            Self::Silent => {
                "Look at the network and at the API server; kubectl version says whether it answers. The console goes on by itself then."
            }
            Self::Unusable(_) => "Mend the kubeconfig. The console goes on by itself then.",
            Self::OtherUser { .. } | Self::OtherServer | Self::Unproven => {
                "What was read before is not shown any more. Start the console again to look with this login."
            }
        }
    }

    /// For pages.
    pub(super) fn ended(&self, since: Time) -> Ended {
        Ended {
            since,
            what: match self {
                Self::Silent => "The API server does not answer",
                _ => "The login of the console has ended",
            },
            why: self.why(),
            cure: self.cure().to_owned(),
            is_hidden: self.is_other(),
        }
    }

    /// The pause before the next try, after so many.
    pub(super) fn pause(&self, tries: usize) -> Duration {
        let (first, last) = match self {
            Self::Program => (PROGRAM, PAUSES.len() - 1),
            // It is one question, and no login is refused.
            Self::Silent => (0, SILENT),
            _ => (0, PAUSES.len() - 1),
        };
        let at = (first + tries).min(last);
        Duration::from_secs(PAUSES.get(at).copied().unwrap_or(300))
    }
}

/// Why an error says that the login may have ended; `None` for all other errors.
pub(crate) fn of_login(error: &kube::Error) -> Option<Cause> {
    if matches!(error, kube::Error::Api(status) if status.code == 401) {
        return Some(Cause::Refused);
    }
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(NotSent(cause)) = error.downcast_ref() {
            return Some(cause.clone());
        }
        if error.is::<AuthError>() {
            return Some(Cause::Program);
        }
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = inner
            .and_then(|inner| inner.downcast_ref())
            .or_else(|| error.downcast_ref());
        if tls.is_some_and(is_about_the_certificate) {
            return Some(Cause::Certificate);
        }
        next = error.source();
    }
    None
}

/// Whether a request or a watch had no answer of the API server, or not all of it.
pub(crate) fn is_silence(error: &kube::Error) -> bool {
    let is_lost = match error {
        kube::Error::Service(_) | kube::Error::HyperError(_) | kube::Error::ReadEvents(_) => true,
        kube::Error::Api(status) => OF_PROXY.contains(&status.code),
        _ => false,
    };
    is_lost && of_login(error).is_none()
}

/// Whether an error is about the login.
pub(crate) fn is_of_login(error: &kube::Error) -> bool {
    of_login(error).is_some()
}

/// Whether the server ends the connection because of the certificate of the client.
fn is_about_the_certificate(error: &rustls::Error) -> bool {
    let rustls::Error::AlertReceived(alert) = error else {
        return false;
    };
    let all = [
        Alert::BadCertificate,
        Alert::UnsupportedCertificate,
        Alert::CertificateRevoked,
        Alert::CertificateExpired,
        Alert::CertificateUnknown,
        Alert::UnknownCA,
        Alert::AccessDenied,
        Alert::CertificateRequired,
    ];
    all.contains(alert)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn api(code: u16) -> kube::Error {
        kube::Error::Api(Box::new(Status {
            code,
            ..Status::default()
        }))
    }

    fn io(inner: impl Into<Box<dyn Error + Send + Sync>>) -> kube::Error {
        kube::Error::Service(Box::new(io::Error::other(inner)))
    }

    #[test]
    fn errors_about_the_login_differ_from_others() {
        for (error, cause) in [
            (api(401), Some(Cause::Refused)),
            (api(403), None),
            (api(500), None),
            (api(502), None),
            (api(503), None),
            (api(504), None),
            (kube::Error::Auth(AuthError::ExecPluginFailed), Some(Cause::Program)),
            (
                kube::Error::Service(Box::new(AuthError::ExecPluginFailed)),
                Some(Cause::Program),
            ),
            (
                kube::Error::Service(Box::new(NotSent(Cause::Unproven))),
                Some(Cause::Unproven),
            ),
            (
                io(rustls::Error::AlertReceived(Alert::CertificateExpired)),
                Some(Cause::Certificate),
            ),
            (io(rustls::Error::AlertReceived(Alert::InternalError)), None),
            // The certificate of the server is not that of the client.
            (
                io(rustls::Error::InvalidCertificate(rustls::CertificateError::Expired)),
                None,
            ),
            (io("connection refused"), None),
        ] {
            assert_eq!(of_login(&error), cause, "{error:?}");
            let is_answer = matches!(&error, kube::Error::Api(status) if ![502, 503, 504].contains(&status.code));
            let is_lost = cause.is_none() && !is_answer;
            assert_eq!(is_silence(&error), is_lost, "{error:?}");
        }
    }

    #[test]
    fn each_end_says_what_to_do_and_what_another_user_read_is_hidden() {
        let other = |now: &str| Cause::OtherUser {
            first: "ann".to_owned(),
            now: now.to_owned(),
        };
        for (cause, part, is_hidden) in [
            (Cause::Refused, "kubectl auth whoami", false),
            (Cause::Certificate, "kubectl auth whoami", false),
            (Cause::Program, "kubectl auth whoami", false),
            (Cause::Unusable("no".to_owned()), "Mend the kubeconfig", false),
            (Cause::Silent, "kubectl version", false),
            (other("bob"), "Start the console again", true),
            (other("ann"), "Start the console again", true),
            (Cause::OtherServer, "Start the console again", true),
            (Cause::Unproven, "Start the console again", true),
        ] {
            let ended = cause.ended(Time::from(chrono::DateTime::UNIX_EPOCH));
            assert_eq!(
                (ended.cure.contains(part), ended.is_hidden),
                (true, is_hidden),
                "{ended:?}"
            );
            assert!(ended.refusal().contains(&ended.why) && ended.refusal().starts_with("Nothing was changed"));
        }
    }

    #[test]
    fn pauses_grow_and_those_of_programs_begin_longer() {
        for (cause, tries, seconds) in [
            (Cause::Refused, 0, 2),
            (Cause::Refused, 3, 15),
            (Cause::Refused, 1_000, 300),
            (Cause::Silent, 1_000, 15),
            (Cause::Program, 0, 30),
            (Cause::Program, 9, 300),
        ] {
            assert_eq!(cause.pause(tries), Duration::from_secs(seconds), "{cause:?} {tries}");
        }
    }
}
