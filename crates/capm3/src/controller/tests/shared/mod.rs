//! Clusters that share their control plane with another provider.

mod blows;
mod counts;
mod deletion;
mod living;
mod moving;
mod orders;
mod pool;
mod pool_blows;
mod pool_held;
mod pool_refused;
mod rights;
mod scene;
mod stories;

use std::collections::BTreeMap;

/// A table of requests.
fn lines<const N: usize>(table: [(&str, u64); N]) -> BTreeMap<String, u64> {
    table
        .into_iter()
        .map(|(what, count)| (what.to_owned(), count))
        .collect()
}
