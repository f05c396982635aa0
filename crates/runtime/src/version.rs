//! Resource versions with an order.
//!
//! Kubernetes promises since 1.35 that the versions of one resource compare as decimal numbers of any length; older
//! servers with etcd behave so. Other versions are rejected here, so that no comparison is a guess.

use std::cmp::Ordering;
use std::fmt;

/// How new an object is among the objects of its resource.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Box<str>);

/// A resource version that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "metadata.resourceVersion: expected a decimal number without leading zeros, found {0:?}; use an API server whose resource versions compare"
)]
pub struct NotComparable(String);

impl ResourceVersion {
    /// Reads the version of an object. `0` is none: it stands for "any" in requests.
    ///
    /// # Errors
    /// When the text is not a decimal number above zero, written without leading zeros.
    pub fn parse(text: &str) -> Result<Self, NotComparable> {
        let number = text.bytes().all(|byte| byte.is_ascii_digit());
        if number && !text.is_empty() && !text.starts_with('0') {
            Ok(Self(text.into()))
        } else {
            Err(NotComparable(text.to_owned()))
        }
    }

    /// The version as the API writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Ord for ResourceVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        // Without leading zeros the longer number is the greater one.
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "0", "007", "-1", "+1", "1.0", "1a", " 1", "١"] {
            assert!(ResourceVersion::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn versions_longer_than_any_integer_compare() {
        let small = ResourceVersion::parse(&"9".repeat(60)).unwrap();
        let large = ResourceVersion::parse(&format!("1{}", "0".repeat(60))).unwrap();
        assert!(small < large);
    }

    proptest! {
        #[test]
        fn order_is_that_of_the_numbers(a in 1_u64.., b in 1_u64..) {
            let parsed = |number: u64| ResourceVersion::parse(&number.to_string()).unwrap();
            prop_assert_eq!(parsed(a).cmp(&parsed(b)), a.cmp(&b));
        }
    }
}
