//! The state machine, step by step.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::Lease;
use metal3_domain::clock::Monotonic;

use super::super::{Election, LeaseTimings, LeaseTimingsError, Step, record};

const WALL: DateTime<Utc> = DateTime::UNIX_EPOCH;

fn at(seconds: u64) -> Monotonic {
    Monotonic::new(Duration::from_secs(seconds))
}

fn candidate(identity: &str) -> Election {
    Election::new("l".into(), identity.into(), LeaseTimings::default())
}

/// A lease as `holder` writes it.
fn held_by(holder: &str, version: &str, wall: DateTime<Utc>) -> Lease {
    let mut lease = record::first("l", holder, Duration::from_secs(15), wall);
    lease.metadata.resource_version = Some(version.into());
    lease
}

/// A candidate that read this lease at 0 and decided.
fn candidate_behind(lease: Lease) -> Election {
    let mut election = candidate("me");
    election.observed(at(0), Some(lease));
    election.next(at(0), WALL);
    election
}

/// The lease that the step writes.
fn updated(step: Step) -> Box<Lease> {
    match step {
        Step::Update(lease) => lease,
        other => panic!("no update: {other:?}"),
    }
}

/// Waits for a change of the lease.
fn watch(from: &str, seconds: u64) -> Step {
    Step::Watch {
        from: from.to_owned(),
        within: Duration::from_secs(seconds),
    }
}

/// A leader since a renewal sent at 0.
fn leader() -> Election {
    let mut election = candidate("me");
    assert_eq!(election.next(at(0), WALL), Step::Read);
    election.observed(at(0), None);
    let Step::Create(lease) = election.next(at(0), WALL) else {
        panic!("the lease is free");
    };
    election.written(at(0), at(0), *lease);
    election
}

#[test]
fn contradictory_durations_are_rejected() {
    let timings = |lease, renew, retry| {
        let [lease, renew, retry] = [lease, renew, retry].map(Duration::from_millis);
        LeaseTimings::new(lease, renew, retry)
    };
    assert_eq!(timings(15_000, 10_000, 2_000), Ok(LeaseTimings::default()));
    assert_eq!(timings(10_000, 10_000, 2_000), Err(LeaseTimingsError::Lease));
    assert_eq!(
        timings(10_900, 10_500, 2_000),
        Err(LeaseTimingsError::Lease),
        "the record holds 10 s"
    );
    assert_eq!(timings(15_000, 2_400, 2_000), Err(LeaseTimingsError::RenewDeadline));
    assert_eq!(timings(15_000, 10_000, 0), Err(LeaseTimingsError::Retry));
}

#[test]
fn leadership_counts_from_when_the_renewal_was_sent() {
    let mut election = candidate("me");
    election.observed(at(0), None);
    let Step::Create(lease) = election.next(at(0), WALL) else {
        panic!("the lease is free");
    };
    election.written(at(1), at(9), *lease);
    assert_eq!(election.deadline(), Some(at(11)));
}

#[test]
fn a_record_of_another_candidate_is_measured_by_the_own_clock_whatever_its_timestamps() {
    for stamp in [WALL, WALL + TimeDelta::days(1000), WALL - TimeDelta::days(1000)] {
        let mut election = candidate("me");
        election.observed(at(100), Some(held_by("other", "1", stamp)));
        assert_eq!(election.next(at(100), WALL), watch("1", 15));
        election.observed(at(114), Some(held_by("other", "2", stamp)));
        assert_eq!(election.next(at(114), WALL), watch("2", 1));
        assert_eq!(election.next(at(115), WALL), Step::Read);
        election.observed(at(115), Some(held_by("other", "2", stamp)));
        assert!(matches!(election.next(at(115), WALL), Step::Update(_)));
    }
}

#[test]
fn only_a_new_record_counts_as_a_renewal() {
    let mut election = candidate_behind(held_by("other", "1", WALL));
    election.observed(at(16), Some(held_by("other", "2", WALL)));
    assert!(
        matches!(election.next(at(16), WALL), Step::Update(_)),
        "a new resource version alone is no new record"
    );

    let mut election = candidate_behind(held_by("other", "1", WALL));
    election.observed(at(16), Some(held_by("other", "2", WALL + TimeDelta::seconds(1))));
    assert!(
        matches!(election.next(at(16), WALL), Step::Watch { .. }),
        "a renewal is a new record"
    );
}

#[test]
fn failed_reads_do_not_restart_the_lease_duration() {
    let mut election = candidate_behind(held_by("other", "1", WALL));
    assert_eq!(election.next(at(2), WALL), watch("1", 13));
    assert!(!election.failed(at(2)), "the watch");
    assert_eq!(election.next(at(4), WALL), Step::Read);
    assert!(!election.failed(at(12)));
    election.next(at(16), WALL);
    election.observed(at(16), Some(held_by("other", "1", WALL)));
    assert!(matches!(election.next(at(16), WALL), Step::Update(_)));
}

#[test]
fn a_record_without_holder_is_taken_at_once() {
    let mut election = candidate("me");
    election.observed(at(0), Some(held_by("", "7", WALL)));
    let lease = updated(election.next(at(0), WALL));
    assert_eq!(lease.metadata.resource_version.as_deref(), Some("7"));
    assert_eq!(lease.spec.unwrap().lease_transitions, Some(1));
}

