//! Leases: times with microseconds, and number ranges.

use chrono::{DateTime, SecondsFormat};
use metal3_schema::FieldError;
use serde_json::{Map, Value};

use crate::store::object::as_map;

/// Time fields of a Lease.
const TIMES: [&str; 2] = ["acquireTime", "renewTime"];
/// Number fields of a Lease, with their minimum.
const NUMBERS: [(&str, i64, &str); 2] = [
    ("leaseDurationSeconds", 1, "must be greater than 0"),
    ("leaseTransitions", 0, "must be greater than or equal to 0"),
];
/// Fields of coordinated leader election, dropped while that feature is off.
const DROPPED: [&str; 2] = ["strategy", "preferredHolder"];

/// Decodes times and numbers: times become canonical, null members are removed.
pub(super) fn decode(body: &mut Value) -> Result<(), String> {
    let spec = as_map(as_map(body).entry("spec").or_insert(Value::Null));
    spec.retain(|name, value| !value.is_null() && !DROPPED.contains(&name.as_str()));
    for name in TIMES {
        if let Some(Value::String(time)) = spec.get_mut(name) {
            *time = micro_time(time).ok_or_else(|| {
                format!("parsing time {time:?} as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse it")
            })?;
        }
    }
    for (name, _, _) in NUMBERS {
        if let Some(number) = spec.get(name)
            && number.as_i64().is_none_or(|number| i32::try_from(number).is_err())
        {
            return Err(format!(
                "json: cannot unmarshal number {number} into Go struct field LeaseSpec.spec.{name} of type int32"
            ));
        }
    }
    Ok(())
}

/// A time with exactly six fractional digits, in UTC and the server's format.
fn micro_time(text: &str) -> Option<String> {
    let (seconds, rest) = text.split_at_checked(19)?;
    let (fraction, zone) = rest.split_at_checked(7)?;
    let digits = fraction.strip_prefix(['.', ','])?;
    let digits = digits.bytes().all(|digit| digit.is_ascii_digit()).then_some(digits)?;
    // Go accepts no leap seconds, lower-case letters or other separators.
    let at = |index: usize| seconds.as_bytes().get(index).copied();
    let plain = at(10) == Some(b'T') && at(17) <= Some(b'5');
    let zoned = zone == "Z" || zone.len() == 6;
    let time = DateTime::parse_from_rfc3339(&format!("{seconds}.{digits}{zone}")).ok()?;
    (plain && zoned).then(|| time.to_utc().to_rfc3339_opts(SecondsFormat::Micros, true))
}

/// Errors of the numbers of a Lease.
pub(super) fn errors(lease: &Value) -> Vec<FieldError> {
    let empty = Map::new();
    let spec = lease.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    let wrong = |(name, least, detail): (&str, i64, &str)| {
        let number = spec.get(name)?.as_i64()?;
        (number < least).then(|| FieldError::invalid(format!("spec.{name}"), number, detail))
    };
    NUMBERS.into_iter().filter_map(wrong).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_has_six_fractional_digits_and_is_shown_in_utc() {
        for (given, read) in [
            ("2026-01-01T00:00:00.123456Z", Some("2026-01-01T00:00:00.123456Z")),
            ("2026-01-01T00:00:00,123456Z", Some("2026-01-01T00:00:00.123456Z")),
            ("2026-01-01T00:00:00.123456+01:00", Some("2025-12-31T23:00:00.123456Z")),
            ("2026-01-01T00:00:00Z", None),
            ("2026-01-01T00:00:00.123Z", None),
            ("2026-01-01T00:00:00.123456789Z", None),
            ("2026-01-01T00:00:60.123456Z", None),
            ("2026-02-30T00:00:00.123456Z", None),
            ("2026-01-01t00:00:00.123456z", None),
            ("2026-01-01 00:00:00.123456Z", None),
            ("2026-01-01T00:00:00.123456+0100", None),
            ("2026-01-01T00:00:00.123456", None),
            ("ééééééééééééééé", None),
            ("", None),
        ] {
            assert_eq!(micro_time(given).as_deref(), read, "{given}");
        }
    }
}
