//! Leadership of one product: wait for the guard, acquire the lease, run the controllers.

use std::sync::Arc;

use metal3_runtime::client::check_write_allowed;
use metal3_runtime::events::{EventRecorder, Publisher};
use metal3_runtime::guard::{DeploymentGuard, ForeignDeployment, Guard, GuardStatus, read_status};
use metal3_runtime::lease::{Ended, LeaderElector, Leadership, LeaseTarget, LeaseTimings};
use metal3_runtime::write::Writer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::drain_events::run_then_drain;
use crate::error::RunError;
use crate::notice;
use crate::product::{GoManagerCheck, Product, Task, WriteAccess};
use crate::servers::Servers;
use crate::session::Session;
use metal3_grants::{LeaderElection, StatusEvents};

/// Why the controllers of a product ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TermEnd {
    /// By a signal, after running reconciles finished.
    Stopped,
    /// The lease was lost: another process may hold it.
    LeaseLost,
    /// The Go manager runs again.
    Displaced,
}

/// A product before and while it leads.
pub(crate) struct LeaderTerm {
    session: Session,
    product: Product,
    guard: Guard,
    /// Present with leader election.
    elector: Option<LeaderElector>,
    leadership: Leadership,
}

impl LeaderTerm {
    /// Prepares a term and starts the guard.
    ///
    /// # Errors
    /// When the flags or the environment do not allow an election.
    pub(crate) fn prepare(session: &Session, product: Product, servers: &Servers) -> Result<Self, RunError> {
        let clock = Arc::clone(&session.clock);
        let guard = if session.options.force || session.options.observe_only {
            Guard::forced()
        } else {
            start_guard(session, product, servers)
        };
        let contest = session.options.election.filter(|_| !session.options.observe_only);
        let (elector, leadership) = match contest {
            None => (None, Leadership::without_election(clock)),
            Some(election) => {
                let timings = LeaseTimings::new(election.lease, election.renew_deadline, election.retry)?;
                let target = LeaseTarget {
                    namespace: session
                        .pod
                        .namespace
                        .clone()
                        .ok_or(RunError::NoNamespace("--leader-elect"))?,
                    name: product.lease.to_owned(),
                    identity: session.pod.identity.clone(),
                };
                let metrics = session.metrics.lease(product.lease);
                let (elector, leadership) =
                    LeaderElector::new::<LeaderElection>(session.leases.clone(), target, timings, clock, metrics);
                (Some(elector), leadership)
            }
        };
        Ok(Self {
            session: session.clone(),
            product,
            guard,
            elector,
            leadership,
        })
    }

    /// The clients of the controllers, and the check before other effects.
    pub(crate) fn write_access(&self) -> Result<WriteAccess, RunError> {
        let (leadership, guard) = (self.leadership.clone(), self.guard.clone());
        let clients = &self.session.clients;
        let client = clients.writing_for(leadership.clone(), guard.clone());
        Ok(WriteAccess {
            client: client.map_err(|error| RunError::Client(Box::new(error)))?,
            workloads: clients.workloads(leadership.clone(), guard.clone()),
            go_manager: go_manager_check(&self.session, self.product),
            permit: Arc::new(move || check_write_allowed(&leadership, &guard)),
        })
    }

    /// The guard, for `/readyz`.
    pub(crate) fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// Waits for guard and lease, then runs the controllers until `stop` or until leadership ends.
    pub(crate) async fn run(self, controllers: Task, tasks: TaskTracker, stop: CancellationToken) -> TermEnd {
        let name = self.product.owner.name();
        if stop.run_until_cancelled(self.guard.clear()).await.is_none() {
            return TermEnd::Stopped;
        }
        let release = CancellationToken::new();
        let mut election = self.elector.map(|elector| tasks.spawn(elector.run(release.clone())));
        let left = match stop
            .run_until_cancelled(wait_for_lease(&self.leadership, &mut election))
            .await
        {
            Some(true) => {
                tracing::info!(
                    controllers = name,
                    observe_only = self.session.options.observe_only,
                    "running"
                );
                run_controllers(&self.guard, controllers, &mut election, &stop).await
            }
            Some(false) => TermEnd::LeaseLost,
            None => TermEnd::Stopped,
        };
        // Released last, after all writers have stopped.
        release.cancel();
        if let Some(election) = election.filter(|_| left != TermEnd::LeaseLost) {
            drop(election.await);
        }
        left
    }
}

