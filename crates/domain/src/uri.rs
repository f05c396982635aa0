//! URL parsing by the rules of Go's `net/url`.
//!
//! The Go managers parse BMC addresses and image URLs with it, so its corner cases are part of the API: an address that
//! starts with a digit has no scheme, a colon in the first path segment is an error, only an IPv6 address may be in
//! brackets. This is not a general URL library: it keeps only the required parts and drops user info and fragment, so
//! that credentials in an address are not stored.

use std::net::Ipv6Addr;

use thiserror::Error;

/// Why text is no URL. The messages never contain the text: it may contain credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UriError {
    /// An ASCII control character.
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
    /// A port that is not a number.
    #[error("the port is not a number; write ':' and digits, and put an IPv6 address in brackets")]
    Port,
    /// A character that no host may contain.
    #[error("the host contains a character that is not allowed in a host")]
    HostCharacter,
    /// `%` without two hexadecimal digits, or an escape that is not allowed at its place.
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
    /// The text after the scheme when it does not start with a slash.
    pub(crate) opaque: String,
    /// Host and port as written, unescaped, brackets kept.
    pub(crate) authority: String,
    /// Unescaped.
    pub(crate) path: String,
    /// As written, without the question mark.
    pub(crate) query: String,
}

impl Uri {
    /// Parses a URL as found in a document: a fragment is removed, relative references are accepted.
    pub(crate) fn parse(text: &str) -> Result<Self, UriError> {
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let uri = Self::parse_without_fragment(before, false)?;
        decode(fragment, Place::Path)?;
        Ok(uri)
    }

    /// Parses a URL as used in a request: it has a scheme or starts with a slash, and has no fragment.
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

    /// Port as written; empty when there is none.
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

/// Hides possible credentials: everything between the scheme and the last `@`, and the query, which contains the
/// signature of signed URLs.
#[must_use]
pub fn redacted_url(text: &str) -> String {
    let shown = redacted(text);
    match shown.split_once('?') {
        Some((before, _)) => format!("{before}?***"),
        None => shown,
    }
}

/// Hides possible credentials: everything between the scheme and the last `@`.
pub(crate) fn redacted(text: &str) -> String {
    let Some((credentials, rest)) = text.rsplit_once('@') else {
        return text.to_owned();
    };
    match credentials.split_once("//") {
        Some((scheme, _)) => format!("{scheme}//***@{rest}"),
        None => format!("***@{rest}"),
    }
}

/// The text with the logins of all its URLs hidden. Ironic repeats URLs in its messages.
#[must_use]
pub fn without_logins(text: &str) -> String {
    with_urls(text, without_login)
}

/// The text with the logins and the queries of all its URLs hidden: a query contains the signature of a signed URL.
#[must_use]
pub fn public_text(text: &str) -> String {
    with_urls(text, |url| {
        let shown = without_login(url);
        match shown.split_once('?') {
            Some((before, query)) if !query.is_empty() => format!("{before}?***"),
            _ => shown,
        }
    })
}

/// The text with each URL, without its scheme, shown in another way.
fn with_urls(text: &str, show: impl Fn(&str) -> String) -> String {
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(is_end_of_url).unwrap_or(after.len());
        let end = behind_login(after, end).unwrap_or(end);
        let (url, tail) = after.split_at_checked(end).unwrap_or((after, ""));
        shown.push_str(before);
        shown.push_str("://");
        shown.push_str(&show(url));
        rest = tail;
    }
    shown.push_str(rest);
    shown
}

fn is_end_of_url(one: char) -> bool {
    one.is_whitespace() || matches!(one, '"' | '<' | '>')
}

/// The end of a URL whose password contains a blank: behind the host that follows the login.
fn behind_login(text: &str, end: usize) -> Option<usize> {
    /// The longest password that is looked for.
    const LONGEST: usize = 128;
    let (url, rest) = text.split_at_checked(end)?;
    if url.contains('@') || is_host(authority_of(url)) {
        return None;
    }
    // No further: a text may have a URL in each of its words.
    let near = rest.chars().take(LONGEST).take_while(|one| *one != '\n');
    let at: usize = near.take_while(|one| *one != '@').map(char::len_utf8).sum();
    let host = rest.get(at..).filter(|host| host.starts_with('@'))?;
    Some(end + at + host.find(is_end_of_url).unwrap_or(host.len()))
}

fn authority_of(url: &str) -> &str {
    url.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Whether an authority without login is a host, and not the begin of a login.
fn is_host(authority: &str) -> bool {
    let has_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    authority.starts_with('[') || authority.split_once(':').is_none_or(|(_, port)| has_port(port))
}

/// The same for one URL without its scheme. A password may contain a slash that is not escaped.
fn without_login(url: &str) -> String {
    let authority = authority_of(url);
    if let Some((_, host)) = authority.rsplit_once('@') {
        let path = url.strip_prefix(authority).unwrap_or_default();
        return format!("***@{host}{path}");
    }
    // `user:12/3@host` looks like a host with a port, as `registry:5000/image@sha256:…` does.
    let is_ambiguous = authority.contains(':') && !authority.starts_with('[');
    let has_login = is_ambiguous && url.rsplit_once('@').is_some_and(|(_, rest)| !is_digest(rest));
    match is_host(authority) && !has_login {
        true => url.to_owned(),
        false => redacted(url),
    }
}

/// Whether a text begins with the digest of an image, `sha256:…`.
fn is_digest(text: &str) -> bool {
    let digest = text
        .split_once(':')
        .filter(|(algorithm, _)| ["sha256", "sha384", "sha512"].contains(algorithm));
    digest.is_some_and(|(_, digits)| digits.starts_with(|first: char| first.is_ascii_hexdigit()))
}

/// A scheme is a letter followed by letters, digits, `+`, `-` or `.`; other text before a colon is no scheme.
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

/// Empty, or a colon and any number of digits.
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

/// The part of a URL, which determines the rules for escapes.
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
            byte if place == Place::Host && !is_allowed_in_host(byte) => return Err(UriError::HostCharacter),
            byte => decoded.push(byte),
        }
    }
    Ok(String::from_utf8_lossy(&decoded).into_owned())
}

fn is_allowed_in_host(byte: u8) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_of_urls_in_a_text_are_hidden() {
        for (text, shown) in [
            ("no URL, a@b", "no URL, a@b"),
            ("get https://u:p@h/i.raw, then", "get https://***@h/i.raw, then"),
            (
                "'http://u:p@h:80/a' and \"ftp://x@[::1]/b\"",
                "'http://***@h:80/a' and \"ftp://***@[::1]/b\"",
            ),
            ("http://u:p@q@h/", "http://***@h/"),
            ("http://u:p/w@h/i", "http://***@h/i"),
            ("http://h:80/a@b oci://r/i@sha256:1", "http://***@b oci://r/i@sha256:1"),
            ("http://[::1]:80/a@b", "http://[::1]:80/a@b"),
            ("://", "://"),
            (
                "cannot reach redfish://root:12/canary@192.0.2.1/x now",
                "cannot reach redfish://***@192.0.2.1/x now",
            ),
            (
                "cannot reach redfish://root:my canary@192.0.2.1/x now",
                "cannot reach redfish://***@192.0.2.1/x now",
            ),
            (
                "oci://registry:5000/image@sha256:01ef is kept",
                "oci://registry:5000/image@sha256:01ef is kept",
            ),
            (
                "http://host: no route; mail to a@b",
                "http://host: no route; mail to a@b",
            ),
        ] {
            assert_eq!(without_logins(text), shown);
        }
    }
}
