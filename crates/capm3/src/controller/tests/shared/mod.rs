//! Clusters that share their control plane with another provider.

mod counts;
mod deletion;
mod faults;
mod fixture;
pub(super) mod joins;
mod moving;
mod orders;
mod pool;
mod pool_faults;
mod pool_held;
mod pool_refused;
mod providers;
mod rights;
mod scenarios;

use std::collections::BTreeMap;

fn lines<const N: usize>(table: [(&str, u64); N]) -> BTreeMap<String, u64> {
    table
        .into_iter()
        .map(|(what, count)| (what.to_owned(), count))
        .collect()
}
