//! What every part of a process shares.

use std::sync::Arc;

use kube::Client;
use metal3_domain::clock::Clock;
use metal3_runtime::logs::Verbosity;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::Scope;
use metal3_runtime::write::Mode;

use crate::flags::Options;
use crate::place::Place;

/// The label by which a watch filter chooses objects.
const WATCH_FILTER_LABEL: &str = "cluster.x-k8s.io/watch-filter";

/// Clients, time, figures and flags of one process.
#[derive(Clone, Debug)]
pub struct Session {
    /// The flags.
    pub options: Options,
    /// Where it runs.
    pub place: Place,
    /// The API server, for everything but leases.
    pub client: ClientOf,
    /// The API server, for leases.
    pub leases: ClientOf,
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

impl std::fmt::Debug for ClientOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

    /// What watches ask for, of kinds that users write.
    #[must_use]
    pub fn scope(&self) -> Scope {
        let scope = self
            .options
            .namespace
            .as_ref()
            .map_or_else(Scope::everywhere, Scope::namespace);
        match &self.options.watch_filter {
            Some(filter) => scope.labels(format!("{WATCH_FILTER_LABEL}={filter}")),
            None => scope,
        }
    }
}
