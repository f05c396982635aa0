//! Runs the election against an API server.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use metal3_domain::clock::{Clock, Monotonic};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::LeaseTimings;
use super::election::{Election, Step};
use super::leadership::{Leadership, Until};
use crate::access::{Permits, verb};
use crate::metrics::LeaseMetrics;

/// The lease and the identity of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTarget {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The identity of this candidate. Unique for each start of a process: a restarted one must not take the requests
    /// of its predecessor for its own.
    pub identity: String,
}

/// How an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Stopped. The lease was released, or it was never held.
    Released,
    /// Leadership is lost. The process must exit: it still has work that it decided on as leader.
    Lost,
}

/// How long a watch of the lease lasts: the client accepts no longer one.
const WATCH_SECONDS: u32 = 290;

/// Changes of the lease, as the server reports them.
type Changes = BoxStream<'static, kube::Result<WatchEvent<Lease>>>;

/// One candidate for one lease, ready to run.
#[derive(Debug)]
pub struct LeaderElector {
    api: Api<Lease>,
    election: Election,
    place: LeaseTarget,
    timings: LeaseTimings,
    clock: Arc<dyn Clock>,
    until: watch::Sender<Until>,
    metrics: LeaseMetrics,
}

impl LeaderElector {
    /// A candidate, and the handle to its leadership. `client` should serve leases only: see
    /// [`Settings::for_leases`](crate::client::Settings::for_leases).
    #[must_use]
    pub fn new<R>(
        client: Client,
        place: LeaseTarget,
        timings: LeaseTimings,
        clock: Arc<dyn Clock>,
        metrics: LeaseMetrics,
    ) -> (Self, Leadership)
    where
        R: Permits<verb::Get, Lease>
            + Permits<verb::Watch, Lease>
            + Permits<verb::Create, Lease>
            + Permits<verb::Update, Lease>,
    {
        let (until, leadership) = Leadership::with_election((&place.namespace, &place.name), Arc::clone(&clock));
        metrics.leading(false);
        let elector = Self {
            api: Api::namespaced(client, &place.namespace),
            election: Election::new(place.name.clone(), place.identity.clone(), timings),
            place,
            timings,
            clock,
            until,
            metrics,
        };
        (elector, leadership)
    }

