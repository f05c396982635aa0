//! Leases: of several replicas, one leads.
//!
//! [`Election`] is the rule, a pure state machine; [`LeaderElector`] runs it against an API server; [`Leadership`] is what
//! everybody else holds. A client made by [`ClientFactory::writing_for`](crate::client::ClientFactory::writing_for) asks
//! it before each write.
//!
//! The record and its handling are those of the Go managers' library, so a replica of theirs and one of ours respect
//! each other on one Lease:
//!
//! - Nobody compares clocks. A candidate measures, on its own monotonic clock, how long a record has not changed; the
//!   timestamps in it are for people.
//! - A write carries the resourceVersion of what was read, so of two candidates one wins. This is the one full update
//!   of the project: the record is ours alone, and the object is written back as it was read.
//! - A leader that has not renewed for the renew deadline stops leading, and that deadline lies before the moment when
//!   others may take over.
//! - A clean exit gives the lease up, so the successor need not wait.
//!
//! differs: `lease-deadline-at-write`: the deadline counts from when the renewal was *sent*, is looked up at each write, and
//! so also binds a process that was stopped and goes on later; a leader that sees another name in the record stops at
//! once. There is no jitter: candidates are few, and of two that collide one wins.
//!
//! A role that did not declare the three verbs on a Lease cannot contend:
//!
//! ```compile_fail,E0277
//! # use metal3_runtime::lease::{LeaderElector, LeaseTarget, LeaseTimings};
//! # use metal3_runtime::metrics::Metrics;
//! # use k8s_openapi::api::coordination::v1::Lease;
//! metal3_runtime::role! {
//!     /// Looks, and does not write.
//!     pub struct Looking {
//!         Lease: Get;
//!     }
//! }
//! # fn start(client: kube::Client, place: LeaseTarget, clock: std::sync::Arc<dyn metal3_domain::clock::Clock>) {
//! LeaderElector::new::<Looking>(client, place, LeaseTimings::default(), clock, Metrics::new().lease("l"));
//! # }
//! ```
//!
//! A lease bounds how long two leaders overlap; it cannot exclude it, since a request may be under way for as long as
//! it likes. Correctness rests on the preconditions of the writes. Nor does a monotonic clock count the time a machine
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

/// How leases are timed. The renew deadline is shorter than the lease, and a renewal fits into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimings {
    lease: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// Why durations make no timings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeaseTimingsError {
    /// The leader would stop after others may begin.
    #[error("leader election: the lease duration must be at least one second and longer than the renew deadline")]
    Lease,
    /// There would be no second attempt.
    #[error("leader election: the renew deadline must be longer than 1.2 times the retry period")]
    RenewDeadline,
    /// It would try without a pause.
    #[error("leader election: the retry period must not be zero")]
    Retry,
}

impl LeaseTimings {
    /// Checks the durations as the Go managers' library does.
    ///
    /// # Errors
    /// When they do not fit together.
    pub fn new(lease: Duration, renew_deadline: Duration, retry: Duration) -> Result<Self, LeaseTimingsError> {
        // The record holds whole seconds; others measure by what it says.
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
