//! Microversions: which one the client uses, and what it supports.
//!
//! No request is needed: every response of Ironic contains the supported range, and [`choose`] picks from it. The
//! choice is made from a fixed list and never the newest: an untested microversion is not used.

use std::fmt;

use thiserror::Error;

/// `1.N`: Ironic's API has had one major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Microversion(u16);

impl Microversion {
    /// `1.minor`.
    #[must_use]
    pub const fn minor(minor: u16) -> Self {
        Self(minor)
    }

    /// Parses `1.N`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix("1.")?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok().map(Self)).flatten()
    }
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// Virtual media can be attached and detached. The minimum of the provider.
pub const MINIMUM: Microversion = Microversion(89);
/// Attached virtual media can be listed.
pub const LIST_VIRTUAL_MEDIA: Microversion = Microversion(93);
/// A node may forbid power off.
pub const DISABLE_POWER_OFF: Microversion = Microversion(95);
/// A node has a health field.
pub const HEALTH: Microversion = Microversion(109);
/// A deployment that waits for its ramdisk can be aborted.
pub const ABORT_DEPLOYMENT: Microversion = Microversion(110);

/// The tested microversions, the newest first.
const TESTED: [Microversion; 5] = [ABORT_DEPLOYMENT, HEALTH, DISABLE_POWER_OFF, LIST_VIRTUAL_MEDIA, MINIMUM];

/// The microversion of the first request, before the range is known. An older Ironic responds with 406, does nothing,
/// and returns the range.
pub const FIRST: Microversion = ABORT_DEPLOYMENT;

/// The range in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The oldest supported one.
    pub minimum: Microversion,
    /// The newest.
    pub maximum: Microversion,
}

/// Ironic and this client have no microversion in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("Ironic offers API {} to {}; at least {MINIMUM} is needed: upgrade Ironic", .0.minimum, .0.maximum)]
pub struct NoCommonVersion(pub Range);

/// The newest tested microversion within the range.
///
/// # Errors
/// When there is none.
pub fn choose(range: Range) -> Result<Microversion, NoCommonVersion> {
    TESTED
        .into_iter()
        .find(|version| (range.minimum..=range.maximum).contains(version))
        .ok_or(NoCommonVersion(range))
}

/// What a microversion supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features(Microversion);

impl Features {
    /// The features of a microversion.
    #[must_use]
    pub const fn of(version: Microversion) -> Self {
        Self(version)
    }

    /// The microversion.
    #[must_use]
    pub const fn version(self) -> Microversion {
        self.0
    }

    /// Whether `disable_power_off` may be sent.
    #[must_use]
    pub fn disable_power_off(self) -> bool {
        self.0 >= DISABLE_POWER_OFF
    }

    /// Whether nodes have a health field.
    #[must_use]
    pub fn health(self) -> bool {
        self.0 >= HEALTH
    }

    /// Whether `abort` works in `wait call-back`.
    #[must_use]
    pub fn abort_deployment(self) -> bool {
        self.0 >= ABORT_DEPLOYMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(minimum: u16, maximum: u16) -> Range {
        Range {
            minimum: Microversion(minimum),
            maximum: Microversion(maximum),
        }
    }

    #[test]
    fn the_newest_tested_microversion_within_the_range_is_chosen() {
        for (minimum, maximum, chosen) in [
            (1, 115, 110),
            (1, 110, 110),
            (1, 109, 109),
            (1, 108, 95),
            (1, 94, 93),
            (1, 92, 89),
            (89, 89, 89),
            (90, 94, 93),
        ] {
            assert_eq!(
                choose(range(minimum, maximum)),
                Ok(Microversion(chosen)),
                "1.{minimum} to 1.{maximum}"
            );
        }
    }

    #[test]
    fn an_ironic_without_a_common_microversion_is_rejected_with_both_ranges_and_the_advice_to_upgrade() {
        for (minimum, maximum) in [(1, 88), (1, 1), (111, 200)] {
            let error = choose(range(minimum, maximum)).unwrap_err().to_string();
            assert!(error.contains(&format!("1.{minimum} to 1.{maximum}")), "{error}");
            assert!(
                error.contains("at least 1.89") && error.contains("upgrade Ironic"),
                "{error}"
            );
        }
    }

    #[test]
    fn versions_of_other_apis_do_not_parse() {
        assert_eq!(Microversion::parse(" 1.95 "), Some(Microversion(95)));
        for text in ["", "1", "1.", "2.1", "1.+5", "1.-5", "1.5.1", "latest", "1.70000"] {
            assert_eq!(Microversion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn each_feature_begins_with_its_version() {
        type Feature = fn(Features) -> bool;
        let table: [(u16, Feature); 3] = [
            (95, Features::disable_power_off),
            (109, Features::health),
            (110, Features::abort_deployment),
        ];
        for (minor, feature) in table {
            assert!(feature(Features::of(Microversion(minor))), "1.{minor}");
            assert!(!feature(Features::of(Microversion(minor - 1))), "1.{minor}");
        }
    }
}
