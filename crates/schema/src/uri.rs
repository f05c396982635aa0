//! `format: uri`, with the rules of Go's `url.ParseRequestURI`.
//!
//! Either an absolute path or a scheme followed by anything: text after a scheme without a slash is not checked.

use std::net::Ipv6Addr;

pub(crate) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else {
        return false;
    };
    let rest = rest.split_once('?').map_or(rest, |(before, _)| before);
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//") {
        Some(after) if !scheme.is_empty() => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at(end);
            is_authority(authority) && escapes_are_whole(path)
        }
        _ => escapes_are_whole(rest),
    }
}

/// The scheme (may be empty) and the rest; `None` if the text starts with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')));
    let starts_with_letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match text.split_once(':') {
        Some(("", _)) => None,
        Some((scheme, rest)) if starts_with_letter && end == Some(scheme.len()) => Some((scheme, rest)),
        _ => Some(("", text)),
    }
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        let mut bytes = part.bytes();
        bytes.next().is_some_and(|b| b.is_ascii_hexdigit()) && bytes.next().is_some_and(|b| b.is_ascii_hexdigit())
    })
}

fn is_authority(authority: &str) -> bool {
    match authority.rsplit_once('@') {
        None => is_host(authority),
        Some((user, host)) => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
            is_host(host) && user.chars().all(allowed) && escapes_are_whole(user)
        }
    }
}

fn is_host(host: &str) -> bool {
    if let Some(open) = host.rfind('[') {
        return open == 0 && is_bracketed(host);
    }
    // Only the text after the last colon is a port, to accept lists of hosts.
    if let Some((_, port)) = host.rsplit_once(':')
        && !port.bytes().all(|b| b.is_ascii_digit())
    {
        return false;
    }
    is_host_text(host)
}

fn is_bracketed(host: &str) -> bool {
    let Some((inside, port)) = host.strip_prefix('[').and_then(|rest| rest.rsplit_once(']')) else {
        return false;
    };
    let (address, zone) = match inside.split_once("%25") {
        Some((address, zone)) => (address, Some(zone)),
        None => (inside, None),
    };
    let zone_is_sound = zone.is_none_or(|zone| !zone.is_empty() && escapes_are_whole(zone) && is_zone_text(zone));
    is_port(port) && zone_is_sound && address.parse::<Ipv6Addr>().is_ok()
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
}

/// A host may escape bytes outside ASCII only, and the percent sign itself.
fn is_host_text(text: &str) -> bool {
    let sound = |part: &str| {
        matches!(part.bytes().next(), Some(b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F')) || part.starts_with("25")
    };
    escapes_are_whole(text) && text.split('%').skip(1).all(sound) && text.chars().all(|c| c == '%' || is_host_char(c))
}

fn is_zone_text(text: &str) -> bool {
    text.chars().all(|c| c == '%' || is_host_char(c))
}

fn is_host_char(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"".contains(c)
}

#[cfg(test)]
mod tests {
    use super::is_request_uri;

    #[test]
    fn a_path_or_a_scheme_is_required() {
        for good in [
            "/a",
            "*",
            "http://example.org",
            "mailto:someone",
            "a:",
            "http://[fe80::1]:80/x",
            "ftp://a:b@c/d%20e",
            "redfish+http://10.0.0.1:8000/redfish/v1",
            "http://a/b?c=%zz",
            "x://a:b:1/",
            "http://a:1:2/",
            "//no-scheme",
            "http://%C3%A9",
            "http://[fe80::1%25eth0]/",
            "//a:b",
            "mailto:a b",
            "a-b:c",
            "a.b:c",
        ] {
            assert!(is_request_uri(good), "{good}");
        }
        for bad in [
            "",
            "example.org",
            ":a",
            "1http://a",
            "http://a b",
            "http://a:b/",
            "http://[fe80::1",
            "http://[1.2.3.4]/",
            "/a%2",
            "/a%zz",
            "http://a%20b/",
            "http://u er@a/",
            "/a\n",
            "http://a]:x",
            "http://[::1]x",
            "http://[fe80::1%25]/",
            "http://[fe80::1%25a b]/",
            "http://[fe80::1%25%zz]/",
        ] {
            assert!(!is_request_uri(bad), "{bad}");
        }
    }
}
