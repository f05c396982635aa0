//! JSON numbers as in the API server: a 64-bit integer if the text has no fraction and fits, else a float.
//!
//! Conversions saturate, so no number of any size panics.

use serde_json::Number;

/// A number of an object or of a schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Num {
    Int(i64),
    Float(f64),
}

/// The largest integer up to which a float represents every integer, 2^53 - 1.
const LARGEST_EXACT: f64 = 9_007_199_254_740_991.0;

impl Num {
    pub(crate) fn of(number: &Number) -> Num {
        match number.as_i64() {
            Some(int) => Num::Int(int),
            None => Num::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        }
    }

    /// Whether the number is valid where a schema requires an integer.
    pub(crate) fn is_whole(self) -> bool {
        match self {
            Num::Int(_) => true,
            Num::Float(value) => is_whole(value),
        }
    }
}

/// The API server accepts `3.0` as an integer, and any float within a billionth of its size from one.
pub(crate) fn is_whole(value: f64) -> bool {
    if !value.is_finite() || value.abs() > LARGEST_EXACT {
        return false;
    }
    let whole = value.trunc();
    let gap = (value - whole).abs();
    if gap == 0.0 {
        return true;
    }
    if whole == 0.0 {
        return false;
    }
    gap / (value.abs() + whole.abs()) < 1e-9
}

/// The integer part, saturated.
#[expect(clippy::as_conversions, reason = "a float to integer cast saturates, as intended")]
pub(crate) fn truncate(value: f64) -> i64 {
    value as i64
}

/// The nearest float.
#[expect(
    clippy::as_conversions,
    reason = "there is no other conversion from i64 to f64; rounding is intended"
)]
pub(crate) fn to_float(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Num, is_whole};

    #[test]
    fn integers_beyond_64_bits_become_floats() {
        let of = |value: serde_json::Value| Num::of(value.as_number().unwrap());
        assert_eq!(of(json!(7)), Num::Int(7));
        assert_eq!(of(json!(7.0)), Num::Float(7.0));
        assert_eq!(of(json!(u64::MAX)), Num::Float(18_446_744_073_709_552_000.0));
    }

    #[test]
    fn whole_floats_count_as_integers_up_to_2_to_the_53() {
        assert!(is_whole(3.0) && is_whole(-3.0) && is_whole(0.0));
        assert!(is_whole(9_007_199_254_740_991.0) && !is_whole(9_007_199_254_740_992.0));
        assert!(!is_whole(3.5) && !is_whole(1e300) && !is_whole(f64::NAN) && !is_whole(0.1));
    }

    #[test]
    fn a_float_is_whole_within_a_billionth_of_its_size() {
        for (value, whole) in [
            (3.000_000_001, true),
            (-3.000_000_001, true),
            (3.000_000_01, false),
            (1_000_000.001, true),
            (1_000_000.01, false),
            (1e-12, false),
        ] {
            assert_eq!(is_whole(value), whole, "{value}");
        }
    }
}
