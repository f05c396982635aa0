//! Plain text that a parser reads as another type: words, numbers, times.
//!
//! The forms are those of YAML 1.1, in which `on` is a boolean, `0777` an octal number and `52:54:00` a number of base
//! 60, and those of YAML 1.2. Ambiguous text is quoted, because quotes are always valid.

/// Words with another type, in any spelling: the specification names a few (`on`, `On`, `ON`), and some parsers accept
/// `oN` too.
const WORDS: [&str; 16] = [
    "", "~", "null", "y", "yes", "n", "no", "true", "false", "on", "off", ".nan", ".inf", "+.inf", "-.inf", "<<",
];
/// The default value of YAML 1.1.
const DEFAULT: &str = "=";

/// Whether a parser reads the plain text as another type.
///
/// differs (`yaml-quotes`): the Go manager leaves text plain that its own parser reads as text.
pub(super) fn is_retyped(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
        || text == DEFAULT
        || is_of_another_base(unsigned)
        || is_decimal(unsigned)
        || is_sexagesimal(unsigned)
        || is_date(text)
}

/// `0x1F`, `0o17`, `0b101`, and with digits outside the base.
fn is_of_another_base(text: &str) -> bool {
    let prefixed = text.strip_prefix('0').unwrap_or_default();
    let hexadecimal = prefixed.strip_prefix(['x', 'X']).map(|digits| (digits, 16));
    let other = prefixed.strip_prefix(['o', 'O', 'b', 'B']).map(|digits| (digits, 10));
    hexadecimal.or(other).is_some_and(|(digits, base)| {
        !digits.is_empty() && digits.chars().all(|digit| digit == '_' || digit.is_digit(base))
    })
}

/// `12`, `1_000`, `3.`, `.5`, `1e400`.
fn is_decimal(text: &str) -> bool {
    let (whole, rest) = leading_digits(text);
    let (fraction, rest) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
    let has_digits = if whole.is_empty() {
        !fraction.is_empty()
    } else {
        !whole.starts_with('_')
    };
    let exponent = rest.strip_prefix(['e', 'E']).map(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && leading_digits(digits).1.is_empty()
    });
    has_digits && exponent.unwrap_or(rest.is_empty())
}

/// `12:30:45`, and with numbers above 59.
fn is_sexagesimal(text: &str) -> bool {
    let (whole, rest) = leading_digits(text);
    let (groups, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_group = |group: &str| matches!(group.len(), 1 | 2) && group.bytes().all(|byte| byte.is_ascii_digit());
    !whole.is_empty()
        && !whole.starts_with('_')
        && groups
            .strip_prefix(':')
            .is_some_and(|groups| groups.split(':').all(is_group))
        && leading_digits(fraction).1.is_empty()
}

/// `2026-01-02`, with or without a time, even if there is no such day.
fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let (Some(year), Some(month), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let day = rest.split(['T', 't', ' ', '\t']).next().unwrap_or_default();
    let is_number = |part: &str, longest: usize| {
        (1..=longest).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    year.len() == 4 && is_number(year, 4) && is_number(month, 2) && is_number(day, 2)
}

/// Leading digits and underscores, and the rest.
fn leading_digits(text: &str) -> (&str, &str) {
    let length = text
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || *byte == b'_')
        .count();
    text.split_at_checked(length).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_type_is_found() {
        let rows = "|~|on|Off|oN|nO|Y|TRUE|tRuE|null|<<|=|0|-7|+7|0123|089|0x1F|0X1f|0x_|0o17|0o8|0b101|-0b1|1_000|1__0|3.|.5|._5|\
                    1.0|1e3|1E3|1e+3|1e400|12:30:45|60:61|-1:2|1:2.5|52:54:00:12:34:56|52:54:00:99:88:01|2026-01-02|\
                    2026-1-2|2026-99-99|2026-01-02T03:04:05Z|2026-01-02 03:04|.inf|-.INF|.NaN|=|99999999999999999999";
        for text in rows.split('|') {
            assert!(is_retyped(text), "{text:?}");
        }
    }

    #[test]
    fn other_text_stays_plain() {
        let rows = "nil|None|0x|0o|_1|1e|e3|1,000|1.2.3|10.0.0.1|10.0.0.0/24|::1|2001:db8::1|\
                    2001:4860:4860:0:0:0:0:8888|52:54:00:aa:00:01|v1.31.0|50%|1st|2026-01|-x|12:|:12|1:234|.|..|é|\
                    yes please|123-45-67";
        for text in rows.split('|') {
            assert!(!is_retyped(text), "{text:?}");
        }
    }
}