    /// Runs until it is stopped, or until leadership is lost. Cancel `stop` only when no write can follow: the lease is
    /// released at once.
    pub async fn run(mut self, stop: CancellationToken) -> Ended {
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => Ended::Released,
            () = self.campaign() => Ended::Lost,
        };
        self.until.send_replace(Until::Never);
        self.metrics.leading(false);
        match ended {
            Ended::Released => self.release().await,
            Ended::Lost => tracing::error!(lease = self.place.name, "leadership is lost: the process has to exit"),
        }
        ended
    }

    /// Returns when leadership is lost.
    async fn campaign(&mut self) {
        // Open while another candidate leads.
        let mut changes = None;
        loop {
            let next = self.election.next(self.clock.monotonic(), self.clock.now());
            if !matches!(next, Step::Watch { .. }) {
                changes = None;
            }
            match next {
                Step::Read => self.read().await,
                Step::Create(lease) => self.write(&lease, true).await,
                Step::Update(lease) => self.write(&lease, false).await,
                Step::Wait(pause) => tokio::time::sleep(pause).await,
                Step::Watch { from, within } => self.watch(&mut changes, &from, within).await,
                Step::Lost => return,
            }
        }
    }

    async fn read(&mut self) {
        let answer = tokio::time::timeout(self.time_left(), self.api.get_opt(&self.place.name)).await;
        let now = self.clock.monotonic();
        match answer {
            Ok(Ok(lease)) => self.observed(now, lease),
            Ok(Err(error)) => self.log_failure(now, &error),
            Err(late) => self.log_failure(now, &late),
        }
    }

    fn observed(&mut self, now: Monotonic, lease: Option<Lease>) {
        let before = self.election.leader().map(str::to_owned);
        self.election.observed(now, lease);
        self.log_leader(before.as_deref());
    }

    /// Waits for the next change. The watch stays open, so that a renewal by the leader costs no request.
    async fn watch(&mut self, changes: &mut Option<Changes>, from: &str, within: Duration) {
        let next = next_change(changes, &self.api, &self.place.name, from);
        let change = tokio::time::timeout(within, next).await;
        let now = self.clock.monotonic();
        match change {
            Ok(Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease)))) => self.observed(now, Some(lease)),
            Ok(Some(Ok(WatchEvent::Deleted(_)))) => self.observed(now, None),
            Ok(Some(Ok(WatchEvent::Bookmark(_)))) => {}
            Ok(Some(Ok(WatchEvent::Error(status)))) => self.log_failure(now, &kube::Error::Api(status)),
            Ok(Some(Err(error))) => self.log_failure(now, &error),
            // The server ended the watch.
            Ok(None) => {
                self.election.failed(now);
            }
            // The election reads the lease next.
            Err(_) => {}
        }
    }

    async fn write(&mut self, lease: &Lease, create: bool) {
        let sent = self.clock.monotonic();
        let params = PostParams::default();
        let request = async {
            if create {
                self.api.create(&params, lease).await
            } else {
                self.update(&params, lease).await
            }
        };
        let answer = tokio::time::timeout(self.time_left(), request).await;
        let now = self.clock.monotonic();
        match answer {
            Ok(Ok(lease)) => {
                let is_new = self.election.deadline().is_none();
                self.election.written(sent, now, lease);
                if is_new {
                    tracing::info!(lease = self.place.name, identity = self.place.identity, "leading");
                }
                if let Some(deadline) = self.election.deadline() {
                    self.until.send_replace(Until::Deadline(deadline));
                    self.metrics.leading(true);
                }
            }
            Ok(Err(error)) => self.log_failure(now, &error),
            Err(late) => self.log_failure(now, &late),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "only candidates write the record, and the Lease is written back as it was read, with its resourceVersion"
    )]
    async fn update(&self, params: &PostParams, lease: &Lease) -> kube::Result<Lease> {
        self.api.replace(&self.place.name, params, lease).await
    }

    /// Reads first: a renewal in flight may have taken effect, so the known record may be out of date.
    async fn release(&mut self) {
        let (wall, within) = (self.clock.now(), self.timings.renew_deadline);
        let release = async {
            let lease = self.api.get_opt(&self.place.name).await?;
            let Some(lease) = self.election.release(lease, wall) else {
                return Ok(false);
            };
            self.update(&PostParams::default(), &lease).await.map(|_| true)
        };
        match tokio::time::timeout(within, release).await {
            Ok(Ok(true)) => tracing::info!(lease = self.place.name, "lease given up"),
            Ok(Ok(false)) => {}
            // The next leader waits until the lease expires.
            Ok(Err(error)) => tracing::warn!(lease = self.place.name, %error, "lease not given up"),
            Err(_) => tracing::warn!(lease = self.place.name, "lease not given up in time"),
        }
    }

    /// The request timeout: for a leader most of the time until its deadline. The rest is for another request.
    fn time_left(&self) -> Duration {
        let now: Monotonic = self.clock.monotonic();
        let deadline = self.election.deadline();
        deadline.map_or(self.timings.renew_deadline, |deadline| deadline.since(now) * 3 / 4)
    }

    fn log_failure(&mut self, now: Monotonic, error: &dyn std::error::Error) {
        if self.election.failed(now) {
            self.metrics.renewal_failed();
            tracing::warn!(lease = self.place.name, %error, "lease not renewed yet");
        } else {
            tracing::debug!(lease = self.place.name, %error, "lease not taken yet");
        }
    }

    fn log_leader(&self, before: Option<&str>) {
        let leader = self.election.leader();
        if leader != before {
            let leader = leader.unwrap_or("none");
            tracing::info!(lease = self.place.name, leader, "the lease is held");
        }
    }
}

/// Opens the watch where it is not open, and waits for the next event. May be dropped at any time without a loss.
async fn next_change(
    changes: &mut Option<Changes>,
    api: &Api<Lease>,
    name: &str,
    from: &str,
) -> Option<kube::Result<WatchEvent<Lease>>> {
    if changes.is_none() {
        let params = WatchParams::default()
            .fields(&format!("metadata.name={name}"))
            .disable_bookmarks()
            .timeout(WATCH_SECONDS);
        match api.watch(&params, from).await {
            Ok(stream) => *changes = Some(stream.boxed()),
            Err(error) => return Some(Err(error)),
        }
    }
    changes.as_mut()?.next().await
}
