//! Destinations of a management controller's events.
//!
//! Only the form is checked, with the rules of Go's URL parser and the Go manager; the destination is not contacted.

use thiserror::Error;

use crate::uri::{Uri, UriError};

/// Why text is no event destination. The text is not repeated: it may contain credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DestinationError {
    /// The text is empty.
    #[error("destination cannot be empty")]
    Empty,
    /// The text is no URL.
    #[error("destination is invalid: {0}")]
    Url(UriError),
    /// The URL has no path; some controllers reject such a URL.
    #[error("hostname-only destination must have a trailing slash")]
    NoPath,
}

/// Checks the URL that events are sent to.
///
/// # Errors
/// When the text is empty, no absolute URL, or has no path.
pub fn check_destination(text: &str) -> Result<(), DestinationError> {
    if text.is_empty() {
        return Err(DestinationError::Empty);
    }
    let uri = Uri::parse_request(text).map_err(DestinationError::Url)?;
    if uri.path.is_empty() {
        return Err(DestinationError::NoPath);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destination_is_an_absolute_url_with_a_path() {
        for text in ["https://192.0.2.50/events", "http://listener/", "/events"] {
            assert_eq!(check_destination(text), Ok(()), "{text:?}");
        }
        assert_eq!(check_destination(""), Err(DestinationError::Empty));
        assert_eq!(
            check_destination("events"),
            Err(DestinationError::Url(UriError::NotAbsolute))
        );
        for text in ["https://192.0.2.50", "https://192.0.2.50?token=x", "mailto:me"] {
            assert_eq!(check_destination(text), Err(DestinationError::NoPath), "{text:?}");
        }
    }
}
