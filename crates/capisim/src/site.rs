//! The API servers of workload clusters, each at its endpoint.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use metal3_domain::clock::Clock;
use metal3_simcluster::{Cluster, Options};
use tokio::sync::watch;

/// All workload clusters. Clones share them.
#[derive(Clone)]
pub struct Sites {
    inner: Arc<Inner>,
}

struct Inner {
    up: Mutex<BTreeMap<String, Cluster>>,
    changes: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
    seed: u64,
}

impl fmt::Debug for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sites").finish_non_exhaustive()
    }
}

impl Sites {
    /// None yet.
    #[must_use]
    pub fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        let inner = Inner {
            up: Mutex::default(),
            changes: watch::Sender::new(0),
            clock,
            seed,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Starts the API server at an endpoint, unless it is there.
    pub fn start(&self, endpoint: &str) {
        let options = Options {
            clock: Arc::clone(&self.inner.clock),
            ..Options::seeded(self.inner.seed)
        };
        self.with(|up| {
            up.entry(endpoint.to_owned())
                .or_insert_with(|| Cluster::start(&options));
        });
        self.inner.changes.send_modify(|count| *count = count.saturating_add(1));
    }

    /// Stops the API server at an endpoint, and all it knows is gone.
    pub fn stop(&self, endpoint: &str) {
        self.with(|up| drop(up.remove(endpoint)));
        self.inner.changes.send_modify(|count| *count = count.saturating_add(1));
    }

    /// The API server at an endpoint, if it runs.
    #[must_use]
    pub fn at(&self, endpoint: &str) -> Option<Cluster> {
        self.with(|up| up.get(endpoint).cloned())
    }

    /// The endpoints of those that run.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.with(|up| up.keys().cloned().collect())
    }

    /// Changes whenever one starts or stops.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Cluster>) -> T) -> T {
        work(&mut self.inner.up.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
