//! The election of one candidate as a state machine: time and responses in, the next step out.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::Lease;
use metal3_domain::clock::Monotonic;

use super::{LeaseTimings, record};

/// The next step of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Read the lease, then call [`Election::observed`].
    Read,
    /// Create the lease, then call [`Election::written`].
    Create(Box<Lease>),
    /// Update the whole lease with its resourceVersion, then call [`Election::written`].
    Update(Box<Lease>),
    /// Wait for this long.
    Wait(Duration),
    /// Wait for a change of the lease since this version, at most for this long, then call [`Election::observed`] with it.
    Watch {
        /// The resourceVersion of the known lease.
        from: String,
        /// After this time the leader counts as dead, unless a read finds a new record.
        within: Duration,
    },
    /// Leadership is lost, for good.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waits until then.
    Waiting(Monotonic),
    /// Another candidate leads: watches its record, until it is free by then.
    Watching(Monotonic),
    /// Reads next.
    Reading,
    /// Decides by the lease that was read.
    Deciding,
    /// Renews the known lease without reading it first.
    Renewing,
    /// Over.
    Lost,
}

/// One candidate for one lease.
#[derive(Debug, Clone)]
pub struct Election {
    name: String,
    identity: String,
    timings: LeaseTimings,
    phase: Phase,
    /// The lease as last read, and since when its record is unchanged on the own clock.
    seen: Option<(Lease, Monotonic)>,
    /// When the renewal that makes this candidate the leader was sent.
    renewed: Option<Monotonic>,
    /// Until when the holder of a lease that was deleted may lead.
    deleted_held: Option<Monotonic>,
}

impl Election {
    /// A candidate with this identity for the lease `name`.
    #[must_use]
    pub const fn new(name: String, identity: String, timings: LeaseTimings) -> Self {
        Self {
            name,
            identity,
            timings,
            phase: Phase::Reading,
            seen: None,
            renewed: None,
            deleted_held: None,
        }
    }

    /// Until when this candidate leads without a renewal. `None` if it does not lead.
    #[must_use]
    pub fn deadline(&self) -> Option<Monotonic> {
        self.renewed.map(|sent| sent.after(self.timings.renew_deadline))
    }

