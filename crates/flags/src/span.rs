//! Durations in the syntax of Go.

use std::time::Duration;

/// Parses `10s`, `1h30m`, `1.5s`, `100ms`. A plain `0` needs no unit.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let unit_length = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(unit_length)?;
        let seconds = number.parse::<f64>().ok()? * seconds_in(unit)?;
        total = total.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        rest = tail;
    }
    Some(total)
}

fn seconds_in(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_as_in_go() {
        for (text, millis) in [
            ("0", 0),
            ("0s", 0),
            ("10s", 10_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("100ms", 100),
            ("2m0.5s", 120_500),
            (".5s", 500),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn invalid_durations_give_none() {
        for text in [
            "",
            "10",
            "s",
            "-10s",
            "10 s",
            "10x",
            "1.2.3s",
            "h",
            "1e400s",
            "99999999999999999999h",
            "1s2",
            ".",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
