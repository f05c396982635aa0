//! URL text, read by the rules of Go's `net/url`.
//!
//! The managers this project replaces decide with that parser what a BMC address or an image URL means, so its corner
//! cases are part of the API: an address that starts with a digit has no scheme, a colon in the first path segment is
//! an error, only an IPv6 address may stand in brackets. This is not a general URL library: it keeps the parts that
//! are asked for and forgets user info and fragment at once, so that credentials typed into an address go no further.

use std::net::Ipv6Addr;

use thiserror::Error;

/// Why text is no URL. The messages never contain the text: it may hold credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UriError {
    /// A byte below the blank, or DEL.
    #[error("it contains a control character; remove it")]
    ControlCharacter,
    /// It starts with a colon.
    #[error("the scheme before the first ':' is missing; write it, as in 'redfish://'")]
    MissingScheme,
    /// `host:port` without a scheme.
    #[error("the text before the first '/' contains ':' but is no scheme; put a scheme in front")]
    ColonInFirstSegment,
    /// `[` without `]`.
    #[error("the bracket around the IPv6 address is not closed; add ']'")]
    UnclosedBracket,
    /// Brackets around something other than an IPv6 address.
    #[error("the text in brackets is not an IPv6 address; brackets are for IPv6 only")]
    BracketedHost,
    /// Something other than digits where the port stands.
    #[error("the port is not a number; write ':' and digits, and put an IPv6 address in brackets")]
    Port,
    /// A character that no host may contain.
    #[error("the host contains a character that is not allowed in a host")]
    HostCharacter,
    /// `%` without two hexadecimal digits, or an escape that may not stand there.
    #[error("it contains a broken '%' escape; write '%' and two hexadecimal digits")]
    Escape,
    /// A character before `@` that user info may not contain.
    #[error("the part before '@' contains a character that must be escaped")]
    UserInfo,
    /// Neither a scheme nor a leading slash.
    #[error("it is not absolute; start with a scheme such as 'https://'")]
    NotAbsolute,
}

/// The parts of a URL that the project uses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Uri {
    /// In lower case; empty when there is none.
    pub(crate) scheme: String,
    /// What follows the scheme when that is not a slash.
    pub(crate) opaque: String,
    /// Host and port as written, unescaped, brackets kept.
    pub(crate) authority: String,
    /// Unescaped.
    pub(crate) path: String,
    /// As written, without the question mark.
    pub(crate) query: String,
}

impl Uri {
    /// Reads a URL as found in a document: a fragment is cut off, relative references are fine.
    pub(crate) fn parse(text: &str) -> Result<Self, UriError> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let uri = Self::parse_without_fragment(before, false)?;
        decode(fragment, Place::Path)?;
        Ok(uri)
    }

    /// Reads a URL as used in a request: it has a scheme or starts with a slash, and has no fragment.
    pub(crate) fn parse_request(text: &str) -> Result<Self, UriError> {
        Self::parse_without_fragment(text, true)
    }

    fn parse_without_fragment(text: &str, request: bool) -> Result<Self, UriError> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(UriError::ControlCharacter);
        }
        if text.is_empty() && request {
            return Err(UriError::NotAbsolute);
        }
        if text == "*" {
            return Ok(Self {
                path: text.to_owned(),
                ..Self::default()
            });
        }
        let (scheme, rest) = split_scheme(text)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut uri = Self {
            scheme: scheme.to_ascii_lowercase(),
            query: query.to_owned(),
            ..Self::default()
        };
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                rest.clone_into(&mut uri.opaque);
                return Ok(uri);
            }
            if request {
                return Err(UriError::NotAbsolute);
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err(UriError::ColonInFirstSegment);
            }
        }
        let may_have_authority = !scheme.is_empty() || (!request && !rest.starts_with("///"));
        let path = match rest.strip_prefix("//").filter(|_| may_have_authority) {
            Some(rest) => {
                let authority = rest.split('/').next().unwrap_or(rest);
                uri.authority = host_and_port(authority)?;
                rest.strip_prefix(authority).unwrap_or("")
            }
            None => rest,
        };
        uri.path = decode(path, Place::Path)?;
        Ok(uri)
    }

    /// Host without port and brackets; empty when there is none.
    pub(crate) fn host(&self) -> &str {
        let (host, _) = split_port(&self.authority);
        host.strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host)
    }

    /// Port as written, empty when there is none: it is never read as a number here.
    pub(crate) fn port(&self) -> &str {
        split_port(&self.authority).1
    }

    /// The first value of `key` in the query; `None` when the key is absent or any part of the query is malformed.
    pub(crate) fn query_value(&self, key: &str) -> Option<String> {
        let mut found = None;
        for pair in self.query.split('&').filter(|pair| !pair.is_empty()) {
            if pair.contains(';') {
                return None;
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decode(name, Place::Query).ok()?, decode(value, Place::Query).ok()?);
            if found.is_none() && name == key {
                found = Some(value);
            }
        }
        found
    }
}

