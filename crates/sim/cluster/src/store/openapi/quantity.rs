//! Quantities in the form in which the server stores them: `0.5` is `500m`, and `1024Mi` is `1Gi`.

/// The text for what is no quantity.
pub(super) const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";
/// The digits and the smallest exponent of what the server keeps as it is written.
const KEPT_DIGITS: usize = 18;
const KEPT_SCALE: i32 = -3;
/// The decimal places that are read; others round up.
const PLACES: usize = 18;
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
/// The largest quantity of a power of two.
const LARGEST: i128 = (1 << 63) - 1;
const BINARY: [(&str, u32); 6] = [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)];

/// How a quantity is written.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// The stored form, or why the text is no quantity. A quantity too large for the arithmetic stays as it is.
pub(super) fn canonical(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    let unsigned = text.trim_start_matches(['+', '-']);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
    if unsigned.is_empty() || text.len() > unsigned.len().saturating_add(1) || !is_suffix(suffix) {
        return Err(FORMAT);
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') {
        return Err(FORMAT);
    }
    let (form, scale) = scale(suffix)?;
    if is_kept((whole, fraction), (form, scale)) {
        return Ok(text.to_owned());
    }
    let (fraction, rest) = fraction.split_at(fraction.len().min(PLACES));
    let more = i128::from(rest.contains(|digit| digit != '0'));
    let digits = format!("0{whole}{fraction}").parse::<i128>().ok();
    let number = digits.and_then(|number| number.checked_add(more));
    let read = number.and_then(|number| thousandths(number, fraction.len(), (form, scale)));
    let sign = if text.starts_with('-') && read != Some(0) {
        "-"
    } else {
        ""
    };
    Ok(match read {
        Some(read) => format!("{sign}{}", written(read, form)),
        None if form == Form::Binary => format!("{sign}{LARGEST}"),
        None => text.to_owned(),
    })
}

/// Whether the server keeps the text: it reads it without a change of its exponent.
fn is_kept((whole, fraction): (&str, &str), (form, scale): (Form, i32)) -> bool {
    let digits = format!("{}{fraction}", whole.trim_start_matches('0'));
    let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let scale = scale.saturating_sub(places);
    form != Form::Binary
        && digits.len() <= KEPT_DIGITS
        && scale >= KEPT_SCALE
        && scale % 3 == 0
        && !digits.is_empty()
        && !digits.starts_with('0')
        && !digits.ends_with("000")
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

/// The server keeps thousandths at least, and rounds up.
fn thousandths(number: i128, places: usize, (form, scale): (Form, i32)) -> Option<i128> {
    let places = i32::try_from(places).ok()?;
    let (times, exponent) = match form {
        Form::Binary => (1_i128.checked_shl(u32::try_from(scale).ok()?)?, 3 - places),
        Form::Decimal | Form::Exponent => (1, 3_i32.checked_sub(places)?.checked_add(scale)?),
    };
    let number = number.checked_mul(times)?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return number.checked_mul(power?);
    }
    // What no number reaches is less than one.
    let Some(power) = power else {
        return Some(number.signum());
    };
    let more = i128::from(number.rem_euclid(power) != 0);
    number.div_euclid(power).checked_add(more)
}

fn written(thousandths: i128, form: Form) -> String {
    const ONE: i128 = 1000;
    if thousandths == 0 {
        return "0".to_owned();
    }
    let whole = thousandths.div_euclid(ONE);
    if form == Form::Binary && whole >= 1024 && thousandths.rem_euclid(ONE) == 0 {
        let whole = whole.min(LARGEST);
        let fits = |(_, exponent): &&(&str, u32)| whole.trailing_zeros() >= *exponent;
        let (suffix, exponent) = BINARY.iter().find(fits).copied().unwrap_or_default();
        return format!("{}{suffix}", whole >> exponent);
    }
    let power = |exponent: i32| 10_i128.pow(u32::try_from(exponent.saturating_add(3)).unwrap_or_default());
    let fits = |(_, exponent): &&(&str, i32)| thousandths.rem_euclid(power(*exponent)) == 0;
    let (suffix, exponent) = DECIMAL.iter().find(fits).copied().unwrap_or_default();
    let number = thousandths.div_euclid(power(exponent));
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
            ("12E6", "12E6"),
            ("1e4", "10e3"),
            ("1.500", "1.500"),
            ("010", "010"),
            ("+1", "+1"),
            (" 1", "1"),
            ("Ki", "0"),
            (".", "0"),
            ("1.1Gi", "1181116006400m"),
            ("0.0001Ki", "103m"),
            ("0.1Ei", "115292150460684697600m"),
            ("7Ei", "7Ei"),
            ("16Ei", "9223372036854775807"),
            ("9223372036854775807Ki", "9223372036854775807"),
            ("170141183460469231731687303715884105727Ki", "9223372036854775807"),
            (
                "170141183460469231731687303715884105727n",
                "170141183460469231731687303715885m",
            ),
            (
                "170141183460469231731687303715884105728",
                "170141183460469231731687303715884105728",
            ),
            ("0.00000000000000000000000000000000000000001", "1m"),
            ("1e-999", "1e-3"),
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
            ("1.2.3", FORMAT),
            ("5mm", SUFFIX),
            ("5Ki3", SUFFIX),
        ] {
            assert_eq!(canonical(text), Err(expected), "{text}");
        }
    }
}
