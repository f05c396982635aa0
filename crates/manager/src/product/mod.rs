//! The seam between the manager and what it runs: a product says what it needs, and how it begins.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use metal3_runtime::watch::Pulse;
use metal3_webhooks::neighbours::Neighbours;
use metal3_webhooks::table::Suite;
use tokio_util::sync::CancellationToken;

use crate::flags::Owner;
use crate::served::Kind;
use crate::session::Session;

/// Something that goes on until it is told to stop.
pub type Task = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// A group of controllers.
#[derive(Clone, Copy)]
pub struct Product {
    /// Its name.
    pub owner: Owner,
    /// The webhooks of its kinds.
    pub suite: Suite,
    /// The kinds it cannot work without.
    pub kinds: &'static [Kind],
    /// The lease of whoever leads it.
    pub lease: &'static str,
    /// The Deployment, namespace and name, of the Go manager it replaces.
    pub replaces: (&'static str, &'static str),
    /// Builds it; the client is for its controllers. Nothing is asked of the API server before its tasks run.
    pub begin: fn(&Session, Client) -> Running,
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Product")
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// A product that has begun.
pub struct Running {
    /// What runs on every replica: its watches above all.
    pub watches: Vec<Task>,
    /// The signs of life of those watches.
    pub pulses: Vec<Pulse>,
    /// Whether all that decisions read has been listed once.
    pub synced: Arc<dyn Fn() -> bool + Send + Sync>,
    /// What webhooks may know of other objects.
    pub neighbours: Arc<dyn Neighbours>,
    /// Its controllers, for the replica that leads. Told to stop, they finish the passes under way.
    pub controllers: Task,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("pulses", &self.pulses)
            .finish_non_exhaustive()
    }
}

/// The product of a name, if this program has it.
#[must_use]
pub fn find(owner: Owner) -> Option<Product> {
    match owner {
        Owner::Ipam | Owner::Capm3 | Owner::Hosts => None,
    }
}