    /// The last known leader.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(lease, _)| record::holder(lease))
    }

    /// The step at `now`; `wall` is the time to write.
    pub fn next(&mut self, now: Monotonic, wall: DateTime<Utc>) -> Step {
        let deadline = self.deadline();
        if self.phase == Phase::Lost || deadline.is_some_and(|deadline| deadline <= now) {
            return self.lose();
        }
        match self.phase {
            Phase::Waiting(until) if now < until => {
                let until = deadline.map_or(until, |deadline| deadline.min(until));
                Step::Wait(until.since(now))
            }
            Phase::Waiting(_) if self.renewed.is_some() => {
                self.phase = Phase::Renewing;
                self.next(now, wall)
            }
            Phase::Watching(until) if now < until => Step::Watch {
                from: self.version(),
                within: until.since(now),
            },
            // A watch whose connection is dead reports nothing either: only a read shows that the leader is gone.
            Phase::Waiting(_) | Phase::Watching(_) | Phase::Reading => {
                self.phase = Phase::Reading;
                Step::Read
            }
            Phase::Deciding => self.decide(now, wall),
            Phase::Renewing => match &self.seen {
                Some((lease, _)) => Step::Update(Box::new(self.renewed_record(lease, wall))),
                None => {
                    self.phase = Phase::Reading;
                    Step::Read
                }
            },
            Phase::Lost => Step::Lost,
        }
    }

    /// The lease was read or reported by a watch, or it does not exist.
    pub fn observed(&mut self, now: Monotonic, lease: Option<Lease>) {
        self.remember(now, lease);
        self.phase = Phase::Deciding;
    }

    /// A request that was sent at `sent` wrote the lease.
    pub fn written(&mut self, sent: Monotonic, now: Monotonic, lease: Lease) {
        self.remember(now, Some(lease));
        self.renewed = Some(sent);
        self.phase = Phase::Waiting(sent.after(self.timings.renewal()));
    }

    /// A request failed or its outcome is unknown: the known lease may be out of date. Returns whether this candidate
    /// leads.
    pub fn failed(&mut self, now: Monotonic) -> bool {
        self.phase = match self.phase {
            // Another candidate wrote in between, or the response was lost: read without a wait.
            Phase::Renewing => Phase::Reading,
            Phase::Lost => Phase::Lost,
            Phase::Waiting(_) | Phase::Watching(_) | Phase::Reading | Phase::Deciding => {
                let again = now.after(self.pause_after_failure(now));
                self.forget_if_leading();
                Phase::Waiting(again)
            }
        };
        self.renewed.is_some()
    }

    /// Ends the candidacy. Returns the record that releases `lease`, which was just read, so that the next leader need
    /// not wait; `None` when this candidate does not hold it.
    pub fn release(&mut self, lease: Option<Lease>, wall: DateTime<Utc>) -> Option<Box<Lease>> {
        self.lose();
        let lease = lease.filter(|lease| record::holder(lease) == Some(&self.identity))?;
        // One second, as client-go writes: a reader that uses the duration only does not wait either.
        Some(Box::new(record::written(lease, "", Duration::from_secs(1), wall)))
    }

    fn decide(&mut self, now: Monotonic, wall: DateTime<Utc>) -> Step {
        let Some((lease, since)) = &self.seen else {
            if let Some(until) = self.deleted_held.filter(|until| now < *until) {
                self.phase = Phase::Waiting(until);
                return self.next(now, wall);
            }
            let lease = record::first(&self.name, &self.identity, self.timings.lease, wall);
            return Step::Create(Box::new(lease));
        };
        match record::holder(lease) {
            Some(holder) if holder != self.identity => {
                if self.renewed.is_some() {
                    return self.lose();
                }
                let free = self.free_at(lease, *since);
                if now < free {
                    self.phase = Phase::Watching(free);
                    return self.next(now, wall);
                }
            }
            Some(_) | None => {}
        }
        Step::Update(Box::new(self.renewed_record(lease, wall)))
    }

    fn renewed_record(&self, lease: &Lease, wall: DateTime<Utc>) -> Lease {
        record::written(lease.clone(), &self.identity, self.timings.lease, wall)
    }

    /// Keeps the instant since when the record is unchanged: a new version with the same record is no renewal.
    fn remember(&mut self, now: Monotonic, lease: Option<Lease>) {
        let before = self.seen.take();
        if lease.is_none()
            && let Some((known, since)) = &before
            && record::holder(known).is_some_and(|holder| holder != self.identity)
        {
            self.deleted_held = Some(self.free_at(known, *since));
        }
        self.seen = lease.map(|lease| match before {
            Some((known, since)) if known.spec == lease.spec => (lease, since),
            _ => (lease, now),
        });
    }

    /// When the holder of a record that is unchanged since then does not lead any more.
    fn free_at(&self, lease: &Lease, since: Monotonic) -> Monotonic {
        since.after(record::duration(lease).unwrap_or(self.timings.lease))
    }

    /// A leader tries again the sooner the closer its deadline is.
    fn pause_after_failure(&self, now: Monotonic) -> Duration {
        let retry = self.timings.retry;
        let urgent = |deadline: Monotonic| (deadline.since(now) / 4).clamp(retry / 8, retry);
        self.deadline().map_or(retry, urgent)
    }

    fn version(&self) -> String {
        let known = self.seen.as_ref();
        known
            .and_then(|(lease, _)| lease.metadata.resource_version.clone())
            .unwrap_or_default()
    }

    /// After a failure a leader reads before it writes again.
    fn forget_if_leading(&mut self) {
        if self.renewed.is_some() {
            self.seen = None;
        }
    }

    fn lose(&mut self) -> Step {
        self.renewed = None;
        self.phase = Phase::Lost;
        Step::Lost
    }
}
