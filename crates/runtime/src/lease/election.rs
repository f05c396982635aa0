//! The election of one candidate, as a state machine: told what time it is and what requests brought, it says what to
//! do next.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::Lease;
use metal3_domain::clock::Monotonic;

use super::{LeaseTimings, record};

/// What a candidate does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Read the lease, then call [`Election::observed`].
    Read,
    /// Create the lease, then call [`Election::written`].
    Create(Box<Lease>),
    /// Update the lease, whole and with the resourceVersion it carries, then call [`Election::written`].
    Update(Box<Lease>),
    /// Nothing for this long.
    Wait(Duration),
    /// Leadership is lost, for good.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing to do before this.
    Resting(Monotonic),
    /// To read.
    Looking,
    /// To decide by what was read.
    Deciding,
    /// To renew by what is known, without reading first.
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
    /// The lease as it was seen last, and since when its record has been the same, by our clock.
    seen: Option<(Lease, Monotonic)>,
    /// When the renewal was sent that makes us leader.
    renewed: Option<Monotonic>,
}

impl Election {
    /// A candidate that calls itself `identity`, for the lease `name`.
    #[must_use]
    pub const fn new(name: String, identity: String, timings: LeaseTimings) -> Self {
        Self {
            name,
            identity,
            timings,
            phase: Phase::Looking,
            seen: None,
            renewed: None,
        }
    }

    /// Until when we lead, if nothing happens. Nothing while we do not.
    #[must_use]
    pub fn deadline(&self) -> Option<Monotonic> {
        self.renewed.map(|sent| sent.after(self.timings.renew_deadline))
    }

    /// Who leads, as far as is known.
    #[must_use]
    pub fn leader(&self) -> Option<&str> {
        self.seen.as_ref().and_then(|(lease, _)| record::holder(lease))
    }

    /// What to do at `now`; `wall` goes into what is written.
    pub fn next(&mut self, now: Monotonic, wall: DateTime<Utc>) -> Step {
        let deadline = self.deadline();
        if self.phase == Phase::Lost || deadline.is_some_and(|deadline| deadline <= now) {
            return self.lose();
        }
        match self.phase {
            Phase::Resting(until) if now < until => {
                let until = deadline.map_or(until, |deadline| deadline.min(until));
                Step::Wait(until.since(now))
            }
            Phase::Resting(_) if self.renewed.is_some() => {
                self.phase = Phase::Renewing;
                self.next(now, wall)
            }
            Phase::Resting(_) | Phase::Looking => {
                self.phase = Phase::Looking;
                Step::Read
            }
            Phase::Deciding => self.decide(now, wall),
            Phase::Renewing => match &self.seen {
                Some((lease, _)) => Step::Update(Box::new(self.ours(lease, wall))),
                None => {
                    self.phase = Phase::Looking;
                    Step::Read
                }
            },
            Phase::Lost => Step::Lost,
        }
    }

    /// The lease was read, or it is known not to be there.
    pub fn observed(&mut self, now: Monotonic, lease: Option<Lease>) {
        self.remember(now, lease);
        self.phase = Phase::Deciding;
    }

    /// The lease was written by a request that left at `sent`, and is now as given.
    pub fn written(&mut self, sent: Monotonic, now: Monotonic, lease: Lease) {
        self.remember(now, Some(lease));
        self.renewed = Some(sent);
        self.rest(now);
    }

    /// A request failed, or nobody knows what became of it: what was known of the lease may be out of date. Says whether
    /// we lead and time is running.
    pub fn failed(&mut self, now: Monotonic) -> bool {
        self.phase = match self.phase {
            // Someone else wrote in between, or the answer was lost: a look tells, and it need not wait.
            Phase::Renewing => Phase::Looking,
            Phase::Lost => Phase::Lost,
            Phase::Resting(_) | Phase::Looking | Phase::Deciding => {
                let again = now.after(self.timings.retry);
                self.forget_if_leading();
                Phase::Resting(again)
            }
        };
        self.renewed.is_some()
    }

    /// Ends the candidacy. What to write over `lease`, just read, so that the next need not wait: nothing when the
    /// record does not name us.
    pub fn give_up(&mut self, lease: Option<Lease>, wall: DateTime<Utc>) -> Option<Box<Lease>> {
        self.lose();
        let lease = lease.filter(|lease| record::holder(lease) == Some(&self.identity))?;
        // One second, as the library writes: a reader that looks at the duration only does not wait either.
        Some(Box::new(record::written(lease, "", Duration::from_secs(1), wall)))
    }

    fn decide(&mut self, now: Monotonic, wall: DateTime<Utc>) -> Step {
        let Some((lease, since)) = &self.seen else {
            let lease = record::first(&self.name, &self.identity, self.timings.lease, wall);
            return Step::Create(Box::new(lease));
        };
        match record::holder(lease) {
            Some(holder) if holder != self.identity => {
                if self.renewed.is_some() {
                    return self.lose();
                }
                let free = since.after(record::duration(lease).unwrap_or(self.timings.lease));
                if now < free {
                    self.rest(now);
                    return self.next(now, wall);
                }
            }
            Some(_) | None => {}
        }
        Step::Update(Box::new(self.ours(lease, wall)))
    }

    fn ours(&self, lease: &Lease, wall: DateTime<Utc>) -> Lease {
        record::written(lease.clone(), &self.identity, self.timings.lease, wall)
    }

    /// Keeps the instant since when the record has been the same: a new version with the same record is no sign of life.
    fn remember(&mut self, now: Monotonic, lease: Option<Lease>) {
        let before = self.seen.take();
        self.seen = lease.map(|lease| match before {
            Some((known, since)) if known.spec == lease.spec => (lease, since),
            _ => (lease, now),
        });
    }

    fn rest(&mut self, now: Monotonic) {
        self.phase = Phase::Resting(now.after(self.timings.retry));
    }

    /// After a failure a leader reads before it writes again: its next turn is a look.
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
