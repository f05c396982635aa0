//! Destinations that an administrator allows: networks, host names and domains.
//!
//! Users name the destinations: hosts of images, management controllers, API servers of clusters. Other programs connect
//! to some of them and may read a URL in another way, so a text with two readings is not allowed. Invariant: what is
//! not known to be allowed is not. Names are not resolved here.

use std::net::{IpAddr, Ipv6Addr};

use crate::bmc::BmcAddress;
use crate::image::{ImageField, ImageFields};
use crate::ip::AnyPrefix;
use crate::uri::Uri;

/// A list of allowed destinations. An empty one allows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    networks: Vec<AnyPrefix>,
    /// In lower case.
    names: Vec<String>,
    /// In lower case, with the leading dot.
    domains: Vec<String>,
}

impl Allowed {
    /// Reads networks such as `192.0.2.0/24`, addresses, host names, and domains such as `.example.org`.
    ///
    /// # Errors
    /// The first entry that is none of these.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        let mut allowed = Self::default();
        for entry in entries {
            let name = entry.to_ascii_lowercase();
            if let Some(network) = network(entry) {
                allowed.networks.push(network);
            } else if name.strip_prefix('.').is_some_and(is_name) {
                allowed.domains.push(name);
            } else if is_name(&name) {
                allowed.names.push(name);
            } else {
                return Err(entry);
            }
        }
        Ok(allowed)
    }

    /// The same for networks and addresses only.
    ///
    /// # Errors
    /// The first entry that is none.
    pub fn parse_networks<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        let networks = entries.into_iter().map(|entry| network(entry).ok_or(entry));
        Ok(Self {
            networks: networks.collect::<Result<_, _>>()?,
            ..Self::default()
        })
    }

    /// Whether there is no restriction.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.networks.is_empty() && self.names.is_empty() && self.domains.is_empty()
    }

    /// Whether the address is allowed.
    #[must_use]
    pub fn address(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let contains = |network: &AnyPrefix| match (network, address) {
            (AnyPrefix::V4(network), IpAddr::V4(address)) => network.range().contains(address),
            (AnyPrefix::V6(network), IpAddr::V6(address)) => network.range().contains(address),
            _ => false,
        };
        self.is_all() || self.networks.iter().any(contains)
    }

    /// Whether the name is allowed. An address is no name.
    #[must_use]
    pub fn name(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let is_in_domain = |domain: &String| name.ends_with(domain.as_str());
        self.is_all() || (is_name(&name) && (self.names.contains(&name) || self.domains.iter().any(is_in_domain)))
    }

    /// Whether a host of a URL, without brackets, is allowed. What is no address in the usual form is a name.
    #[must_use]
    pub fn host(&self, host: &str) -> bool {
        match host.parse::<IpAddr>() {
            Ok(address) => self.address(address),
            Err(_) => self.name(host),
        }
    }

    /// Whether the host of an absolute URL is allowed, as every program reads it.
    #[must_use]
    pub fn url(&self, url: &str) -> bool {
        if self.is_all() {
            return true;
        }
        let Ok(uri) = Uri::parse_request(url) else { return false };
        // Another parser may take a backslash for the end of the host, and decode escapes in it or not.
        let raw = url.split_once("//").map_or("", |(_, rest)| rest);
        let raw = raw.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        // Ironic takes what is before the first '@' for the registry.
        if uri.scheme == "oci" && raw.contains('@') {
            return false;
        }
        let raw = raw.rsplit_once('@').map_or(raw, |(_, host)| host);
        raw == uri.authority && self.host(uri.host())
    }

    /// The field of an image that names a host that is not allowed.
    #[must_use]
    pub fn forbidden_image_field(&self, image: &ImageFields<'_>) -> Option<ImageField> {
        let checksum = image.checksum.filter(|text| text.contains("://"));
        if !self.url(image.url) {
            return Some(ImageField::Url);
        }
        checksum.filter(|url| !self.url(url)).map(|_| ImageField::Checksum)
    }

    /// Whether the address of a management controller is allowed: an IP address, because Ironic would resolve a name later
    /// and to another address.
    #[must_use]
    pub fn controller(&self, address: &BmcAddress) -> bool {
        // The Redfish client of Ironic takes the host of such a path for the one to log in to.
        let names_other_host = address.path().starts_with("//");
        self.is_all() || (!names_other_host && address.ip().is_some_and(|ip| self.address(ip)))
    }
}

/// A network, or an address as the network of this address alone.
fn network(entry: &str) -> Option<AnyPrefix> {
    let is_v6 = entry.parse::<Ipv6Addr>().is_ok();
    let whole = match (entry.contains('/'), is_v6) {
        (true, _) => entry.to_owned(),
        (false, true) => format!("{entry}/128"),
        (false, false) => format!("{entry}/32"),
    };
    AnyPrefix::parse(&whole).ok()
}

