//! Request counts by user, verb and resource, for tests of request budgets.

use std::collections::BTreeMap;

/// User, verb and resource.
pub type Count = (String, &'static str, String);

/// Requests since the start or the last reset, including failed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    counts: BTreeMap<Count, u64>,
}

impl Audit {
    pub(crate) fn count(&mut self, user: &str, verb: &'static str, resource: &str) {
        let count = self
            .counts
            .entry((user.to_owned(), verb, resource.to_owned()))
            .or_default();
        *count = count.saturating_add(1);
    }

    /// All counters, in order.
    pub fn counts(&self) -> impl Iterator<Item = (&Count, u64)> {
        self.counts.iter().map(|(count, number)| (count, *number))
    }

    /// The requests of a user with this verb to this resource.
    #[must_use]
    pub fn of(&self, user: &str, verb: &'static str, resource: &str) -> u64 {
        self.counts
            .get(&(user.to_owned(), verb, resource.to_owned()))
            .copied()
            .unwrap_or(0)
    }
}
