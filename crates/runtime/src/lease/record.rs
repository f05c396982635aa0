//! Reads and writes the record of a Lease. Invalid values are no error: a duration that cannot be read is absent, and
//! the candidate's own one applies.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

/// The holder; `None` when the name is empty.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    Some(holder).filter(|holder| !holder.is_empty())
}

/// How long the holder may not renew before others take over.
pub(super) fn duration(lease: &Lease) -> Option<Duration> {
    let seconds = lease.spec.as_ref()?.lease_duration_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The record that takes, renews or releases a lease; all else of `lease` stays as it was read.
pub(super) fn written(mut lease: Lease, holder: &str, lasting: Duration, now: DateTime<Utc>) -> Lease {
    let before = lease.spec.take().unwrap_or_default();
    let stamp = stamp(now);
    let same = before.holder_identity.as_deref() == Some(holder);
    let transitions = before.lease_transitions.unwrap_or(0);
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(i32::try_from(lasting.as_secs()).unwrap_or(i32::MAX)),
        acquire_time: before.acquire_time.clone().filter(|_| same).or_else(|| stamp.clone()),
        renew_time: stamp,
        // A release is no transition; a takeover is one.
        lease_transitions: Some(if same || holder.is_empty() {
            transitions
        } else {
            transitions.saturating_add(1)
        }),
        ..before
    });
    lease
}

/// The first record of a lease.
pub(super) fn first(name: &str, holder: &str, lasting: Duration, now: DateTime<Utc>) -> Lease {
    let mut lease = Lease::default();
    lease.metadata.name = Some(name.to_owned());
    let mut lease = written(lease, holder, lasting, now);
    if let Some(spec) = &mut lease.spec {
        spec.lease_transitions = Some(0);
    }
    lease
}

fn stamp(now: DateTime<Utc>) -> Option<MicroTime> {
    Timestamp::from_microsecond(now.timestamp_micros()).ok().map(MicroTime)
}
