//! The string formats that the API server enforces in CRDs, and how strictly.
//!
//! The list and the strictness are those of Kubernetes 1.35: `int32` and `double` have no effect, `date-time` accepts
//! any sub-second separator, an IPv4 address may have leading zeros. `email` is rejected by the parser of schemas: its
//! grammar is that of Go's mail parser, and an approximation would differ from a real server.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use crate::uri;

/// A format that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

impl Format {
    /// The format of that name, `None` if the API server ignores it.
    ///
    /// # Errors
    /// The cure, if the API server checks the format and this crate does not.
    pub(crate) fn by_name(name: &str) -> Result<Option<Format>, &'static str> {
        // Dashes are ignored: `date-time` and `datetime` are the same.
        Ok(Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Format::BsonObjectId,
            "byte" => Format::Byte,
            "cidr" => Format::Cidr,
            "creditcard" => Format::CreditCard,
            "date" => Format::Date,
            "datetime" => Format::DateTime,
            "duration" => Format::Duration,
            "email" => return Err("use a `pattern`"),
            "hexcolor" => Format::HexColor,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "isbn" => Format::Isbn,
            "isbn10" => Format::Isbn10,
            "isbn13" => Format::Isbn13,
            "k8slongname" => Format::LongName,
            "k8sshortname" => Format::ShortName,
            "mac" => Format::Mac,
            "password" => Format::Password,
            "rgbcolor" => Format::RgbColor,
            "ssn" => Format::Ssn,
            "uri" => Format::Uri,
            "uuid" => Format::Uuid,
            "uuid3" => Format::Uuid3,
            "uuid4" => Format::Uuid4,
            "uuid5" => Format::Uuid5,
            _ => return Ok(None),
        }))
    }

    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Format::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Format::Byte => BYTE.is_match(text),
            Format::Cidr => is_cidr(text),
            Format::CreditCard => is_credit_card(text),
            Format::Date => is_date(text),
            Format::DateTime => is_date_time(text),
            Format::Duration => is_duration(text),
            Format::HexColor => HEX_COLOR.is_match(text),
            Format::Hostname => is_hostname(text),
            Format::Ipv4 => ipv4(text).is_some() || (text.contains('.') && ipv6(text).is_some()),
            Format::Ipv6 => text.contains(':') && is_strict_ipv6(text),
            Format::Isbn => is_isbn10(text) || is_isbn13(text),
            Format::Isbn10 => is_isbn10(text),
            Format::Isbn13 => is_isbn13(text),
            Format::LongName => text.len() <= 253 && LONG_NAME.is_match(text),
            Format::ShortName => text.len() <= 63 && SHORT_NAME.is_match(text),
            Format::Mac => is_mac(text),
            Format::Password => true,
            Format::RgbColor => RGB_COLOR.is_match(text),
            Format::Ssn => text.len() == 11 && SSN.is_match(text),
            Format::Uri => uri::is_request_uri(text),
            Format::Uuid => is_uuid(text, None),
            Format::Uuid3 => is_uuid(text, Some('3')),
            Format::Uuid4 => is_uuid(text, Some('4')),
            Format::Uuid5 => is_uuid(text, Some('5')),
        }
    }
}

fn fixed(pattern: &str) -> Regex {
    #[expect(
        clippy::expect_used,
        reason = "the patterns are constants of this file, each used by a test"
    )]
    Regex::new(pattern).expect("a constant pattern compiles")
}

static BYTE: LazyLock<Regex> =
    LazyLock::new(|| fixed("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"));
