//! Durations as Go writes them: `1h2m3.5s`.

use super::error::ConversionError;

const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// Units with their nanoseconds. A name comes before its own prefixes.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("s", NANOS_PER_SECOND),
];

/// Whole seconds of a duration, truncated and clamped to 32 bits.
pub(super) fn seconds(text: &str, field: &str) -> Result<i32, ConversionError> {
    let nanoseconds = parse(text).ok_or_else(|| {
        ConversionError::new(
            field,
            format!("{text:?} is not a duration"),
            "use numbers with units, such as 10m or 1m30s",
        )
    })?;
    let seconds = nanoseconds / NANOS_PER_SECOND;
    let bound = if seconds < 0 { i32::MIN } else { i32::MAX };
    Ok(i32::try_from(seconds).unwrap_or(bound))
}

/// Nanoseconds, if the text is a duration that Go would accept.
fn parse(text: &str) -> Option<i128> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut rest = rest;
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (nanoseconds, tail) = part(rest)?;
        total = total.checked_add(nanoseconds)?;
        if total > i128::from(i64::MAX) + i128::from(negative) {
            return None;
        }
        rest = tail;
    }
    Some(if negative { -total } else { total })
}

/// Parses the first number and its unit; returns nanoseconds and the rest.
fn part(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (unit, rest) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((*unit, rest.strip_prefix(name)?)))?;
    let whole = match whole {
        "" => 0,
        digits => i128::from(digits.parse::<i64>().ok()?),
    };
    Some((whole.checked_mul(unit)?.checked_add(scaled(fraction, unit))?, rest))
}

/// Splits off the leading digits.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// A decimal fraction of a unit. Digits after the eighteenth amount to less than a nanosecond.
fn scaled(fraction: &str, unit: i128) -> i128 {
    let mut value = 0;
    let mut scale = 1;
    for digit in fraction.chars().take(18).filter_map(|c| c.to_digit(10)) {
        value = value * 10 + i128::from(digit);
        scale *= 10;
    }
    value * unit / scale
}

/// Formats a number of seconds as Go does.
pub(super) fn print(seconds: i32) -> String {
    let sign = if seconds < 0 { "-" } else { "" };
    let total = seconds.unsigned_abs();
    let (hours, minutes, seconds) = (total / 3_600, total / 60 % 60, total % 60);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        for (text, expected) in [
            ("0", 0),
            ("300s", 300),
            ("1m40.9s", 100),
            (".5h", 1_800),
            (".25h", 900),
            ("1.h", 3_600),
            ("-5s", -5),
            ("+1h2m3s", 3_723),
            ("1500ms", 1),
            ("2000000\u{b5}s", 2),
            ("876000h", i32::MAX),
            ("-876000h", i32::MIN),
            ("2562047h47m16.854775807s", i32::MAX),
            ("-2562047h47m16.854775808s", i32::MIN),
        ] {
            assert_eq!(seconds(text, "f"), Ok(expected), "{text}");
        }
    }

    #[test]
    fn durations_invalid_in_go_are_rejected_with_field_and_cure() {
        for text in [
            "",
            "-",
            "5",
            "s",
            "1d",
            "1h ",
            "1,5s",
            ".s",
            "9999999h",
            "2562047h47m16.854775808s",
            "-2562047h47m16.854775809s",
            "99999999999999999999s",
        ] {
            let error = seconds(text, "spec.strategy.timeout").unwrap_err();
            assert_eq!(error.field, "spec.strategy.timeout", "{text}");
            assert!(error.cure.contains("1m30s"), "{text}");
        }
    }

    #[test]
    fn durations_print_as_in_go() {
        for (number, text) in [
            (0, "0s"),
            (59, "59s"),
            (-60, "-1m0s"),
            (3_600, "1h0m0s"),
            (-5_025, "-1h23m45s"),
        ] {
            assert_eq!(print(number), text);
        }
    }

    proptest! {
        #[test]
        fn printed_durations_parse_to_the_same_value(number in any::<i32>()) {
            prop_assert_eq!(seconds(&print(number), "f"), Ok(number));
        }

        #[test]
        fn any_text_parses_or_fails_without_panic(text in "\\PC{0,12}|[-+0-9.hmsun\u{b5}]{0,24}") {
            let _ = seconds(&text, "f");
        }
    }
}
