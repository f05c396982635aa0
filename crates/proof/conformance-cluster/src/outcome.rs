//! Results of claims.

use std::fmt;
use std::pin::Pin;

use super::{Claim, Subject};

/// The reason why a claim does not hold or cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// A checked claim.
pub struct Outcome {
    /// The claim.
    pub claim: Claim,
    /// `None` if it holds.
    pub violation: Option<Violation>,
}

pub(super) type CheckResult = Result<(), Violation>;
pub(super) type Checking = Pin<Box<dyn Future<Output = CheckResult> + Send>>;
pub(super) type Check = fn(Subject) -> Checking;

/// Compares a value with the expected one.
pub(super) fn expect<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> CheckResult {
    if found == expected {
        Ok(())
    } else {
        Err(Violation(format!("{what}: found {found:?}, expected {expected:?}")))
    }
}
