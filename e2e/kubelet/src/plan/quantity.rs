//! Kubernetes quantities for `resourceFieldRef`: thousandths, and counts rounded up.

/// Thousandths of the unit: `100m` is 100, `2` is 2000, `1Ki` is 1024000. `None` for an invalid quantity.
pub(crate) fn milli(text: &str) -> Option<u128> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(split)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let factor: u128 = match suffix {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "T" => 1_000_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        "Ti" => 1000 << 40,
        _ => return None,
    };
    digits.checked_mul(factor).map(|product| product / scale)
}

/// `quantity / divisor`, rounded up; a missing or zero divisor is one.
pub(crate) fn divided(quantity: &str, divisor: Option<&str>) -> Option<u128> {
    let divisor = divisor.map_or(Some(1000), milli)?;
    Some(milli(quantity)?.div_ceil(if divisor == 0 { 1000 } else { divisor }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_up_and_zero_divides_as_one() {
        let table = [
            ("100m", None, Some(1)),
            ("100m", Some("1m"), Some(100)),
            ("1500m", Some("0"), Some(2)),
            ("64Mi", Some("1Mi"), Some(64)),
            ("64Mi", None, Some(67_108_864)),
            ("1.5", Some("1m"), Some(1500)),
            ("2G", Some("1M"), Some(2000)),
            ("", None, None),
            ("fast", None, None),
            ("1Qi", None, None),
            ("1", Some("x"), None),
        ];
        for (quantity, divisor, count) in table {
            assert_eq!(divided(quantity, divisor), count, "{quantity} / {divisor:?}");
        }
    }
}
