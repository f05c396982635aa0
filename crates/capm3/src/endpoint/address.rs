//! Host and port of an API server.

use std::fmt;
use std::net::IpAddr;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::ControlPlaneEndpoint;

/// Default port of an API server.
pub const API_SERVER_PORT: u16 = 6443;

/// Address of an API server. Host names compare case-insensitively, IP addresses by value.
#[derive(Debug, Clone)]
pub struct Address {
    /// IP address or host name.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Address {
    /// The address, if the host is no placeholder and there is a valid port or a `fallback`.
    #[must_use]
    pub fn stated(host: Option<&str>, port: Option<i32>, fallback: Option<u16>) -> Option<Self> {
        Some(Self {
            host: stated_host(host)?.to_owned(),
            port: stated_port(port).or(fallback)?,
        })
    }

    /// The address of an endpoint in the spec.
    #[must_use]
    pub fn of(endpoint: &ControlPlaneEndpoint) -> Option<Self> {
        Self::stated(endpoint.host.as_deref(), endpoint.port, None)
    }

    /// The endpoint of the Cluster, once it is valid. Only a user changes it then.
    #[must_use]
    pub fn of_cluster(cluster: &Cluster) -> Option<Self> {
        let endpoint = cluster.spec.control_plane_endpoint.as_ref()?;
        Self::stated(endpoint.host.as_deref(), endpoint.port, None)
    }

    /// Parses the output of [`Display`](fmt::Display).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim();
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.contains(['[', ']']) {
            return None;
        }
        Self::stated(Some(host), port.parse().ok(), None)
    }
}

/// A valid host. Some providers report ready with a placeholder.
#[must_use]
pub fn stated_host(host: Option<&str>) -> Option<&str> {
    let host = host.map(str::trim).filter(|host| !host.is_empty())?;
    let is_place = host.parse::<IpAddr>().map_or(true, |address| !address.is_unspecified());
    is_place.then_some(host)
}

/// A valid port.
#[must_use]
pub fn stated_port(port: Option<i32>) -> Option<u16> {
    u16::try_from(port?).ok().filter(|port| *port != 0)
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        let same_host = match (self.host.parse::<IpAddr>(), other.host.parse::<IpAddr>()) {
            (Ok(one), Ok(two)) => one == two,
            _ => self.host.eq_ignore_ascii_case(&other.host),
        };
        same_host && self.port == other.port
    }
}

impl Eq for Address {}

/// `host:port`, with an IPv6 address in brackets.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}
