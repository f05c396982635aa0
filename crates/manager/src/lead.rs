//! Leading: the guard lets us, the lease makes us, and the controllers run. One product at a time knows nothing of the
//! others.

use std::sync::Arc;

use kube::Client;
use metal3_runtime::client::may_change;
use metal3_runtime::events::{EventRecorder, Publisher};
use metal3_runtime::guard::{DeploymentGuard, Foreign, Guard};
use metal3_runtime::lease::{Ended, LeaderElector, Leadership, LeaseTarget, LeaseTimings};
use metal3_runtime::write::Writer;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::last_words::told;
use crate::notice;
use crate::product::{Mandate, Product, Task};
use crate::run::RunFault;
use crate::servers::Hall;
use crate::session::Session;
use metal3_grants::{Announcing, Guarding, Leading};

/// Why the controllers of a product ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// As asked: the passes under way were finished.
    Stopped,
    /// The lease went to somebody else.
    LeaseLost,
    /// The Go manager is back.
    Displaced,
}

/// A product that waits for its turn.
pub(crate) struct Turn {
    session: Session,
    product: Product,
    guard: Guard,
    /// Present where there is an election.
    contender: Option<LeaderElector>,
    leadership: Leadership,
}

impl Turn {
    /// Prepares a turn; the guard begins to look.
    ///
    /// # Errors
    /// When the flags or the environment do not allow an election.
    pub(crate) fn prepare(session: &Session, product: Product, hall: &Hall) -> Result<Self, RunFault> {
        let clock = Arc::clone(&session.clock);
        let guard = if session.options.force || session.options.observe_only {
            Guard::forced()
        } else {
            look_out(session, product, hall)
        };
        let contest = session.options.election.filter(|_| !session.options.observe_only);
        let (contender, leadership) = match contest {
            None => (None, Leadership::uncontested(clock)),
            Some(election) => {
                let terms = LeaseTimings::new(election.lease, election.renew_deadline, election.retry)?;
                let place = LeaseTarget {
                    namespace: session
                        .place
                        .namespace
                        .clone()
                        .ok_or(RunFault::NoNamespace("--leader-elect"))?,
                    name: product.lease.to_owned(),
                    identity: session.place.identity.clone(),
                };
                let metrics = session.metrics.lease(product.lease);
                let (contender, leadership) =
                    LeaderElector::new::<Leading>(session.leases.0.clone(), place, terms, clock, metrics);
                (Some(contender), leadership)
            }
        };
        Ok(Self {
            session: session.clone(),
            product,
            guard,
            contender,
            leadership,
        })
    }

    /// The client of the controllers: it refuses to write when it is not their turn.
    fn client(&self) -> Result<Client, RunFault> {
        let client = self
            .session
            .door
            .writing_for(self.leadership.clone(), self.guard.clone());
        client.map_err(|error| RunFault::Client(Box::new(error)))
    }

    /// What its controllers may do, and when.
    pub(crate) fn mandate(&self) -> Result<Mandate, RunFault> {
        let (leadership, guard) = (self.leadership.clone(), self.guard.clone());
        Ok(Mandate {
            client: self.client()?,
            workloads: self.session.door.workloads(leadership.clone(), guard.clone()),
            permit: Arc::new(move || may_change(&leadership, &guard)),
        })
    }

    /// How the group stands, for `/readyz`.
    pub(crate) fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// Waits for the turn and takes it, until `stop` or until it is over.
    pub(crate) async fn take(self, controllers: Task, tasks: TaskTracker, stop: CancellationToken) -> Left {
        let name = self.product.owner.name();
        if stop.run_until_cancelled(self.guard.clear()).await.is_none() {
            return Left::Stopped;
        }
        let release = CancellationToken::new();
        let mut candidacy = self
            .contender
            .map(|contender| tasks.spawn(contender.run(release.clone())));
        let left = match stop.run_until_cancelled(chosen(&self.leadership, &mut candidacy)).await {
            Some(true) => {
                tracing::info!(
                    controllers = name,
                    observe_only = self.session.options.observe_only,
                    "running"
                );
                work(&self.guard, controllers, &mut candidacy, &stop).await
            }
            Some(false) => Left::LeaseLost,
            None => Left::Stopped,
        };
        // Given up last, when nothing writes any more.
        release.cancel();
        if let Some(candidacy) = candidacy.filter(|_| left != Left::LeaseLost) {
            drop(candidacy.await);
        }
        left
    }
}

/// Begins to look for the Go manager, and to tell by Events what is found.
fn look_out(session: &Session, product: Product, hall: &Hall) -> Guard {
    let (client, clock) = (session.client.0.clone(), Arc::clone(&session.clock));
    let mut configured = session.options.foreign.iter();
    let foreign = configured
        .find(|foreign| foreign.controllers == product.owner)
        .map_or(product.replaces, |foreign| (&*foreign.namespace, &*foreign.name));
    let foreign = Foreign::at(product.owner.name(), foreign);
    let (sentry, guard) = DeploymentGuard::new::<Guarding>(client.clone(), foreign.clone(), Arc::clone(&clock));
    hall.keep(sentry.run());
    let (events, inbox) = EventRecorder::bounded(notice::EVENTS);
    let writer: Writer<Announcing> = Writer::new(client, session.mode());
    let publisher = Publisher::new(inbox, writer, clock, "capm3");
    let (closing, notices) = (hall.closing.clone(), notice::tell(guard.clone(), foreign, events));
    let telling = told(closing.run_until_cancelled_owned(notices), publisher.run());
    drop(hall.tasks.spawn(telling));
    guard
}

/// Waits for the lease. False when the candidacy ended first: nobody would ever wake who waits on.
async fn chosen(leadership: &Leadership, candidacy: &mut Option<JoinHandle<Ended>>) -> bool {
    tokio::select! {
        () = leadership.acquired() => true,
        () = lost(candidacy) => false,
    }
}

async fn work(
    guard: &Guard,
    controllers: Task,
    candidacy: &mut Option<JoinHandle<Ended>>,
    stop: &CancellationToken,
) -> Left {
    let shift = stop.child_token();
    let mut controllers = controllers(shift.clone());
    tokio::select! {
        () = &mut controllers => Left::Stopped,
        // Whatever is in hand was decided as leader: it is dropped.
        () = lost(candidacy) => Left::LeaseLost,
        () = guard.blocked() => {
            shift.cancel();
            controllers.await;
            Left::Displaced
        }
    }
}

/// Returns when the lease is lost; never where there is no election.
async fn lost(candidacy: &mut Option<JoinHandle<Ended>>) {
    match candidacy {
        Some(candidacy) => drop(candidacy.await),
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
    async fn who_waits_for_a_lease_hears_that_the_candidacy_is_over() {
        let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let place = LeaseTarget {
            namespace: "n".to_owned(),
            name: "l".to_owned(),
            identity: "a".to_owned(),
        };
        let metrics = Metrics::new().lease("l");
        let client = Cluster::start(&Options::seeded(1)).client("a");
        let (contender, leadership) =
            LeaderElector::new::<Leading>(client, place, LeaseTimings::default(), clock, metrics);
        drop(contender);
        let mut ended = Some(TaskTracker::new().spawn(async { Ended::Lost }));
        let waited = timeout(Duration::from_secs(60), chosen(&leadership, &mut ended)).await;
        assert!(matches!(waited, Ok(false)));
    }
}
