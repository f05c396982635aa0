//! The API servers of workload clusters, each at its endpoint: what stand-ins want of them, and simulated ones.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options};
use serde_json::json;
use tokio::sync::Notify;

/// Where the API servers of workload clusters run.
pub trait Ground: fmt::Debug + Send + Sync {
    /// Has the one at an endpoint start, unless it does or runs.
    fn start(&self, endpoint: &str);
    /// Has it stop, and all it knows is gone.
    fn stop(&self, endpoint: &str);
    /// The endpoints of those that answer.
    fn endpoints(&self) -> Vec<String>;
    /// A client of the one at an endpoint, if it answers.
    fn client(&self, endpoint: &str, user: &str) -> Option<kube::Client>;
    /// What stands in a Secret of its Cluster, by the Secret's purpose; known before it answers.
    fn papers(&self, endpoint: &str, purpose: Purpose) -> Vec<(&'static str, String)>;
    /// What changes whenever one starts or stops, from here on.
    fn changes(&self) -> Changes;
}

/// What a Secret of a Cluster is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The way in of an administrator.
    Kubeconfig,
    /// Certificate and key of the authority.
    Authority,
}

impl Purpose {
    /// Behind the name of the Cluster, the name of the Secret.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kubeconfig => "kubeconfig",
            Self::Authority => "ca",
        }
    }
}

/// Simulated workload clusters. Clones share them.
#[derive(Clone)]
pub struct Sites {
    inner: Arc<Inner>,
}

struct Inner {
    up: Mutex<BTreeMap<String, Cluster>>,
    notice: Notice,
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
            notice: Notice::default(),
            clock,
            seed,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The API server at an endpoint, if it runs.
    #[must_use]
    pub fn at(&self, endpoint: &str) -> Option<Cluster> {
        self.with(|up| up.get(endpoint).cloned())
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Cluster>) -> T) -> T {
        work(&mut self.inner.up.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Ground for Sites {
    fn start(&self, endpoint: &str) {
        let options = Options {
            clock: Arc::clone(&self.inner.clock),
            ..Options::seeded(self.inner.seed)
        };
        self.with(|up| {
            up.entry(endpoint.to_owned())
                .or_insert_with(|| Cluster::start(&options));
        });
        self.inner.notice.tell();
    }

    fn stop(&self, endpoint: &str) {
        self.with(|up| drop(up.remove(endpoint)));
        self.inner.notice.tell();
    }

    fn endpoints(&self) -> Vec<String> {
        self.with(|up| up.keys().cloned().collect())
    }

    fn client(&self, endpoint: &str, user: &str) -> Option<kube::Client> {
        self.at(endpoint).map(|cluster| cluster.client(user))
    }

    /// Nobody verifies them.
    fn papers(&self, endpoint: &str, purpose: Purpose) -> Vec<(&'static str, String)> {
        match purpose {
            Purpose::Kubeconfig => {
                let way_in = json!({
                    "apiVersion": "v1", "kind": "Config", "current-context": "admin",
                    "clusters": [{ "name": "it", "cluster": { "server": format!("https://{endpoint}") } }],
                    "users": [{ "name": "admin", "user": { "token": "simulated" } }],
                    "contexts": [{ "name": "admin", "context": { "cluster": "it", "user": "admin" } }],
                });
                vec![("value", way_in.to_string())]
            }
            Purpose::Authority => ["tls.crt", "tls.key"].map(|file| (file, "simulated".to_owned())).into(),
        }
    }

    fn changes(&self) -> Changes {
        self.inner.notice.changes()
    }
}

/// Tells all who wait that an API server has started or stopped. Clones tell the same.
#[derive(Debug, Clone, Default)]
pub struct Notice {
    inner: Arc<Told>,
}

#[derive(Debug, Default)]
struct Told {
    count: AtomicU64,
    /// It wakes those who wait in the order in which they came.
    changed: Notify,
}

impl Notice {
    /// One has started or stopped.
    pub fn tell(&self) {
        self.inner.count.fetch_add(1, Ordering::AcqRel);
        self.inner.changed.notify_waiters();
    }

    /// What changes whenever it is told, from here on.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes {
            notice: self.clone(),
            seen: self.count(),
        }
    }

    fn count(&self) -> u64 {
        self.inner.count.load(Ordering::Acquire)
    }
}

/// The starts and stops of API servers, as somebody has seen them.
#[derive(Debug)]
pub struct Changes {
    notice: Notice,
    seen: u64,
}

impl Changes {
    /// Waits until one has started or stopped since the last time.
    pub async fn changed(&mut self) {
        // Made before the look, it hears of what comes after the look.
        let changed = self.notice.inner.changed.notified();
        if self.notice.count() == self.seen {
            changed.await;
        }
        self.seen = self.notice.count();
    }
}
