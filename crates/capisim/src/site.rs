//! The API servers of workload clusters, each at its endpoint.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metal3_domain::clock::Clock;
use metal3_simcluster::{Cluster, Options};
use tokio::sync::Notify;

/// All workload clusters. Clones share them.
#[derive(Clone)]
pub struct Sites {
    inner: Arc<Inner>,
}

struct Inner {
    up: Mutex<BTreeMap<String, Cluster>>,
    count: AtomicU64,
    /// It wakes those who wait in the order in which they came.
    changed: Notify,
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
            count: AtomicU64::new(0),
            changed: Notify::new(),
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
        self.inner.count.fetch_add(1, Ordering::AcqRel);
        self.inner.changed.notify_waiters();
    }

    /// Stops the API server at an endpoint, and all it knows is gone.
    pub fn stop(&self, endpoint: &str) {
        self.with(|up| drop(up.remove(endpoint)));
        self.inner.count.fetch_add(1, Ordering::AcqRel);
        self.inner.changed.notify_waiters();
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

    /// What changes whenever one starts or stops, from here on.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes {
            sites: self.clone(),
            seen: self.count(),
        }
    }

    fn count(&self) -> u64 {
        self.inner.count.load(Ordering::Acquire)
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Cluster>) -> T) -> T {
        work(&mut self.inner.up.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The starts and stops of API servers, as somebody has seen them.
#[derive(Debug)]
pub struct Changes {
    sites: Sites,
    seen: u64,
}

impl Changes {
    /// Waits until one has started or stopped since the last time.
    pub async fn changed(&mut self) {
        // Made before the look, it hears of what comes after the look.
        let changed = self.sites.inner.changed.notified();
        if self.sites.count() == self.seen {
            changed.await;
        }
        self.seen = self.sites.count();
    }
}