static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| fixed("^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let (space, part) = (r"[\t\n\f\r ]*", "(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])");
    fixed(&format!(
        r"^rgb\({space}{part}{space},{space}{part}{space},{space}{part}{space}\)$"
    ))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| fixed("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static SHORT_NAME: LazyLock<Regex> = LazyLock::new(|| fixed("^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$"));
static LONG_NAME: LazyLock<Regex> =
    LazyLock::new(|| fixed(r"^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$"));
static UUID: LazyLock<Regex> =
    LazyLock::new(|| fixed("^[0-9a-f]{8}-?[0-9a-f]{4}-?([0-9a-f])[0-9a-f]{3}-?([0-9a-f])[0-9a-f]{3}-?[0-9a-f]{12}$"));
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    fixed(concat!(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        "|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
    ))
});
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    fixed(concat!(
        r"^(?:[a-zA-Z0-9\p{S}\p{L}](?:-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?",
        r"|(?:[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.){1,}[a-zA-Z\p{L}]{2,63})$"
    ))
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| fixed("^([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})$"));
static SPAN: LazyLock<Regex> = LazyLock::new(|| fixed(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)"));

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOSTNAME.is_match(text) && text.split('.').all(|label| label.len() <= 63)
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    // `(?i)` in Go also folds two letters outside ASCII, which are no hexadecimal digits.
    let lower = text.to_ascii_lowercase();
    let Some(found) = UUID.captures(&lower) else {
        return false;
    };
    let digit = |index| found.get(index).and_then(|digit| digit.as_str().chars().next());
    match version {
        None => true,
        Some('3') => digit(1) == Some('3'),
        Some(version) => digit(1) == Some(version) && matches!(digit(2), Some('8' | '9' | 'a' | 'b')),
    }
}

fn is_mac(text: &str) -> bool {
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    let groups: Vec<&str> = match separator {
        Some(c @ (':' | '-' | '.')) => text.split(c).collect(),
        _ => return false,
    };
    let (digits, lengths): (usize, &[usize]) = if separator == Some('.') {
        (4, &[3, 4, 10])
    } else {
        (2, &[6, 8, 20])
    };
    lengths.contains(&groups.len())
        && groups
            .iter()
            .all(|group| group.len() == digits && group.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Four decimal groups, leading zeros allowed, as in older Go.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut groups = text.split('.');
    for octet in &mut octets {
        let group = groups.next()?;
        let digits = group.trim_start_matches('0');
        if group.is_empty() || !group.bytes().all(|b| b.is_ascii_digit()) || digits.len() > 3 {
            return None;
        }
        *octet = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    }
    groups.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// An IPv6 address; its groups and its IPv4 tail, if any, may have leading zeros.
fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let (groups, tail) = match text.rsplit_once(':').filter(|(_, tail)| tail.contains('.')) {
        Some((head, tail)) => (head, format!(":{}", ipv4(tail)?)),
        None => (text, String::new()),
    };
    let short = |group: &str| match group.trim_start_matches('0') {
        "" if !group.is_empty() => String::from("0"),
        digits => digits.to_owned(),
    };
    let groups: Vec<String> = groups.split(':').map(short).collect();
    format!("{}{tail}", groups.join(":")).parse().ok()
}

/// Go's own parser: no leading zeros in the tail.
fn is_strict_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let longest = if ipv4(address).is_some() {
        32
    } else if ipv6(address).is_some() {
        128
    } else {
        return false;
    };
    !length.is_empty()
        && length.bytes().all(|b| b.is_ascii_digit())
        && length.parse::<u32>().is_ok_and(|n| n <= longest)
}

fn is_date(text: &str) -> bool {
    let (Some(year), Some(month), Some(day)) = (text.get(0..4), text.get(5..7), text.get(8..10)) else {
        return false;
    };
    let dashes = text.len() == 10 && text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
    let number = |part: &str| {
        part.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| part.parse::<u32>().ok())
            .flatten()
    };
    let (true, Some(year), Some(month), Some(day)) = (dashes, number(year), number(month), number(day)) else {
        return false;
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// A date, a `T` and a time. Text after a second `T` is ignored.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(found) = TIME.captures(time) else { return false };
    let at_most = |index, limit| found.get(index).is_some_and(|part| part.as_str() <= limit);
    is_date(date) && at_most(1, "23") && at_most(2, "59") && at_most(3, "59")
}

/// A Go duration, or text that contains a number with a unit, as in Scala.
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_loose_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut nanoseconds = 0.0_f64;
    while !rest.is_empty() {
        let after_number = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = rest.strip_suffix(after_number).unwrap_or_default();
        let after_unit = after_number.trim_start_matches(|c: char| !c.is_ascii_digit() && c != '.');
        let unit = after_number.strip_suffix(after_unit).unwrap_or_default();
        let Some(factor) = go_unit(unit) else { return false };
        let digits = number.bytes().any(|b| b.is_ascii_digit()) && number.matches('.').count() <= 1;
        let Ok(value) = number.trim_end_matches('.').parse::<f64>() else {
            return false;
        };
        if !digits {
            return false;
        }
        nanoseconds += value * factor;
        rest = after_unit;
    }
    nanoseconds < 9_223_372_036_854_775_808.0
}