/// The Deployments of the Go manager that a product replaces.
fn foreign_deployments(session: &Session, product: Product) -> Vec<ForeignDeployment> {
    let mut configured = session.options.foreign.iter();
    let configured = configured.find(|foreign| foreign.controllers == product.owner);
    let deployments = match configured {
        Some(foreign) => vec![(&*foreign.namespace, &*foreign.name)],
        None => product.replaces.to_vec(),
    };
    let foreign = |at| ForeignDeployment::at(product.owner.name(), at);
    deployments.into_iter().map(foreign).collect()
}

/// Reads the Deployments when called; returns the status of the first one that is not clear.
fn go_manager_check(session: &Session, product: Product) -> GoManagerCheck {
    let (client, deployments) = (session.client.clone(), foreign_deployments(session, product));
    Arc::new(move || {
        let (client, deployments) = (client.clone(), deployments.clone());
        Box::pin(async move {
            for deployment in deployments {
                let status = read_status::<metal3_grants::GoManagerCheck>(client.clone(), deployment).await;
                if !status.is_clear() {
                    return status;
                }
            }
            GuardStatus::Clear
        })
    })
}

/// Starts the watches of the Go manager's Deployments. The guard is clear when none of them runs.
fn start_guard(session: &Session, product: Product, servers: &Servers) -> Guard {
    let watch = |foreign| start_deployment_guard(session, foreign, servers);
    let deployments = foreign_deployments(session, product);
    let (task, guard) = Guard::all(deployments.into_iter().map(watch).collect());
    servers.keep(task);
    guard
}

/// Starts the watch of one Deployment, and reports its status by Events.
fn start_deployment_guard(session: &Session, foreign: ForeignDeployment, servers: &Servers) -> Guard {
    let (client, clock) = (session.client.clone(), Arc::clone(&session.clock));
    let (sentry, guard) =
        DeploymentGuard::new::<metal3_grants::GoManagerCheck>(client.clone(), foreign.clone(), Arc::clone(&clock));
    servers.keep(sentry.run());
    let (events, inbox) = EventRecorder::bounded(notice::EVENTS);
    let writer: Writer<StatusEvents> = Writer::new(client, session.mode());
    let publisher = Publisher::new(inbox, writer, clock, "capm3");
    let (closing, notices) = (servers.closing.clone(), notice::report(guard.clone(), foreign, events));
    let reporting = run_then_drain(closing.run_until_cancelled_owned(notices), publisher.run());
    drop(servers.tasks.spawn(reporting));
    guard
}

/// Waits for the lease. Returns false when the election ended first.
async fn wait_for_lease(leadership: &Leadership, election: &mut Option<JoinHandle<Ended>>) -> bool {
    tokio::select! {
        () = leadership.acquired() => true,
        () = lease_lost(election) => false,
    }
}

async fn run_controllers(
    guard: &Guard,
    controllers: Task,
    election: &mut Option<JoinHandle<Ended>>,
    stop: &CancellationToken,
) -> TermEnd {
    let running = stop.child_token();
    let mut controllers = controllers(running.clone());
    tokio::select! {
        () = &mut controllers => TermEnd::Stopped,
        // Running reconciles were planned as leader: they are dropped.
        () = lease_lost(election) => TermEnd::LeaseLost,
        () = guard.blocked() => {
            running.cancel();
            controllers.await;
            TermEnd::Displaced
        }
    }
}

/// Returns when the lease is lost; never without leader election.
async fn lease_lost(election: &mut Option<JoinHandle<Ended>>) {
    match election {
        Some(election) => drop(election.await),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use metal3_runtime::clock::TimerClock;
    use metal3_runtime::metrics::Metrics;
    use metal3_sim_cluster::{Cluster, Options};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_for_a_lease_ends_when_the_election_ends() {
        let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let target = LeaseTarget {
            namespace: "n".to_owned(),
            name: "l".to_owned(),
            identity: "a".to_owned(),
        };
        let metrics = Metrics::new().lease("l");
        let client = Cluster::start(&Options::seeded(1)).client("a");
        let (elector, leadership) =
            LeaderElector::new::<LeaderElection>(client, target, LeaseTimings::default(), clock, metrics);
        drop(elector);
        let mut ended = Some(TaskTracker::new().spawn(async { Ended::Lost }));
        let waited = timeout(Duration::from_secs(60), wait_for_lease(&leadership, &mut ended)).await;
        assert!(matches!(waited, Ok(false)));
    }
}
