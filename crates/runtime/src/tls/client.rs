//! Addresses of clients, and their names from the certificates that the server has verified.
//!
//! Of a certificate only the subject is read here. The TLS library verifies the certificate first and rejects one that is not valid.

use std::net::IpAddr;

/// The common name of a verified client certificate, as an extension of its requests. Requests of a client without a
/// certificate have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientName(pub String);

/// The address of the client, as an extension of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The tag of the version, the one optional member in front of the subject.
const VERSION: u8 = 0xa0;
/// The identifier of the common name, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

impl ClientName {
    /// The last common name of the subject, as in Go; empty when there is none.
    pub(super) fn of(certificate: &[u8]) -> Self {
        Self(common_name(certificate).unwrap_or_default())
    }
}

fn common_name(certificate: &[u8]) -> Option<String> {
    let certificate = Reader(certificate).member(SEQUENCE)?;
    let mut members = Reader(Reader(certificate).member(SEQUENCE)?);
    if members.0.first() == Some(&VERSION) {
        members.next()?;
    }
    // Serial number, algorithm, issuer, validity.
    for _ in 0..4 {
        members.next()?;
    }
    let mut names = Reader(members.member(SEQUENCE)?);
    let mut found = None;
    while !names.0.is_empty() {
        let mut attributes = Reader(names.member(SET)?);
        while !attributes.0.is_empty() {
            let mut attribute = Reader(attributes.member(SEQUENCE)?);
            if attribute.member(OBJECT_IDENTIFIER)? == COMMON_NAME {
                let (_, text) = attribute.next()?;
                found = Some(String::from_utf8(text.to_vec()).ok()?);
            }
        }
    }
    found
}

/// Reads values in the distinguished encoding.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next value, if it has this tag.
    fn member(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, content)| content)
    }

    /// Tag and content of the next value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, mut rest) = rest.split_first()?;
        let mut length = usize::from(*first);
        if length > 127 {
            let (digits, after) = rest.split_at_checked(length - 128)?;
            if digits.len() > 3 {
                return None;
            }
            length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
            rest = after;
        }
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, content))
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (kind, text) in names {
            params.distinguished_name.push(kind.clone(), *text);
        }
        params
            .self_signed(&KeyPair::generate().unwrap())
            .unwrap()
            .der()
            .to_vec()
    }

    #[test]
    fn the_name_of_a_client_is_the_common_name_of_the_subject() {
        let long = "x".repeat(300);
        let table: [(&[(DnType, &str)], &str); 4] = [
            (&[(DnType::CommonName, "kube-apiserver")], "kube-apiserver"),
            (
                &[
                    (DnType::OrganizationName, "system:masters"),
                    (DnType::CommonName, &long),
                ],
                &long,
            ),
            (&[(DnType::OrganizationName, "kube-apiserver")], ""),
            (&[], ""),
        ];
        for (names, expected) in table {
            assert_eq!(ClientName::of(&certificate(names)).0, expected);
        }
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_name() {
        let whole = certificate(&[(DnType::CommonName, "kube-apiserver")]);
        for end in 0..whole.len() {
            ClientName::of(&whole[..end]);
        }
        for (position, changed) in (0..whole.len()).flat_map(|position| [(position, 0), (position, 0xff)]) {
            let mut bytes = whole.clone();
            bytes[position] = changed;
            ClientName::of(&bytes);
        }
        assert_eq!(ClientName::of(b""), ClientName(String::new()));
        assert_eq!(
            ClientName::of(&[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]),
            ClientName(String::new())
        );
    }
}
