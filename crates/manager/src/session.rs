//! Clients, flags, clock and metrics that all parts of a process share.

use std::sync::Arc;

use kube::Client;
use metal3_capi::workload::ConnectFn;
use metal3_capm3::machine::facts::Settings;
use metal3_domain::clock::Clock;
use metal3_runtime::guard::Guard;
use metal3_runtime::lease::Leadership;
use metal3_runtime::logs::Verbosity;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::{Scope, WatchConfig};
use metal3_runtime::write::{DryRunObserver, Mode, WriteMode};
use metal3_webhooks::destinations::Destinations;
use tokio_util::sync::CancellationToken;

use crate::hosts_config::HostsConfig;
use crate::pod::PodIdentity;
use metal3_flags::Options;

/// Creates clients of the API server and of workload clusters.
pub trait ClusterClients: Send + Sync {
    /// A client for the controllers of one group. It sends writes only while this process leads the group.
    ///
    /// # Errors
    /// When credentials cannot be used.
    fn writing_for(&self, leadership: Leadership, guard: Guard) -> kube::Result<Client>;

    /// Opens workload clusters for the same controllers, with the same restriction on writes.
    fn workloads(&self, leadership: Leadership, guard: Guard) -> ConnectFn;
}

/// The shared parts of one process.
#[derive(Clone)]
pub struct Session {
    /// The flags.
    pub options: Options,
    /// Namespace and identity of the process.
    pub pod: PodIdentity,
    /// The API server, for watches and for writes that need no leader.
    pub client: Client,
    /// The API server, for leases.
    pub leases: Client,
    /// The API server, for controllers.
    pub clients: Arc<dyn ClusterClients>,
    /// Ironic and settings of hosts; `None` if hosts do not run here.
    pub hosts: Option<HostsConfig>,
    /// Settings of machines.
    pub machines: Settings,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The metrics.
    pub metrics: Metrics,
    /// The log level; `None` without a log.
    pub verbosity: Option<Verbosity>,
    /// Nothing is written, and what would be is reported here.
    pub dry_run: Option<Arc<dyn DryRunObserver>>,
}

impl Session {
    /// Whether the process writes, and who learns of what it does not write.
    #[must_use]
    pub fn mode(&self) -> WriteMode {
        match (&self.dry_run, self.options.observe_only) {
            (Some(observer), _) => WriteMode::observed_by(Arc::clone(observer)),
            (None, true) => Mode::ObserveOnly.into(),
            (None, false) => Mode::Perform.into(),
        }
    }

    /// The destinations that webhooks accept.
    pub(crate) fn destinations(&self) -> Destinations {
        Destinations {
            image_hosts: self.options.image_hosts.clone(),
            bmc_networks: self.options.bmc_networks.clone(),
        }
    }

    /// Client and scope of watches on kinds that users write. The caller ends the watches.
    #[must_use]
    pub fn watch_config(&self) -> WatchConfig {
        let namespace = self.options.namespace.as_ref();
        WatchConfig {
            client: self.client.clone(),
            scope: namespace.map_or_else(Scope::everywhere, Scope::namespace),
            clock: Arc::clone(&self.clock),
            stop: CancellationToken::new(),
        }
    }
}
