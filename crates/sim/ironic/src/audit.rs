//! Request counts by method and resource, for tests of request budgets.

use std::collections::BTreeMap;

/// A method, and a path with placeholders for names.
pub type Count = (String, String);

/// Requests since the start or the last reset, including failed ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audit {
    counts: BTreeMap<Count, u64>,
}

impl Audit {
    pub(crate) fn count(&mut self, method: &str, resource: String) {
        let count = self.counts.entry((method.to_owned(), resource)).or_default();
        *count = count.saturating_add(1);
    }

    /// All counters, in order.
    pub fn counts(&self) -> impl Iterator<Item = (&Count, u64)> {
        self.counts.iter().map(|(count, number)| (count, *number))
    }

    /// The number of requests with this method to this resource: `PUT`, `nodes/{node}/states/power`.
    #[must_use]
    pub fn of(&self, method: &str, resource: &str) -> u64 {
        let key = (method.to_owned(), resource.to_owned());
        self.counts.get(&key).copied().unwrap_or(0)
    }

    /// All requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}
