//! What every part of a process shares.

use std::fmt::{self, Debug};
use std::sync::Arc;

use kube::Client;
use metal3_capi::workload::Open;
use metal3_capm3::machine::facts::Settings;
use metal3_domain::clock::Clock;
use metal3_runtime::guard::Guard;
use metal3_runtime::lease::Leadership;
use metal3_runtime::logs::Verbosity;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::{Scope, WatchConfig};
use metal3_runtime::write::Mode;
use tokio_util::sync::CancellationToken;

use crate::metal::Metal;
use crate::place::Place;
use metal3_flags::Options;

/// Makes clients of the API server.
pub trait Door: Debug + Send + Sync {
    /// A client for the controllers of one group: its writes leave only while the group is ours.
    ///
    /// # Errors
    /// When credentials cannot be used.
    fn writing_for(&self, leadership: Leadership, guard: Guard) -> kube::Result<Client>;

    /// The way into workload clusters, for the same controllers. What they write there obeys the same.
    fn workloads(&self, leadership: Leadership, guard: Guard) -> Open;
}

/// Clients, time, figures and flags of one process.
#[derive(Clone, Debug)]
pub struct Session {
    /// The flags.
    pub options: Options,
    /// Where it runs.
    pub place: Place,
    /// The API server, for what is everybody's: watches, and what needs no leader.
    pub client: ClientOf,
    /// The API server, for leases.
    pub leases: ClientOf,
    /// The API server, for controllers.
    pub door: Arc<dyn Door>,
    /// Ironic, and what hosts need besides; nothing where hosts do not run.
    pub metal: Option<Metal>,
    /// What decisions about machines turn on.
    pub machines: Settings,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The figures.
    pub metrics: Metrics,
    /// The level of the log; nothing where nobody logs.
    pub verbosity: Option<Verbosity>,
}

/// A client that can be shown, without what is in it.
#[derive(Clone)]
pub struct ClientOf(pub Client);

impl Debug for ClientOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl Session {
    /// Whether effects happen.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        if self.options.observe_only {
            Mode::ObserveOnly
        } else {
            Mode::Perform
        }
    }

    /// From where watches look at kinds that users write. Who runs them ends them.
    #[must_use]
    pub fn lookout(&self) -> WatchConfig {
        let namespace = self.options.namespace.as_ref();
        WatchConfig {
            client: self.client.0.clone(),
            scope: namespace.map_or_else(Scope::everywhere, Scope::namespace),
            clock: Arc::clone(&self.clock),
            stop: CancellationToken::new(),
        }
    }
}
