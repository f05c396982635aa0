//! The addresses that a pass has promised, in their order, and found by claim: a full pool is asked for each of very
//! many claims whether it is among them.

use std::collections::HashMap;

use crate::choice::Grant;
use crate::claim::{Claim, Named};

/// Grants that the pool's record is to have.
#[derive(Default)]
pub(super) struct Promises {
    grants: Vec<Grant>,
    /// Positions, for a claim may have been made again under its name. Never walked over, so its order decides nothing.
    to: HashMap<Named, Vec<usize>>,
}

impl Promises {
    /// Adds one.
    pub(super) fn make(&mut self, grant: Grant) {
        self.to.entry(grant.claim.clone()).or_default().push(self.grants.len());
        self.grants.push(grant);
    }

    /// All, the oldest first.
    pub(super) fn all(&self) -> &[Grant] {
        &self.grants
    }

    /// Those to a claim.
    pub(super) fn to<'a>(&'a self, claim: &'a Claim) -> impl Iterator<Item = &'a Grant> {
        let positions = self.to.get(&claim.id).into_iter().flatten();
        positions
            .filter_map(|position| self.grants.get(*position))
            .filter(|grant| grant.uid == claim.uid)
    }
}

impl FromIterator<Grant> for Promises {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Self {
        let mut promises = Self::default();
        promises.extend(grants);
        promises
    }
}

impl Extend<Grant> for Promises {
    fn extend<I: IntoIterator<Item = Grant>>(&mut self, grants: I) {
        grants.into_iter().for_each(|grant| self.make(grant));
    }
}
