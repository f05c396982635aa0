//! The server of a suite: the simulated one, or the real one of a kubeconfig.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;

use kube::Client;
use metal3_domain::clock::{Clock, SystemClock};
use metal3_runtime::client::{ClientFactory, Settings, load_config};
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::{Cluster, Options};

/// Names the kubeconfig of a server dedicated to these suites.
const VARIABLE: &str = "METAL3_API_SERVER";

pub(crate) enum Server {
    Simulated(Cluster),
    Real(Client),
}

impl Server {
    /// The real server if the variable names one, under real time; otherwise a simulated one.
    pub(crate) async fn open() -> Self {
        let Some(kubeconfig) = env::var_os(VARIABLE) else {
            return Self::simulated();
        };
        tokio::time::resume();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let settings = Settings::new("toolkit-suite", "v0");
        let connector = ClientFactory::new(settings, clock, Metrics::new().requests());
        let config = load_config(Some(&PathBuf::from(kubeconfig))).await.unwrap();
        Self::Real(connector.connect(config).unwrap())
    }

    pub(crate) fn simulated() -> Self {
        Self::Simulated(Cluster::start(&Options::seeded(1)))
    }

    /// A client of a user. A real server knows one user only.
    pub(crate) fn client(&self, user: &str) -> Client {
        match self {
            Self::Simulated(cluster) => cluster.client(user),
            Self::Real(client) => client.clone(),
        }
    }
}
