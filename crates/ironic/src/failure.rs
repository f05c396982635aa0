//! Errors of the connection.

use std::error::Error as StdError;
use std::io;

use crate::error::Error;
use crate::text::printable;

/// Classifies a failed request. URLs are removed from the message: the reader knows the endpoint.
pub(crate) fn classify(operation: &'static str, error: reqwest::Error) -> Error {
    if error.is_timeout() {
        return Error::Timeout { operation };
    }
    let was_sent = !error.is_connect();
    let error = error.without_url();
    let reason = printable(&innermost(&error));
    if is_tls(&error) {
        return Error::Untrusted { operation, reason };
    }
    Error::Unreachable {
        operation,
        reason,
        was_sent,
    }
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(
        Some(error),
        |error: &&'a (dyn StdError + 'static)| -> Option<&'a (dyn StdError + 'static)> {
            let error: &'a (dyn StdError + 'static) = *error;
            // An I/O error contains its cause as inner error, not as source.
            if let Some(inner) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
                return Some(inner);
            }
            error.source()
        },
    )
}

fn innermost(error: &(dyn StdError + 'static)) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

/// Whether TLS failed: one side does not trust the other's certificate.
fn is_tls(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| {
        cause.downcast_ref::<rustls::Error>().is_some_and(|tls| {
            matches!(
                tls,
                rustls::Error::InvalidCertificate(_)
                    | rustls::Error::AlertReceived(_)
                    | rustls::Error::NoCertificatesPresented
            )
        })
    })
}