/// Hides what may be credentials: everything between the scheme and the last `@`.
pub(crate) fn redacted(text: &str) -> String {
    let Some((credentials, rest)) = text.rsplit_once('@') else {
        return text.to_owned();
    };
    match credentials.split_once("//") {
        Some((scheme, _)) => format!("{scheme}//***@{rest}"),
        None => format!("***@{rest}"),
    }
}

/// A scheme is a letter and then letters, digits, `+`, `-`, `.`; text before a colon that is anything else is no scheme.
fn split_scheme(text: &str) -> Result<(&str, &str), UriError> {
    let Some((scheme, rest)) = text.split_once(':') else {
        return Ok(("", text));
    };
    let mut bytes = scheme.bytes();
    match bytes.next() {
        None => Err(UriError::MissingScheme),
        Some(first)
            if first.is_ascii_alphabetic() && bytes.all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b)) =>
        {
            Ok((scheme, rest))
        }
        Some(_) => Ok(("", text)),
    }
}

fn host_and_port(authority: &str) -> Result<String, UriError> {
    let Some((user_info, host)) = authority.rsplit_once('@') else {
        return unescaped_host(authority);
    };
    let host = unescaped_host(host)?;
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user_info.bytes().all(allowed) {
        return Err(UriError::UserInfo);
    }
    decode(user_info, Place::Path)?;
    Ok(host)
}

fn unescaped_host(text: &str) -> Result<String, UriError> {
    if let Some((_, bracketed)) = text.rsplit_once('[') {
        let (inner, port) = bracketed.rsplit_once(']').ok_or(UriError::UnclosedBracket)?;
        if !is_optional_port(port) {
            return Err(UriError::Port);
        }
        let (address, zone) = inner
            .split_once("%25")
            .map_or((inner, None), |(address, zone)| (address, Some(zone)));
        let address = decode(address, Place::Host)?;
        if address.parse::<Ipv6Addr>().is_err() || zone.is_some_and(str::is_empty) {
            return Err(UriError::BracketedHost);
        }
        let zone = zone.map(|zone| decode(zone, Place::Path)).transpose()?;
        let zone = zone.map_or_else(String::new, |zone| format!("%{zone}"));
        return Ok(format!("[{address}{zone}]{port}"));
    }
    let (_, port) = text.split_at(text.find(':').unwrap_or(text.len()));
    if !is_optional_port(port) {
        return Err(UriError::Port);
    }
    decode(text, Place::Host)
}

/// Nothing, or a colon and digits (none are fine).
fn is_optional_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn split_port(authority: &str) -> (&str, &str) {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
        _ => (authority, ""),
    }
}

/// Where escaped text stands: each place has its own rules.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Path,
    Query,
    Host,
}

fn decode(text: &str, place: Place) -> Result<String, UriError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let value = escaped_byte(bytes.next(), bytes.next()).ok_or(UriError::Escape)?;
                // Only bytes outside ASCII and the percent sign itself may be escaped in a host.
                if place == Place::Host && value.is_ascii() && value != b'%' {
                    return Err(UriError::Escape);
                }
                decoded.push(value);
            }
            b'+' if place == Place::Query => decoded.push(b' '),
            byte if place == Place::Host && !may_stand_in_host(byte) => return Err(UriError::HostCharacter),
            byte => decoded.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&decoded).into_owned())
}

fn may_stand_in_host(byte: u8) -> bool {
    !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~".contains(&byte)
}

fn escaped_byte(high: Option<u8>, low: Option<u8>) -> Option<u8> {
    let digit = |byte: Option<u8>| {
        char::from(byte?)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    Some(digit(high)? << 4 | digit(low)?)
}