fn go_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
}

fn is_loose_duration(text: &str) -> bool {
    let mut known = false;
    for found in SPAN.captures_iter(text) {
        let (Some(number), Some(unit)) = (found.get(1), found.get(2)) else {
            return false;
        };
        if number.as_str().parse::<i64>().is_err() {
            return false;
        }
        let unit = unit.as_str().to_lowercase();
        let exact = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"];
        let stems = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
        known |= exact.contains(&unit.as_str()) || stems.iter().any(|stem| unit.starts_with(stem));
    }
    known
}

fn digits_of(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let luhn = |(index, digit): (usize, u32)| {
        let doubled = if index % 2 == 1 { digit * 2 } else { digit };
        if doubled > 9 { doubled - 9 } else { doubled }
    };
    CREDIT_CARD.is_match(&digits)
        && digits_of(&digits)
            .into_iter()
            .rev()
            .enumerate()
            .map(luhn)
            .sum::<u32>()
            .is_multiple_of(10)
}

fn bare_isbn(text: &str) -> String {
    text.chars()
        .filter(|c| !matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ' | '-'))
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let bare = bare_isbn(text);
    let (body, check) = match bare.char_indices().nth(9) {
        Some((at, last)) if bare.len() == 10 => (bare.get(..at).unwrap_or_default(), last),
        _ => return false,
    };
    let check = if check == 'X' { Some(10) } else { check.to_digit(10) };
    let (true, Some(check)) = (body.bytes().all(|b| b.is_ascii_digit()), check) else {
        return false;
    };
    let weighted: u32 = (1..).zip(digits_of(body)).map(|(weight, digit)| weight * digit).sum();
    (weighted + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let bare = bare_isbn(text);
    if bare.len() != 13 || !bare.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    let weighted: u32 = [1, 3]
        .iter()
        .cycle()
        .zip(digits_of(&bare))
        .map(|(weight, digit)| weight * digit)
        .sum();
    weighted.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn each_format_is_as_strict_as_the_api_server() {
        for (name, good, bad) in [
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77bcf86cd79943901"),
            ("byte", "aGk=", "aGk"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("cidr", "0fe80::/64", "10.0.0.0"),
            ("creditcard", "4111-1111-1111-1111", "4111111111111112"),
            ("date", "2024-02-29", "2023-02-29"),
            ("date-time", "2024-02-29T23:59:59Z", "2024-02-29T24:00:00Z"),
            ("date-time", "2024-02-29t01:02:03,5+01:00", "2024-02-29 01:02:03Z"),
            ("duration", "1h30m", "soon"),
            ("duration", "3 days", ""),
            ("hexcolor", "#fff", "#ff"),
            ("hostname", "node-1.example.org", "node_1"),
            ("ipv4", "010.0.0.1", "10.0.0"),
            ("ipv6", "fe80::1", "10.0.0.1"),
            ("isbn", "0321751043", "0321751044"),
            ("isbn10", "080442957X", "978-0321751041"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("k8s-long-name", "a.b-c", "A"),
            ("k8s-short-name", "a-b", "a.b"),
            ("mac", "00:5e:00:53:01:00", "00:5e:00:53:01"),
            ("mac", "0000.5e00.5301", "00-5e:00-53-01-00"),
            ("rgbcolor", "rgb(1, 2,255)", "rgb(1,2,256)"),
            ("ssn", "111-22-3333", "111223333"),
            ("uri", "https://example.org/a?b", "example.org"),
            ("uuid", "6BA7B810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810"),
            (
                "uuid3",
                "6ba7b8109dad31d1d0b400c04fd430c8",
                "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            ),
            (
                "uuid4",
                "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
                "6ba7b810-9dad-41d1-c0b4-00c04fd430c8",
            ),
            (
                "uuid5",
                "6ba7b810-9dad-51d1-80b4-00c04fd430c8",
                "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
            ),
        ] {
            let format = Format::by_name(name).unwrap().unwrap();
            assert!(format.accepts(good), "{name} accepts {good}");
            assert!(!format.accepts(bad), "{name} rejects {bad}");
        }
    }

    #[test]
    fn formats_of_numbers_are_ignored_and_email_is_rejected() {
        for name in ["int32", "int64", "double", "float", "semver", ""] {
            assert_eq!(Format::by_name(name), Ok(None));
        }
        assert!(Format::by_name("email").is_err());
    }
}
