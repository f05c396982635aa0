//! Figures of pools as metrics.

use metal3_runtime::cache::Key;
use metal3_runtime::metrics::Metrics;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use crate::action::Figures;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    namespace: String,
    pool: String,
    state: &'static str,
}

/// The gauges, a few for each pool that exists.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolFigures {
    addresses: Family<Labels, Gauge>,
}

/// What is counted. `waiting` counts claims, all others addresses.
const STATES: [&str; 5] = ["capacity", "used", "available", "reserved", "waiting"];

impl PoolFigures {
    pub(super) fn register(metrics: &Metrics) -> Self {
        let figures = Self::default();
        metrics.register(
            "metal3_ipam_pool_addresses",
            "Addresses of a pool by state, and the claims that wait for one",
            figures.addresses.clone(),
        );
        figures
    }

    /// Shows the figures of a pool, or forgets it.
    pub(super) fn show(&self, pool: &Key, figures: Option<&Figures>, exists: bool) {
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
        let Some(figures) = figures else { return };
        let counts = [
            figures.capacity,
            figures.used,
            figures.available,
            figures.reserved,
            u128::try_from(figures.waiting).unwrap_or(u128::MAX),
        ];
        for (state, count) in STATES.into_iter().zip(counts) {
            self.addresses
                .get_or_create_owned(&labels(state))
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