/// Whether the text is a DNS name, and not an address in any form: the last label of a name has a letter.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_inner)
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    // `0x7f000001` is an address to some programs.
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 253 && text.split('.').all(is_label) && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Allowed {
        Allowed::parse([
            "192.0.2.0/24",
            "198.51.100.7",
            "2001:db8::/32",
            "images.example.org",
            ".CDN.example.org",
        ])
        .unwrap()
    }

    #[test]
    fn list_without_entries_allows_all() {
        let all = Allowed::default();
        assert!(all.is_all() && all.url("http://any/") && all.host("any") && all.address(IpAddr::from([10, 0, 0, 1])));
    }

    #[test]
    fn hosts_of_the_list_are_allowed() {
        for url in [
            "http://192.0.2.9/os.qcow2",
            "https://user:secret@192.0.2.9:8443/os?signed=1",
            "http://[2001:db8::7]:80/os",
            "http://[::ffff:192.0.2.9]/os",
            "HTTP://Images.Example.org./os",
            "oci://a.b.cdn.example.org/os@sha256:0",
            "http://198.51.100.7",
        ] {
            assert!(allowed().url(url), "{url}");
        }
    }

    #[test]
    fn other_hosts_and_texts_with_two_readings_are_not_allowed() {
        for url in [
            "oci://evil.example@a.b.cdn.example.org/os@sha256:0",
            "OCI://user:pw@a.b.cdn.example.org/os",
            "http://192.0.3.9/os",
            "http://198.51.100.8/",
            "http://[2001:db9::7]/os",
            "http://cdn.example.org/os",
            "http://xcdn.example.org/os",
            "http://images.example.org.evil.example/os",
            "http://evil.example/images.example.org",
            "http://images.example.org@evil.example/os",
            "http://evil.example\\@images.example.org/os",
            "http://evil.example#@images.example.org/os",
            "http://evil.example?@images.example.org/os",
            "http://images.example%2eorg/os",
            "http://3221225993/os",
            "http://0xc0000209/os",
            "http://192.0.521/os",
            "http://192.0.2.9%25eth0/os",
            "http:images.example.org/os",
            "//images.example.org/os",
            "http:///os",
            "/os",
            "",
        ] {
            assert!(!allowed().url(url), "{url}");
        }
    }

    #[test]
    fn url_of_a_checksum_counts() {
        let image = |url, checksum| ImageFields {
            url,
            checksum: Some(checksum),
            ..ImageFields::default()
        };
        let field = |url, checksum| allowed().forbidden_image_field(&image(url, checksum));
        assert_eq!(field("http://192.0.2.9/os", "http://192.0.2.9/sums"), None);
        assert_eq!(field("http://192.0.2.9/os", "0123456789abcdef"), None);
        assert_eq!(
            field("http://192.0.2.9/os", "HTTP://evil.example/sums"),
            Some(ImageField::Checksum)
        );
        assert_eq!(
            field("http://evil.example/os", "http://evil.example/sums"),
            Some(ImageField::Url)
        );
    }

    #[test]
    fn controller_is_allowed_by_its_address_only() {
        let networks = Allowed::parse_networks(["192.0.2.0/24"]).unwrap();
        let is_allowed = |text| networks.controller(&BmcAddress::parse(text).unwrap());
        for text in [
            "192.0.2.9",
            "ipmi://192.0.2.9:6230",
            "redfish://192.0.2.9/redfish/v1/Systems/1",
        ] {
            assert!(is_allowed(text), "{text}");
        }
        for text in [
            "redfish://192.0.3.9/redfish/v1/Systems/1",
            "redfish://bmc.example.org/redfish/v1/Systems/1",
            "redfish://192.0.2.9//evil.example/redfish/v1/Systems/1",
            "redfish://192.0.2.9/%2fevil.example/redfish/v1/Systems/1",
            "redfish:///redfish/v1/Systems/1",
        ] {
            assert!(!is_allowed(text), "{text}");
        }
    }

    #[test]
    fn entry_that_is_no_destination_is_an_error() {
        for entry in [
            "192.0.2.0/33",
            "http://images.example.org",
            "*.example.org",
            "a..b",
            "",
            ".",
            "1.2.3",
            "a:80",
        ] {
            assert_eq!(Allowed::parse([entry]), Err(entry));
        }
        assert_eq!(Allowed::parse_networks(["bmc.example.org"]), Err("bmc.example.org"));
    }
}
