//! What the connection itself says when no whole answer comes.

use std::error::Error as StdError;
use std::io;

use crate::error::Error;
use crate::text::printable;

/// The kind of a failed exchange. Addresses are taken out of the text: the endpoint is known to whoever reads it.
pub(crate) fn classify(operation: &'static str, error: reqwest::Error) -> Error {
    if error.is_timeout() {
        return Error::Timeout { operation };
    }
    let error = error.without_url();
    let reason = printable(&innermost(&error));
    if is_tls(&error) {
        return Error::Untrusted { operation, reason };
    }
    Error::Unreachable { operation, reason }
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(
        Some(error),
        |error: &&'a (dyn StdError + 'static)| -> Option<&'a (dyn StdError + 'static)> {
            let error: &'a (dyn StdError + 'static) = *error;
            // What an I/O error wraps is not its source but its inside.
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

/// Whether TLS ended it: a certificate that one of the two does not trust.
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
