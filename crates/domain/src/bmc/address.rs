//! Parsing of BMC addresses.

use std::net::IpAddr;

use thiserror::Error;

use super::{Kind, Profile, Transport};
use crate::uri::{Uri, UriError, redacted};

/// Privilege level when an IPMI address names none.
const DEFAULT_PRIVILEGE: &str = "ADMINISTRATOR";
/// Query key of the privilege level in an IPMI address.
const PRIVILEGE_KEY: &str = "privilegelevel";
/// Longest label of a DNS name.
const LONGEST_LABEL: usize = 63;

/// The parsed address of a management controller.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BmcAddress {
    kind: Kind,
    transport: Transport,
    host: String,
    authority: String,
    port: String,
    path: String,
    privilege_level: String,
}

/// Why text is no address of a management controller. Messages contain no user info. differs (`bmc-address-words`): all
/// messages, except the beginning of that for an unknown type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BmcAddressError {
    /// The text is empty.
    #[error("the BMC address is missing; set bmc.address, for example to redfish://192.0.2.7/redfish/v1/Systems/1")]
    Missing,
    /// The text is no URL and no host with a port.
    #[error("bmc.address {address:?} cannot be read")]
    Malformed {
        /// The text without credentials.
        address: String,
        /// What is wrong with it.
        source: UriError,
    },
    /// The host is neither an IP address nor a DNS name.
    #[error(
        "bmc.address names the host {host:?}, which is neither an IP address nor a DNS name; \
         labels are letters, digits and inner hyphens, at most 63 long, without a final dot"
    )]
    Host {
        /// The host without credentials.
        host: String,
    },
    /// No driver has this scheme.
    #[error("Unknown BMC type '{scheme}' for address {address}")]
    UnknownType {
        /// The scheme in lower case.
        scheme: String,
        /// The text without credentials.
        address: String,
    },
}

/// The class of an address error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BmcErrorClass {
    /// The text cannot be read.
    Invalid,
    /// The text is valid but names a controller type without a driver.
    UnknownType,
}

impl BmcAddressError {
    /// The class of this error.
    #[must_use]
    pub const fn class(&self) -> BmcErrorClass {
        match self {
            Self::Missing | Self::Malformed { .. } | Self::Host { .. } => BmcErrorClass::Invalid,
            Self::UnknownType { .. } => BmcErrorClass::UnknownType,
        }
    }
}

impl BmcAddress {
    /// Reads an address. Text without a scheme is an IPMI host.
    ///
    /// ```
    /// use metal3_domain::bmc::BmcAddress;
    ///
    /// let address = BmcAddress::parse("redfish-virtualmedia+http://[2001:db8::7]:8000/redfish/v1/Systems/1")?;
    /// assert_eq!(address.host(), "2001:db8::7");
    /// assert_eq!(address.profile().interfaces.boot, Some("redfish-virtual-media"));
    /// assert_eq!(BmcAddress::parse("192.0.2.1:6230")?.type_name(), "ipmi");
    /// # Ok::<(), metal3_domain::bmc::BmcAddressError>(())
    /// ```
    ///
    /// # Errors
    /// When the text is empty, cannot be read, names an impossible host, or has a scheme without a driver.
    pub fn parse(text: &str) -> Result<Self, BmcAddressError> {
        if text.is_empty() {
            return Err(BmcAddressError::Missing);
        }
        let uri = as_url(text)?;
        if !is_host(uri.host()) {
            return Err(BmcAddressError::Host {
                host: redacted(uri.host()),
            });
        }
        let Some((kind, transport)) = Kind::of_scheme(&uri.scheme) else {
            return Err(BmcAddressError::UnknownType {
                scheme: uri.scheme,
                address: redacted(text),
            });
        };
        Ok(Self {
            kind,
            transport,
            host: uri.host().to_owned(),
            port: uri.port().to_owned(),
            privilege_level: uri
                .query_value(PRIVILEGE_KEY)
                .unwrap_or_else(|| DEFAULT_PRIVILEGE.to_owned()),
            authority: uri.authority,
            path: uri.path,
        })
    }

    /// The kind of controller.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The profile of this kind of controller.
    #[must_use]
    pub const fn profile(&self) -> Profile {
        self.kind.profile()
    }

    /// The transport the scheme names.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// The scheme in lower case with the transport: the BMC type in messages.
    #[must_use]
    pub fn type_name(&self) -> String {
        self.kind.scheme_with(self.transport)
    }

    /// Host without brackets. Empty when the address has none, which the Go managers accept as well.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host as an IP address, when it is one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// Port as written, without a check of its range.
    #[must_use]
    pub fn port(&self) -> Option<&str> {
        Some(self.port.as_str()).filter(|port| !port.is_empty())
    }

    /// Host and port as a URL writes them.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Unescaped path.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Privilege level on an IPMI controller.
    #[must_use]
    pub fn privilege_level(&self) -> &str {
        &self.privilege_level
    }
}

/// Parses the text as a URL; other text is `host` or `host:port` of an IPMI controller.
fn as_url(text: &str) -> Result<Uri, BmcAddressError> {
    let malformed = |source| BmcAddressError::Malformed {
        address: redacted(text),
        source,
    };
    let uri = match Uri::parse(text) {
        Err(source) if text.contains(':') && !splits_into_host_and_port(text) => return Err(malformed(source)),
        Err(_) => {
            return Ok(Uri {
                scheme: "ipmi".to_owned(),
                authority: text.to_owned(),
                ..Uri::default()
            });
        }
        // `redfish:host` is short for `redfish://host`.
        Ok(uri) if !uri.opaque.is_empty() => Uri::parse(&text.replacen(':', "://", 1)).map_err(malformed)?,
        Ok(uri) => uri,
    };
    if uri.scheme.is_empty() && uri.host().is_empty() {
        return Uri::parse(&format!("ipmi://{text}")).map_err(malformed);
    }
    Ok(uri)
}

/// The rule of Go's `net.SplitHostPort`: one colon outside of brackets, and brackets only around the host.
fn splits_into_host_and_port(text: &str) -> bool {
    let has_bracket = |text: &str| text.contains(['[', ']']);
    match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']').is_some_and(|(host, rest)| {
            rest.strip_prefix(':')
                .is_some_and(|port| !port.contains(':') && !has_bracket(port))
                && !host.contains('[')
        }),
        None => text.split_once(':').is_some_and(|(_, port)| !port.contains(':')) && !has_bracket(text),
    }
}

fn is_host(host: &str) -> bool {
    host.is_empty() || host.parse::<IpAddr>().is_ok() || host.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=LONGEST_LABEL).contains(&label.len())
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}
