//! Leader election with leases.
//!
//! [`Election`] is a pure state machine; [`LeaderElector`] runs it against an API server; [`Leadership`] is the handle
//! for the rest of the program. A client of [`ClientFactory::writing_for`](crate::client::ClientFactory::writing_for)
//! checks it before each write.
//!
//! Record and protocol are those of client-go, so replicas of the Go managers and of this program can share one Lease:
//!
//! - Clocks are not compared. A candidate measures on its own monotonic clock how long a record is unchanged; the
//!   timestamps in it are for people.
//! - A write has the resourceVersion of the read as its precondition, so of two candidates one wins. This is the only
//!   full update of the project: only candidates write the record, and the object is written back as it was read.
//! - A leader that has not renewed within the renew deadline stops leading. That deadline ends before others may take
//!   over.
//! - A clean exit releases the lease, so the next leader need not wait.
//! - differs: `lease-watched`: the others watch the Lease, and read it before they take it over; the leader renews it when two
//!   retry periods are left before its deadline, every 6 seconds by default. The Go library reads and renews every 2 seconds.
//!
//! differs: `lease-deadline-at-write`: the deadline counts from when the renewal was *sent*, is checked at each write,
//! and so also stops a process that was suspended and continues later; a leader that reads another holder in the record
//! stops at once. There is no jitter: candidates are few, and of two concurrent ones one wins.
//!
//! A role without these verbs on a Lease does not compile:
//!
//! ```compile_fail,E0277
//! # use metal3_runtime::lease::{LeaderElector, LeaseTarget, LeaseTimings};
//! # use metal3_runtime::metrics::Metrics;
//! # use k8s_openapi::api::coordination::v1::Lease;
//! metal3_runtime::role! {
//!     /// Looks, and does not write.
//!     pub struct Reading {
//!         Lease: Get;
//!     }
//! }
//! # fn start(client: kube::Client, place: LeaseTarget, clock: std::sync::Arc<dyn metal3_domain::clock::Clock>) {
//! LeaderElector::new::<Reading>(client, place, LeaseTimings::default(), clock, Metrics::new().lease("l"));
//! # }
//! ```
//!
//! A lease bounds how long two leaders overlap and cannot exclude it, since a request may be in flight for any time.
//! Correctness depends on the preconditions of the writes. A monotonic clock does not count the time in which a machine
//! sleeps.

mod election;
mod elector;
mod leadership;
mod record;

use std::time::Duration;

pub use election::{Election, Step};
pub use elector::{Ended, LeaderElector, LeaseTarget};
pub use leadership::{Leadership, NotLeading};

/// The Lease of the Go manager of clusters and machines.
pub const CAPM3_LEASE: &str = "controller-leader-election-capm3";
/// The Lease of the Go manager of IP addresses.
pub const IPAM_LEASE: &str = "controller-leader-election-ipam-capm3";
/// The Lease of the Go manager of hosts.
pub const HOSTS_LEASE: &str = "baremetal-operator";

/// The timings of a lease. The renew deadline is shorter than the lease, and a renewal fits into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimings {
    lease: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// Why timings are invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeaseTimingsError {
    /// The leader would stop after others may take over.
    #[error("leader election: the lease duration must be at least one second and longer than the renew deadline")]
    Lease,
    /// There would be no second attempt.
    #[error("leader election: the renew deadline must be longer than 1.2 times the retry period")]
    RenewDeadline,
    /// It would retry without a pause.
    #[error("leader election: the retry period must not be zero")]
    Retry,
}

impl LeaseTimings {
    /// Checks the durations as client-go does.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn new(lease: Duration, renew_deadline: Duration, retry: Duration) -> Result<Self, LeaseTimingsError> {
        // The record has whole seconds, and others measure by the record.
        let whole = Duration::from_secs(lease.as_secs());
        if whole <= renew_deadline {
            return Err(LeaseTimingsError::Lease);
        }
        if retry.is_zero() {
            return Err(LeaseTimingsError::Retry);
        }
        if renew_deadline <= retry.saturating_mul(6) / 5 {
            return Err(LeaseTimingsError::RenewDeadline);
        }
        Ok(Self {
            lease: whole,
            renew_deadline,
            retry,
        })
    }

    /// How long after a renewal a leader sends the next one. The rest of its time is for repetitions.
    fn renewal(&self) -> Duration {
        let latest = self.renew_deadline.saturating_sub(self.retry.saturating_mul(2));
        latest.max(self.retry)
    }

    /// How long a leader may lead without a renewal.
    #[must_use]
    pub const fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }
}

impl Default for LeaseTimings {
    /// The defaults of the Go managers.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
