//! Quantities in the form in which the server stores them: `0.5` is `500m`, and `1024Mi` is `1Gi`.

/// The text for what is no quantity.
pub(super) const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NUMERIC: &str = "unable to parse numeric part of quantity";
const SUFFIX: &str = "unable to parse quantity's suffix";
/// Decimal places of the smallest unit.
const PLACES: u32 = 9;
const DECIMAL: [(&str, i32); 10] = [
    ("E", 18),
    ("P", 15),
    ("T", 12),
    ("G", 9),
    ("M", 6),
    ("k", 3),
    ("", 0),
    ("m", -3),
    ("u", -6),
    ("n", -9),
];
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

/// How a quantity is written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// The canonical form, or why the text is no quantity. A quantity too large for the arithmetic stays as it is.
pub(super) fn canonical(text: &str) -> Result<String, &'static str> {
    let unsigned = text.trim_start_matches(['+', '-']);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
    if number.is_empty() || text.len() > unsigned.len().saturating_add(1) || !is_suffix(suffix) {
        return Err(FORMAT);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return Err(NUMERIC);
    }
    let (form, scale) = scale(suffix)?;
    let is_negative = text.starts_with('-');
    let Some(nanos) = nanos(&format!("{whole}{fraction}"), fraction.len(), (form, scale)) else {
        return Ok(text.to_owned());
    };
    // The server keeps thousandths at least, and rounds up.
    let thousandth = 10_i128.pow(PLACES - 3);
    let rounded = (nanos + thousandth - 1).div_euclid(thousandth) * thousandth;
    let sign = if is_negative && rounded > 0 { "-" } else { "" };
    Ok(format!("{sign}{}", written(rounded, form)))
}

fn is_suffix(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits.chars().all(|c| c.is_ascii_digit())
}

/// The form of a suffix and its exponent, of 2 or of 10.
fn scale(suffix: &str) -> Result<(Form, i32), &'static str> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Ok((Form::Decimal, *exponent));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Ok((Form::Binary, i32::try_from(*exponent).unwrap_or_default()));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).and_then(|text| text.parse().ok());
    exponent.map(|exponent| (Form::Exponent, exponent)).ok_or(SUFFIX)
}

fn nanos(digits: &str, places: usize, (form, scale): (Form, i32)) -> Option<i128> {
    let number: i128 = digits.parse().ok()?;
    let places = i32::try_from(places).ok()?;
    let (times, exponent) = match form {
        Form::Binary => (1_i128.checked_shl(u32::try_from(scale).ok()?)?, 9 - places),
        Form::Decimal | Form::Exponent => (1, 9_i32.checked_sub(places)?.checked_add(scale)?),
    };
    let number = number.checked_mul(times)?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        return number.checked_mul(power);
    }
    Some(number.checked_add(power - 1)?.div_euclid(power))
}

fn written(nanos: i128, form: Form) -> String {
    let one = 10_i128.pow(PLACES);
    if nanos == 0 {
        return "0".to_owned();
    }
    if form == Form::Binary && nanos >= 1024 * one {
        let whole = (nanos + one - 1).div_euclid(one);
        let fits = |(_, exponent): &&(&str, u32)| whole.trailing_zeros() >= *exponent;
        let (suffix, exponent) = BINARY.iter().find(fits).copied().unwrap_or_default();
        return format!("{}{suffix}", whole >> exponent);
    }
    let power = |exponent: i32| 10_i128.pow(u32::try_from(exponent.saturating_add(9)).unwrap_or_default());
    let fits = |(_, exponent): &&(&str, i32)| nanos.rem_euclid(power(*exponent)) == 0;
    let (suffix, exponent) = DECIMAL.iter().find(fits).copied().unwrap_or_default();
    let number = nanos.div_euclid(power(exponent));
    match form {
        Form::Exponent if exponent != 0 => format!("{number}e{exponent}"),
        _ => format!("{number}{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_form() {
        for (text, expected) in [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000Ki", "1000Ki"),
            ("1000M", "1G"),
            ("0.25", "250m"),
            ("1e9", "1e9"),
            ("12E6", "12e6"),
            ("0.5Ki", "512"),
            ("0", "0"),
            ("-1500m", "-1500m"),
            ("0.0001", "1m"),
            ("4", "4"),
        ] {
            assert_eq!(canonical(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_quantities() {
        for (text, expected) in [
            ("lots", FORMAT),
            ("", FORMAT),
            ("5x", FORMAT),
            ("--5", FORMAT),
            ("1.2.3", NUMERIC),
            ("5mm", SUFFIX),
            ("5Ki3", SUFFIX),
        ] {
            assert_eq!(canonical(text), Err(expected), "{text}");
        }
    }
}
