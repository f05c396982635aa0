//! The address of Ironic, and the authentication of both sides.
//!
//! An endpoint is one origin, and the login belongs to it: every URL is made from the endpoint, and no response (a
//! redirect, a link to a next page) can change it. `Debug` shows no secrets.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;

use crate::request::Request;

/// A change of a managed node is seen within a second.
pub(crate) const QUICK_POLL: Duration = Duration::from_secs(1);

/// The reason why a text is not an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct EndpointError(&'static str);

/// The address of an Ironic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Url);

impl Endpoint {
    /// Reads `https://host:6385`, with or without `/v1` and a final slash.
    ///
    /// # Errors
    /// Names the problem without the text, which may contain a login.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let mut url = Url::parse(text.trim())
            .map_err(|_| EndpointError("the Ironic endpoint is not a URL; write https://host:6385"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(EndpointError(
                "the Ironic endpoint must begin with http:// or https:// and a host",
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError(
                "the Ironic endpoint must not hold a login; give user name and password apart",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(EndpointError("the Ironic endpoint must end with its path"));
        }
        let path = url.path().trim_end_matches('/');
        let prefix = path.strip_suffix("/v1").unwrap_or(path).to_owned();
        url.set_path(&prefix);
        Ok(Self(url))
    }

    /// Whether requests cross a network without encryption.
    #[must_use]
    pub fn is_in_clear(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let is_own = host
            .parse()
            .map_or(host == "localhost", |address: IpAddr| address.is_loopback());
        self.0.scheme() == "http" && !is_own
    }

    /// The URL of a request.
    pub(crate) fn url(&self, request: &Request) -> Url {
        let mut url = self.0.clone();
        // Both schemes have a path, so there is always one to extend.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(request.path());
        }
        if !request.query().is_empty() {
            url.query_pairs_mut()
                .extend_pairs(request.query().iter().map(|(key, value)| (key, value.as_str())));
        }
        url
    }
}

/// The authentication of the client.
#[derive(Debug, Clone)]
pub enum Login {
    /// None.
    Open,
    /// HTTP basic.
    Basic {
        /// The user's name.
        username: String,
        /// The password.
        password: SecretString,
    },
    /// HTTP basic, from the files `username` and `password` of this directory; read again when they change.
    Folder(PathBuf),
}

impl PartialEq for Login {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Open, Self::Open) => true,
            (Self::Folder(one), Self::Folder(other)) => one == other,
            (
                Self::Basic { username, password },
                Self::Basic {
                    username: other_name,
                    password: other_password,
                },
            ) => username == other_name && password.expose_secret() == other_password.expose_secret(),
            _ => false,
        }
    }
}

/// TLS trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// The CA bundle, the only trusted one then. `None`: the system's CAs.
    pub ca: Option<Ca>,
    /// The client certificate.
    pub client: Option<ClientCertificate>,
    /// Whether certificates are not verified. Set by an explicit flag only.
    pub insecure: bool,
}

/// A CA bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ca {
    /// In a file, which is read again when it changes.
    File(PathBuf),
    /// The bundle itself.
    Pem {
        /// Its text.
        pem: String,
        /// Where it is from, for errors.
        from: String,
    },
}

impl Ca {
    /// The file, if it is in one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Pem { .. } => None,
        }
    }
}

/// The files of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The settings of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The address.
    pub endpoint: Endpoint,
    /// The login.
    pub login: Login,
    /// The trust.
    pub trust: Trust,
    /// The timeout of one request, connection and body included.
    pub time_limit: Duration,
    /// The longest pause of the feed while a managed node changes state.
    pub quick_poll: Duration,
}

impl Settings {
    /// An endpoint without login, with the system's trust, a timeout of 30 seconds and polls once a second.
    #[must_use]
    pub const fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            login: Login::Open,
            trust: Trust {
                ca: None,
                client: None,
                insecure: false,
            },
            time_limit: Duration::from_secs(30),
            quick_poll: QUICK_POLL,
        }
    }

    /// The same for an Ironic whose machines are `speed` times faster than real ones.
    #[must_use]
    pub fn faster(self, speed: u32) -> Self {
        let quick_poll = self.quick_poll.checked_div(speed).unwrap_or(self.quick_poll);
        Self { quick_poll, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{self, NodeRef};

    fn url(endpoint: &str, node: &str) -> String {
        let call = calls::node::get(&NodeRef::Name(node.into()));
        Endpoint::parse(endpoint).unwrap().url(call.request()).to_string()
    }

    #[test]
    fn an_endpoint_may_be_written_with_and_without_the_version() {
        for endpoint in [
            "https://h:6385",
            "https://h:6385/",
            "https://h:6385/v1",
            " https://h:6385/v1/ ",
        ] {
            assert_eq!(url(endpoint, "n"), "https://h:6385/v1/nodes/n", "{endpoint}");
        }
        assert_eq!(
            url("http://[::1]/baremetal/v1", "n"),
            "http://[::1]/baremetal/v1/nodes/n"
        );
        assert_eq!(url("https://h", "ns~host-0"), "https://h/v1/nodes/ns~host-0");
    }

    #[test]
    fn a_name_stays_within_its_segment_of_the_path() {
        assert_eq!(url("https://h", "a/b?c#d"), "https://h/v1/nodes/a%2Fb%3Fc%23d");
        assert!(!url("https://h", "../drivers").contains("/../"));
    }

    #[test]
    fn invalid_endpoints_are_rejected_without_their_text() {
        for text in [
            "",
            "h:6385",
            "ftp://h",
            "https://",
            "https://u:pw@h",
            "https://u@h",
            "https://h?a=pw",
            "https://h#pw",
        ] {
            let error = Endpoint::parse(text).unwrap_err().to_string();
            assert!(!error.contains("pw"), "{text}: {error}");
        }
    }

    #[test]
    fn debug_of_settings_does_not_show_the_password() {
        let mut settings = Settings::new(Endpoint::parse("https://h").unwrap());
        settings.login = Login::Basic {
            username: "admin".into(),
            password: "hunter2".into(),
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("admin") && !shown.contains("hunter2"), "{shown}");
    }
}
