//! Why a list or a watch ended, and what helps.

use std::io;
use std::time::Duration;

use crate::cache::Unwatched;
use crate::client::is_not_allowed;
use crate::version::ResourceVersion;
use crate::work::{Class, classify};

use super::decode::DecodeError;

/// Why a list or a watch ended early.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The version has expired.
    #[error("the version to resume from has expired")]
    Expired,
    /// The server rejected the request, or the connection failed.
    #[error(transparent)]
    Refused(Box<kube::Error>),
    /// The connection broke.
    #[error("the watch broke: {0}")]
    Broken(#[from] io::Error),
    /// The server ended the watch with an error.
    #[error("the server ended the watch: {code} {message}")]
    Ended {
        /// The status code.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// Nothing arrived in time.
    #[error("no event or bookmark for {}s", .0.as_secs())]
    Silent(Duration),
    /// A watch ended regularly without any event.
    #[error("the watch ended before it sent anything")]
    Short,
    /// The response cannot be decoded.
    #[error(transparent)]
    DecodeError(#[from] DecodeError),
    /// The list is older than the cache.
    #[error("the list is of version {list}, older than {seen}, which is cached already")]
    Behind {
        /// Of the list.
        list: ResourceVersion,
        /// Of the cache.
        seen: ResourceVersion,
    },
}

impl WatchError {
    pub(super) fn of(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 410 => Self::Expired,
            _ => Self::Refused(Box::new(error)),
        }
    }

    /// Whether a list may help: the server responds, and the start version may be the problem.
    pub(super) fn needs_relist(&self) -> bool {
        match self {
            Self::Expired => true,
            Self::Refused(error) => match &**error {
                kube::Error::Api(status) => !matches!(status.code, 401 | 403 | 429 | 500 | 502 | 503),
                _ => false,
            },
            Self::Ended { .. } | Self::Silent(_) | Self::Short | Self::DecodeError(_) => true,
            Self::Broken(_) | Self::Behind { .. } => false,
        }
    }

    /// Whether the same request would be refused again, however often it is sent.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Refused(error) => match &**error {
                kube::Error::Api(status) => {
                    (400..500).contains(&status.code) && ![401, 408, 429].contains(&status.code)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// Why the server does not let this program watch the kind, if that is the error.
    pub(super) fn unwatched(&self) -> Option<Unwatched> {
        match self {
            Self::Refused(error) => match &**error {
                kube::Error::Api(status) if status.code == 404 => Some(Unwatched::NotServed),
                kube::Error::Api(status) if status.code == 403 => Some(Unwatched::NotPermitted),
                _ => None,
            },
            _ => None,
        }
    }

    /// The message without text that the server chose.
    pub(super) fn without_text_of_server(&self) -> String {
        match self {
            Self::Refused(error) => match &**error {
                kube::Error::Api(status) => format!("the server answers with the code {}", status.code),
                error if is_not_allowed(error) => {
                    "its address is not in --allowed-workload-endpoints; ask the administrator of this program to add it".to_owned()
                }
                _ => "the server cannot be reached, or its response cannot be read".to_owned(),
            },
            Self::Ended { code, .. } => format!("the server ended the watch with the code {code}"),
            Self::DecodeError(DecodeError::TooLarge(_)) => self.to_string(),
            Self::DecodeError(_) => "the response of the server cannot be decoded".to_owned(),
            Self::Broken(_) => "the watch broke".to_owned(),
            Self::Expired | Self::Silent(_) | Self::Short | Self::Behind { .. } => self.to_string(),
        }
    }

    /// The class of the error, if the server responded.
    pub(super) fn class(&self) -> Option<Class> {
        match self {
            Self::Refused(error) => Some(classify(error)),
            _ => None,
        }
    }

    /// How long the server asks to wait.
    pub(super) fn retry_after(&self) -> Duration {
        let details = match self {
            Self::Refused(error) => match &**error {
                kube::Error::Api(status) => status.details.as_ref(),
                _ => None,
            },
            _ => None,
        };
        let seconds = details.map_or(0, |details| details.retry_after_seconds);
        Duration::from_secs(seconds.into())
    }
}
