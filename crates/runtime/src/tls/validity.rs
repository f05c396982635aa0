//! The end of a certificate's validity, read from its DER encoding (RFC 5280, section 4.1). Nothing is verified: the
//! certificate is the program's own, and the date is for a metric.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The explicit tag of the version, which is optional.
const VERSION: u8 = 0xa0;
/// The years of a `UTCTime` from this one on are of the last century.
const LAST_CENTURY: i32 = 50;

/// When the certificate expires; `None` when the encoding is not understood.
pub(super) fn valid_until(certificate: &[u8]) -> Option<DateTime<Utc>> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (mut fields, _) = element(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = any(fields)?.2;
    }
    // Serial number, signature algorithm, issuer.
    for _ in 0..3 {
        fields = any(fields)?.2;
    }
    let (validity, _) = element(fields, SEQUENCE)?;
    let (_, _, until) = any(validity)?;
    let (tag, text, _) = any(until)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

/// The content of the next element and what follows it, if it has this tag.
fn element(text: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = any(text)?;
    (tag == wanted).then_some((content, rest))
}

/// Tag and content of the next element, and what follows it.
fn any(text: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, text) = text.split_first()?;
    let (first, text) = text.split_first()?;
    let (length, text) = match first.checked_sub(0x80) {
        None => (usize::from(*first), text),
        Some(bytes) => {
            let (length, text) = text.split_at_checked(bytes.into())?;
            // A longer length is not one of a certificate.
            let length = (1..=4).contains(&bytes).then_some(length)?;
            let add = |sum: usize, byte: &u8| sum.checked_mul(256)?.checked_add((*byte).into());
            (length.iter().try_fold(0, add)?, text)
        }
    };
    let (content, rest) = text.split_at_checked(length)?;
    Some((*tag, content, rest))
}

fn time(tag: u8, text: &str) -> Option<DateTime<Utc>> {
    let text = text.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i32 = year.parse().ok()?;
            let century = if year < LAST_CENTURY { 2000 } else { 1900 };
            (year.checked_add(century)?, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let part = |at: usize| rest.get(at..at.checked_add(2)?)?.parse::<u32>().ok();
    let date = NaiveDate::from_ymd_opt(year, part(0)?, part(2)?)?;
    let time: NaiveDateTime = date.and_hms_opt(part(4)?, part(6)?, part(8)?)?;
    Some(time.and_utc())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn certificate(year: i32) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["webhook.svc".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 3, 31);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn end_of_the_validity_is_read_in_both_forms_of_time() {
        for year in [2031, 2049, 2050, 2105] {
            let until = valid_until(&certificate(year)).unwrap();
            assert_eq!(until.to_rfc3339(), format!("{year}-03-31T00:00:00+00:00"));
        }
    }

    #[test]
    fn text_that_is_no_certificate_has_no_end() {
        let whole = certificate(2031);
        let ends = (0..whole.len()).filter(|end| valid_until(whole.get(..*end).unwrap()).is_some());
        assert_eq!(ends.count(), 0, "a truncated certificate");
        for text in [
            &b""[..],
            b"\x30\x80",
            b"\x30\x84\xff\xff\xff\xff",
            b"\x30\x03\x30\x01\x02",
        ] {
            assert_eq!(valid_until(text), None);
        }
        assert_eq!(time(UTC_TIME, "310231000000Z"), None);
        assert_eq!(time(UTC_TIME, "3103\u{20ac}1000000Z"), None);
    }
}
