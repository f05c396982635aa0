//! API servers of workload clusters, each at its endpoint: the interface that the stand-ins use, and a simulation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metal3_domain::clock::Clock;
use metal3_sim_cluster::{Cluster, Options};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

/// Starts, stops and reaches the API servers of workload clusters.
pub trait WorkloadServers: Send + Sync {
    /// Starts the API server at an endpoint, unless it runs or is starting.
    fn start(&self, endpoint: &str);
    /// Stops it and deletes its data.
    fn stop(&self, endpoint: &str);
    /// Endpoints of the API servers that answer.
    fn endpoints(&self) -> Vec<String>;
    /// A client of the API server at an endpoint, if it answers.
    fn client(&self, endpoint: &str, user: &str) -> Option<kube::Client>;
    /// Content of a Secret of its Cluster, by the purpose of the Secret. Available before the API server answers.
    fn secret_data(&self, endpoint: &str, purpose: Purpose) -> Vec<(&'static str, String)>;
    /// Reports starts and stops from now on.
    fn changes(&self) -> Changes;
}

/// Purpose of a Secret of a Cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Kubeconfig of an administrator.
    Kubeconfig,
    /// Certificate and key of the certificate authority.
    Authority,
}

impl Purpose {
    /// Suffix of the name of the Secret, after the name of the Cluster.
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
pub struct WorkloadClusters {
    inner: Arc<Inner>,
}

struct Inner {
    up: Mutex<BTreeMap<String, Cluster>>,
    notice: ChangeNotifier,
    clock: Arc<dyn Clock>,
    seed: u64,
}

impl WorkloadClusters {
    /// No API server runs yet.
    #[must_use]
    pub fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        let inner = Inner {
            up: Mutex::default(),
            notice: ChangeNotifier::default(),
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
        work(&mut self.inner.up.lock())
    }
}

impl WorkloadServers for WorkloadClusters {
    fn start(&self, endpoint: &str) {
        let options = Options {
            clock: Arc::clone(&self.inner.clock),
            ..Options::seeded(self.inner.seed)
        };
        self.with(|up| {
            up.entry(endpoint.to_owned())
                .or_insert_with(|| Cluster::start(&options));
        });
        self.inner.notice.notify();
    }

    fn stop(&self, endpoint: &str) {
        self.with(|up| drop(up.remove(endpoint)));
        self.inner.notice.notify();
    }

    fn endpoints(&self) -> Vec<String> {
        self.with(|up| up.keys().cloned().collect())
    }

    fn client(&self, endpoint: &str, user: &str) -> Option<kube::Client> {
        self.at(endpoint).map(|cluster| cluster.client(user))
    }

    /// The content is a placeholder: no client verifies it.
    fn secret_data(&self, endpoint: &str, purpose: Purpose) -> Vec<(&'static str, String)> {
        match purpose {
            Purpose::Kubeconfig => {
                let kubeconfig = json!({
                    "apiVersion": "v1", "kind": "Config", "current-context": "admin",
                    "clusters": [{ "name": "it", "cluster": { "server": format!("https://{endpoint}") } }],
                    "users": [{ "name": "admin", "user": { "token": "simulated" } }],
                    "contexts": [{ "name": "admin", "context": { "cluster": "it", "user": "admin" } }],
                });
                vec![("value", kubeconfig.to_string())]
            }
            Purpose::Authority => ["tls.crt", "tls.key"].map(|file| (file, "simulated".to_owned())).into(),
        }
    }

    fn changes(&self) -> Changes {
        self.inner.notice.changes()
    }
}

/// Notifies waiting tasks that an API server has started or stopped. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct ChangeNotifier {
    inner: Arc<NotifierState>,
}

#[derive(Debug, Default)]
struct NotifierState {
    count: AtomicU64,
    /// Wakes tasks in the order in which they began to wait.
    changed: Notify,
}

impl ChangeNotifier {
    /// Records one start or stop.
    pub fn notify(&self) {
        self.inner.count.fetch_add(1, Ordering::AcqRel);
        self.inner.changed.notify_waiters();
    }

    /// Reports notifications from now on.
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

/// Receiver of notifications.
#[derive(Debug)]
pub struct Changes {
    notice: ChangeNotifier,
    seen: u64,
}

impl Changes {
    /// Waits until an API server has started or stopped since the previous call.
    pub async fn changed(&mut self) {
        // Created before the count is read, so that no notification after the read is lost.
        let changed = self.notice.inner.changed.notified();
        if self.notice.count() == self.seen {
            changed.await;
        }
        self.seen = self.notice.count();
    }
}