#[test]
fn a_record_without_duration_counts_for_the_own_duration() {
    let mut lease = held_by("other", "1", WALL);
    lease.spec.as_mut().unwrap().lease_duration_seconds = Some(-5);
    let mut election = candidate("me");
    election.observed(at(0), Some(lease.clone()));
    assert_eq!(election.next(at(0), WALL), watch("1", 15));
    assert_eq!(election.next(at(14), WALL), watch("1", 1));
    election.next(at(16), WALL);
    election.observed(at(16), Some(lease));
    assert!(matches!(election.next(at(16), WALL), Step::Update(_)));
}

#[test]
fn a_leader_renews_without_reading_and_reads_when_that_fails() {
    let mut election = leader();
    assert_eq!(election.next(at(0), WALL), Step::Wait(Duration::from_secs(6)));
    assert!(matches!(election.next(at(6), WALL), Step::Update(_)));
    assert!(election.failed(at(6)));
    assert_eq!(election.next(at(6), WALL), Step::Read);
}

#[test]
fn two_retry_periods_are_left_after_a_renewal_is_due() {
    for (durations, expected) in [
        ([15, 10, 2], 6),
        ([60, 40, 10], 20),
        ([15, 10, 6], 6),
        ([137, 107, 26], 55),
    ] {
        let [lease, renew, retry] = durations.map(Duration::from_secs);
        let timings = LeaseTimings::new(lease, renew, retry).unwrap();
        assert_eq!(timings.renewal(), Duration::from_secs(expected), "{durations:?}");
    }
}

#[test]
fn deleted_lease_is_created_once_its_holder_cannot_lead_any_more() {
    let mut election = candidate_behind(held_by("other", "1", WALL));
    election.observed(at(3), None);
    assert_eq!(election.next(at(3), WALL), Step::Wait(Duration::from_secs(12)));
    assert_eq!(election.next(at(15), WALL), Step::Read);
    election.observed(at(15), None);
    assert!(matches!(election.next(at(15), WALL), Step::Create(_)));
    let mut election = candidate_behind(held_by("", "1", WALL));
    election.observed(at(3), None);
    assert!(
        matches!(election.next(at(3), WALL), Step::Create(_)),
        "it had no holder"
    );
}

#[test]
fn a_leader_keeps_trying_and_loses_at_its_deadline() {
    let mut election = leader();
    election.next(at(6), WALL);
    election.failed(at(6));
    for now in 6..10 {
        assert_eq!(election.next(at(now), WALL), Step::Read, "at {now}");
        election.failed(at(now));
    }
    assert_eq!(election.next(at(9), WALL), Step::Wait(Duration::from_millis(250)));
    assert_eq!(election.next(at(10), WALL), Step::Lost);
    assert_eq!(election.next(at(11), WALL), Step::Lost);
    assert_eq!(election.deadline(), None);
}

#[test]
fn a_leader_that_reads_another_holder_has_lost() {
    let mut election = leader();
    election.next(at(6), WALL);
    election.failed(at(6));
    election.observed(at(7), Some(held_by("other", "9", WALL)));
    assert_eq!(election.next(at(7), WALL), Step::Lost);
}

#[test]
fn a_write_with_a_lost_response_is_found_by_its_name() {
    let mut election = candidate("me");
    election.observed(at(0), None);
    assert!(matches!(election.next(at(0), WALL), Step::Create(_)));
    election.failed(at(5));
    election.next(at(7), WALL);
    election.observed(at(7), Some(held_by("me", "3", WALL)));
    let lease = updated(election.next(at(7), WALL + TimeDelta::seconds(7)));
    let spec = lease.spec.as_ref().unwrap();
    assert_eq!(spec.lease_transitions, Some(0), "the holder never changed");
    assert_ne!(spec.acquire_time, spec.renew_time, "the renewal is newer");
    election.written(at(7), at(7), *lease);
    assert_eq!(election.deadline(), Some(at(17)));
}

#[test]
fn release_clears_the_own_holder_and_no_other() {
    let mut election = leader();
    let given = election.release(Some(held_by("me", "4", WALL)), WALL).unwrap();
    let spec = given.spec.unwrap();
    assert_eq!(spec.holder_identity.as_deref(), Some(""));
    assert_eq!(
        (spec.lease_duration_seconds, spec.lease_transitions),
        (Some(1), Some(0))
    );
    assert_eq!(given.metadata.resource_version.as_deref(), Some("4"));
    assert_eq!(election.deadline(), None);
    assert_eq!(leader().release(Some(held_by("other", "4", WALL)), WALL), None);
    assert_eq!(leader().release(None, WALL), None);
}

#[test]
fn fields_outside_the_record_survive_a_write() {
    let mut lease = held_by("", "7", WALL);
    lease.metadata.labels = Some([("team".to_owned(), "metal".to_owned())].into());
    lease.spec.as_mut().unwrap().strategy = Some("OldestEmulationVersion".into());
    let mut election = candidate("me");
    election.observed(at(0), Some(lease.clone()));
    let written = updated(election.next(at(0), WALL));
    assert_eq!(written.metadata, lease.metadata);
    assert_eq!(written.spec.unwrap().strategy, lease.spec.unwrap().strategy);
}
