//! Metrics of pools.

use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::plan::PoolCounts;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    namespace: String,
    pool: String,
    state: &'static str,
}

/// The gauges of each existing pool.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolMetrics {
    addresses: Family<Labels, Gauge>,
}

/// `waiting` counts claims, the other states addresses.
const STATES: [&str; 5] = ["capacity", "used", "available", "reserved", WAITING];
const WAITING: &str = "waiting";

impl PoolMetrics {
    pub(super) fn register(metrics: &Metrics) -> Self {
        let new = Self::default();
        metrics.register(
            "metal3_ipam_pool_addresses",
            "Addresses of a pool by state, and the claims that wait for one",
            new.addresses.clone(),
        );
        new
    }

    /// Sets the counts of a pool, or removes them.
    pub(super) fn set(&self, pool: &Key, counts: Option<&PoolCounts>, exists: bool) {
        let labels = |state| Labels {
            namespace: pool.namespace.clone(),
            pool: pool.name.clone(),
            state,
        };
        if !exists {
            for state in STATES {
                self.addresses.remove(&labels(state));
            }
        }
        let Some(counts) = counts else {
            // A paused pool serves no claim: how many wait for an address is not known.
            self.addresses.remove(&labels(WAITING));
            return;
        };
        let values = [
            counts.capacity,
            counts.used,
            counts.available,
            counts.reserved,
            u128::try_from(counts.waiting).unwrap_or(u128::MAX),
        ];
        for (state, value) in STATES.into_iter().zip(values) {
            self.addresses
                .get_or_create_owned(&labels(state))
                .set(i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_pool_are_shown_by_state_until_it_is_deleted() {
        let metrics = Metrics::new();
        let own = PoolMetrics::register(&metrics);
        let pool = Key {
            namespace: "metal".to_owned(),
            name: "a".to_owned(),
        };
        let counts = PoolCounts {
            capacity: 9,
            used: 1,
            available: 5,
            reserved: 3,
            waiting: 2,
        };
        own.set(&pool, Some(&counts), true);
        let text = metrics.render();
        for (state, value) in STATES.into_iter().zip([9, 1, 5, 3, 2]) {
            let line =
                format!("metal3_ipam_pool_addresses{{namespace=\"metal\",pool=\"a\",state=\"{state}\"}} {value}");
            assert!(text.contains(&line), "{line} in\n{text}");
        }
        own.set(&pool, None, true);
        let paused = metrics.render();
        assert!(
            !paused.contains("state=\"waiting\"") && paused.contains("state=\"used\"} 1"),
            "{paused}"
        );
        own.set(&pool, None, false);
        assert!(!metrics.render().contains("pool=\"a\""));
    }
}
