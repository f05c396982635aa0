//! Host and port of an API server.

use std::fmt;
use std::net::IpAddr;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::ControlPlaneEndpoint;

/// The port of an API server where nobody names one.
pub const API_SERVER_PORT: u16 = 6443;

/// Where an API server is reached. Two are equal when they mean the same: names in any case, addresses by value.
#[derive(Debug, Clone)]
pub struct Address {
    /// Address or name.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl Address {
    /// What is stated, if it is a place: a host that is no placeholder, and a port, or else the `fallback`.
    #[must_use]
    pub fn stated(host: Option<&str>, port: Option<i32>, fallback: Option<u16>) -> Option<Self> {
        Some(Self {
            host: stated_host(host)?.to_owned(),
            port: stated_port(port).or(fallback)?,
        })
    }

    /// What an endpoint of ours states.
    #[must_use]
    pub fn of(endpoint: &ControlPlaneEndpoint) -> Option<Self> {
        Self::stated(endpoint.host.as_deref(), endpoint.port, None)
    }

    /// The endpoint of the Cluster, once it is valid. From then on nobody but a person changes it.
    #[must_use]
    pub fn of_cluster(cluster: &Cluster) -> Option<Self> {
        let endpoint = cluster.spec.control_plane_endpoint.as_ref()?;
        Self::stated(endpoint.host.as_deref(), endpoint.port, None)
    }

    /// Reads what [`Display`](fmt::Display) writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        Self::stated(Some(host), port.parse().ok(), None)
    }
}

/// A host that means one. Some providers write a placeholder, and say that they are ready.
#[must_use]
pub fn stated_host(host: Option<&str>) -> Option<&str> {
    let host = host.map(str::trim).filter(|host| !host.is_empty())?;
    let is_place = host.parse::<IpAddr>().map_or(true, |address| !address.is_unspecified());
    is_place.then_some(host)
}

/// A port that means one.
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

/// `host:port`, with an address of IP version 6 in brackets.
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
