//! The seam between the manager and what it runs: a product says what it needs, and how it begins.

mod capm3;
mod hosts;
mod ipam;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use metal3_capi::workload::Open;
use metal3_runtime::client::NotOurs;
use metal3_runtime::watch::WatchHealth;
use metal3_webhooks::neighbours::Neighbours;
use metal3_webhooks::table::Suite;
use tokio_util::sync::CancellationToken;

use crate::run::RunFault;
use crate::served::Kind;
use crate::session::Session;
use metal3_flags::Owner;

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
    /// Builds it. Nothing is asked of the API server before its tasks run.
    pub begin: fn(&Session, Mandate) -> Result<Running, RunFault>,
}

/// What the controllers of a product may do, and when.
pub struct Mandate {
    /// The API server; it refuses to be written to when it is not their turn.
    pub client: Client,
    /// Whether something elsewhere may be changed now. To be asked at the last moment.
    pub permit: Arc<dyn Fn() -> Result<(), NotOurs> + Send + Sync>,
    /// The way into workload clusters; what is written there obeys the same.
    pub workloads: Open,
}

impl fmt::Debug for Mandate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mandate").finish_non_exhaustive()
    }
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
    pub pulses: Vec<WatchHealth>,
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

/// A watch as a task.
fn until_stopped(watch: Pin<Box<dyn Future<Output = ()> + Send>>) -> Task {
    Box::new(move |stop| Box::pin(async move { stop.run_until_cancelled(watch).await.unwrap_or_default() }))
}

/// The product of a name.
#[must_use]
pub const fn find(owner: Owner) -> Product {
    match owner {
        Owner::Ipam => ipam::PRODUCT,
        Owner::Hosts => hosts::PRODUCT,
        Owner::Capm3 => capm3::PRODUCT,
    }
}
