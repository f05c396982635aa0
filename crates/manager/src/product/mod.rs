//! The interface between the manager and a product: its requirements, and how it is built.

mod capm3;
mod claims;
mod hosts;
mod ipam;

use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use kube::Client;
use metal3_capi::workload::ConnectFn;
use metal3_runtime::access::Role;
use metal3_runtime::client::WriteBlocked;
use metal3_runtime::guard::GuardStatus;
use metal3_runtime::watch::{WatchHealth, WatchSet};
use metal3_webhooks::related_objects::{NoRelatedObjects, RelatedObjects};
use metal3_webhooks::table::Suite;
use tokio_util::sync::CancellationToken;

use crate::error::RunError;
use crate::served::Kind;
use crate::session::Session;
use metal3_flags::Owner;

/// Capacity of the event queue of a product.
const EVENTS: usize = 1000;
/// The manifest of Cluster API's own kinds.
const CORE: &str = "core-components.yaml of Cluster API 1.11 or newer";

/// Why what depends on objects of other namespaces is not known to a process of one namespace.
fn other_namespace(only: &str) -> String {
    format!(
        "this process looks at namespace {only} alone (--namespace), so the webhook configuration should leave other \
         namespaces out (namespaceSelector)"
    )
}

/// A task that runs until its token is cancelled.
pub type Task = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// Reads whether a Go manager runs now.
pub type GoManagerCheck = Arc<dyn Fn() -> BoxFuture<'static, GuardStatus> + Send + Sync>;

/// A group of controllers.
#[derive(Clone, Copy)]
pub struct Product {
    /// Its name.
    pub owner: Owner,
    /// The webhooks of its kinds.
    pub suite: Suite,
    /// The kinds it requires.
    pub kinds: &'static [Kind],
    /// Its lease.
    pub lease: &'static str,
    /// The Deployments, namespace and name, of the releases of the Go manager that it replaces.
    pub replaces: &'static [(&'static str, &'static str)],
    /// Builds it. It sends no request before its tasks run.
    pub begin: fn(&Session, WriteAccess) -> Result<Running, RunError>,
}

/// The clients of a product's controllers, which write only while it leads.
pub struct WriteAccess {
    /// The API server; the client rejects writes while the product does not lead.
    pub client: Client,
    /// Whether other systems may be changed now. To be called directly before each change.
    pub permit: Arc<dyn Fn() -> Result<(), WriteBlocked> + Send + Sync>,
    /// Opens workload clusters, with the same restriction on writes.
    pub workloads: ConnectFn,
    /// Reads whether a Go manager that the product replaces runs now, whether or not a flag overrides the guard.
    pub go_manager: GoManagerCheck,
}

/// A product that was built.
pub struct Running {
    /// Tasks of every replica, mainly watches.
    pub watches: Vec<Task>,
    /// The health of those watches.
    pub watch_health: Vec<WatchHealth>,
    /// Whether the first list of every cache is complete.
    pub synced: Arc<dyn Fn() -> bool + Send + Sync>,
    /// What webhooks may read of other objects.
    pub related_objects: Arc<dyn RelatedObjects>,
    /// Its controllers, for the leader. On cancellation they finish running reconciles.
    pub controllers: Task,
}

impl Running {
    /// Runs these watches and controllers. No rule of its webhooks reads another object.
    fn new<R: Role>(watches: WatchSet<R>, controllers: Task) -> Self {
        let (watch_health, synced) = (watches.health(), Arc::new(watches.synced()));
        let until_stopped = |watch: Pin<Box<dyn Future<Output = ()> + Send>>| -> Task {
            Box::new(move |stop| Box::pin(async move { stop.run_until_cancelled(watch).await.unwrap_or_default() }))
        };
        Self {
            watches: watches.into_tasks().into_iter().map(until_stopped).collect(),
            watch_health,
            synced,
            related_objects: Arc::new(NoRelatedObjects),
            controllers,
        }
    }
}

/// The product that replaces this Go manager.
#[must_use]
pub const fn find(owner: Owner) -> Product {
    match owner {
        Owner::Ipam => ipam::PRODUCT,
        Owner::Hosts => hosts::PRODUCT,
        Owner::Capm3 => capm3::PRODUCT,
    }
}
