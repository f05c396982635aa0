//! Whether a claim holds.

use std::fmt;
use std::pin::Pin;

use super::{Claim, Subject};

/// Why a claim does not hold, or could not be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// A claim that was checked.
#[derive(Debug)]
pub struct Outcome {
    /// The claim.
    pub claim: Claim,
    /// `None` if it holds.
    pub broken: Option<Broken>,
}

pub(super) type Held = Result<(), Broken>;
pub(super) type Checking = Pin<Box<dyn Future<Output = Held> + Send>>;
pub(super) type Check = fn(Subject) -> Checking;

/// Fails a claim with what was found and what was expected.
pub(super) fn expect<T: PartialEq + fmt::Debug>(what: &str, found: T, expected: T) -> Held {
    if found == expected {
        Ok(())
    } else {
        Err(Broken(format!("{what}: found {found:?}, expected {expected:?}")))
    }
}
