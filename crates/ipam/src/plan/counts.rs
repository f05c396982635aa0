//! Address counts of a pool, for its status and for metrics.

use std::net::Ipv6Addr;

use super::{Decisions, Planner};
use crate::allocator::Allocator;
use crate::ranges::position;

/// Address counts of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolCounts {
    /// Addresses of all ranges.
    pub capacity: u128,
    /// Allocated or pending.
    pub used: u128,
    /// Free for any claim.
    pub available: u128,
    /// Pre-allocated and not allocated.
    pub reserved: u128,
    /// Claims without an address.
    pub waiting: usize,
}

impl Planner<'_> {
    /// The counts after these decisions.
    pub(super) fn counts(&self, allocator: &Allocator<'_>, decided: &Decisions) -> PoolCounts {
        let pending = decided.pending.all();
        let used = self.entry.used();
        let pending_count = pending
            .iter()
            .filter(|allocation| !used.contains(position(allocation.address)))
            .count();
        let count = |number: usize| u128::try_from(number).unwrap_or(u128::MAX);
        let covered = self.ranges.covered();
        let is_free = |at: &Ipv6Addr| {
            covered.contains(*at)
                && !used.contains(*at)
                && !pending.iter().any(|allocation| position(allocation.address) == *at)
        };
        PoolCounts {
            capacity: self.ranges.capacity().saturating(),
            used: count(self.entry.used_count() + pending_count),
            available: allocator.taken().free_of(self.ranges).saturating(),
            reserved: count(self.ranges.reserved().filter(is_free).count()),
            waiting: decided.waiting,
        }
    }
}
