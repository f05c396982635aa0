//! The process: its start, its run, its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use metal3_runtime::admin::{CheckResult, Health};
use metal3_runtime::cache::Unwatched;
use metal3_runtime::guard::{Guard, GuardStatus};
use metal3_runtime::watch::WatchHealth;
use tokio_util::sync::CancellationToken;

use crate::error::RunError;
use crate::lead::{LeaderTerm, TermEnd};
use crate::product::{Product, Running, Task};
use crate::served::{Kind, Missing};
use crate::servers::{self, Servers};
use crate::session::Session;

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a signal.
    Stopped,
    /// Another replica leads, or the Go manager runs again. The process exits, and its restart waits for the lease.
    LeadershipEnded,
}

/// A process before it runs.
pub struct Process {
    session: Session,
    products: Vec<Product>,
    /// The checks of `/healthz`.
    pub alive: Health,
    /// The checks of `/readyz`.
    pub ready: Health,
    /// Kinds that are not served yet.
    missing: Missing,
    /// Whether every server is open.
    serving: Arc<AtomicBool>,
}

impl Process {
    /// A process that runs these products.
    #[must_use]
    pub fn new(session: Session, products: Vec<Product>) -> Self {
        let process = Self {
            session,
            products,
            alive: Health::default(),
            ready: Health::default(),
            missing: Missing::default(),
            serving: Arc::default(),
        };
        // A probe may arrive before anything has started.
        let (missing, serving) = (process.missing.clone(), Arc::clone(&process.serving));
        process.ready.add("kinds", move || missing.finding());
        process.ready.add("webhook", move || {
            CheckResult::failed_unless(
                serving.load(Ordering::Acquire),
                "webhooks and metrics are not served yet",
            )
        });
        process
    }

    /// Runs until `stop`, or until leadership ends.
    ///
    /// # Errors
    /// When the process cannot start.
    pub async fn run(self, stop: CancellationToken) -> Result<Ended, RunError> {
        let servers = Servers::default();
        let ended = self.live(&servers, &stop).await;
        // Last, so that probes and webhooks are served while reconciles finish and leases are released.
        servers.closing.cancel();
        servers.tasks.close();
        servers.tasks.wait().await;
        ended
    }

    async fn live(&self, servers: &Servers, stop: &CancellationToken) -> Result<Ended, RunError> {
        let session = &self.session;
        let kinds: Vec<Kind> = self
            .products
            .iter()
            .flat_map(|product| product.kinds)
            .copied()
            .collect();
        servers::probes(session, servers, &self.alive, &self.ready).await?;
        let (mut terms, mut webhooks, mut watches) = (Vec::new(), Vec::new(), Vec::new());
        for product in &self.products {
            let term = LeaderTerm::prepare(session, *product, servers)?;
            let running = (product.begin)(session, term.write_access()?)?;
            self.add_sync_check(product, &running);
            watches.push((product.owner.name(), running.watch_health, running.watches));
            webhooks.push((product.suite, running.related_objects));
            self.add_guard_check(product, term.guard());
            terms.push((term, running.controllers));
        }
        match stop
            .run_until_cancelled(servers::metrics_and_webhooks(session, &webhooks, servers, &self.ready))
            .await
        {
            Some(served) => served?,
            None => return Ok(Ended::Stopped),
        }
        self.serving.store(true, Ordering::Release);
        // After the webhooks: the first list of a kind may need its conversion, and a missing kind concerns no webhook.
        if stop
            .run_until_cancelled(self.missing.wait(&session.client, &kinds))
            .await
            .is_none()
        {
            return Ok(Ended::Stopped);
        }
        for (name, health, tasks) in watches {
            for task in tasks {
                drop(servers.tasks.spawn(task(servers.closing.clone())));
            }
            self.add_watch_checks(name, &health);
            self.add_permission_check(name, &health);
        }
        Ok(lead(terms, servers, stop).await)
    }

    /// Reports incomplete lists. differs (`ready-without-kinds`): such a process is ready, since a list may need its
    /// webhooks. Of these only the one for changed ranges of pools needs lists, and it refuses until they are complete.
    fn add_sync_check(&self, product: &Product, running: &Running) {
        let synced = Arc::clone(&running.synced);
        self.ready.add(format!("caches-{}", product.owner.name()), move || {
            if synced() {
                CheckResult::Passed
            } else {
                CheckResult::Note("the first list of a cache is not complete yet".to_owned())
            }
        });
    }

    /// Adds the watches of a product to the liveness probe and to the metrics.
    fn add_watch_checks(&self, name: &str, watch_health: &[WatchHealth]) {
        for pulse in watch_health {
            pulse.report(&self.session.metrics);
            let pulse = pulse.clone();
            self.alive.add(format!("watch-{name}-{}", pulse.kind()), move || {
                let seconds = pulse.silent_for().as_secs();
                let why = format!(
                    "no response for {seconds} s: {}",
                    pulse.last_error().unwrap_or_default()
                );
                CheckResult::failed_unless(pulse.is_alive(), why)
            });
        }
    }

    /// Reports optional kinds that this process may not watch. It works without them.
    fn add_permission_check(&self, name: &str, watch_health: &[WatchHealth]) {
        let watches = watch_health.to_vec();
        self.ready.add(format!("permissions-{name}"), move || {
            let is_refused = |pulse: &&WatchHealth| pulse.unwatched() == Some(Unwatched::NotPermitted);
            let refused: Vec<&str> = watches.iter().filter(is_refused).map(WatchHealth::kind).collect();
            if refused.is_empty() {
                return CheckResult::Passed;
            }
            CheckResult::Note(format!(
                "this program may not list and watch {}, so these objects are unknown, and what needs them waits; apply the roles of \
                 this release",
                refused.join(", ")
            ))
        });
    }

    /// An idle group is ready: otherwise its webhooks would be unavailable to clients.
    fn add_guard_check(&self, product: &Product, guard: Guard) {
        self.ready.add(format!("guard-{}", product.owner.name()), move || {
            match guard.status() {
                GuardStatus::Clear => CheckResult::Passed,
                status @ (GuardStatus::Forced | GuardStatus::Present { .. } | GuardStatus::Unknown { .. }) => {
                    CheckResult::Note(status.to_string())
                }
            }
        });
    }
}

/// Runs the controllers of each product while it leads. When one product must stop, the whole process stops and restarts.
async fn lead(terms: Vec<(LeaderTerm, Task)>, servers: &Servers, stop: &CancellationToken) -> Ended {
    let working = stop.child_token();
    let mut taken: FuturesUnordered<_> = terms
        .into_iter()
        .map(|(term, controllers)| term.run(controllers, servers.tasks.clone(), working.clone()))
        .collect();
    let mut ended = Ended::Stopped;
    while let Some(left) = taken.next().await {
        match left {
            TermEnd::Stopped => {}
            TermEnd::LeaseLost | TermEnd::Displaced => {
                tracing::error!(?left, "controllers must stop; the process exits and restarts");
                ended = Ended::LeadershipEnded;
            }
        }
        working.cancel();
    }
    ended
}
