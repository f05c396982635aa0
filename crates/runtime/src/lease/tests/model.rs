//! Random histories: two candidates, requests that take effect late or lose their answers, paused candidates.
//! Two candidates never lead at once.

use std::time::Duration;

use chrono::DateTime;
use k8s_openapi::api::coordination::v1::Lease;
use metal3_domain::clock::Monotonic;
use proptest::prelude::*;

use super::super::{Election, LeaseTimings, Step};

/// A server that keeps one lease, with versions.
#[derive(Debug, Default)]
struct Server {
    lease: Option<Lease>,
    version: u64,
}

impl Server {
    fn store(&mut self, lease: &Lease, create: bool) -> Option<Lease> {
        let current = self.lease.as_ref().map(|lease| &lease.metadata.resource_version);
        let accepted = match (create, current) {
            (true, current) => current.is_none(),
            (false, Some(current)) => *current == lease.metadata.resource_version,
            (false, None) => false,
        };
        if !accepted {
            return None;
        }
        self.version += 1;
        let mut stored = lease.clone();
        stored.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(stored.clone());
        Some(stored)
    }
}

#[derive(Debug)]
enum Call {
    Look,
    Put { lease: Box<Lease>, create: bool },
}

#[derive(Debug)]
enum Answer {
    Seen(Option<Box<Lease>>),
    Stored(Box<Lease>),
    Refused,
}

#[derive(Debug)]
enum Flight {
    Sent(Call),
    Answered(Answer),
}

#[derive(Debug)]
struct Candidate {
    election: Election,
    /// How far its clock is ahead of real time.
    ahead: Duration,
    flight: Option<(Monotonic, Flight)>,
    lost: bool,
}

impl Candidate {
    fn new(identity: &str, ahead: u64) -> Self {
        Self {
            election: Election::new("l".into(), identity.into(), LeaseTimings::default()),
            ahead: Duration::from_secs(ahead),
            flight: None,
            lost: false,
        }
    }

    fn leads(&self, real_time: Monotonic) -> bool {
        let now = real_time.after(self.ahead);
        self.election.deadline().is_some_and(|deadline| now < deadline)
    }

    /// One step: the request is sent, takes effect, or its response arrives; `lose` drops the response.
    fn step(&mut self, real_time: Monotonic, server: &mut Server, lose: bool) {
        let now = real_time.after(self.ahead);
        let wall = DateTime::UNIX_EPOCH + real_time.since_start();
        match self.flight.take() {
            None if self.lost => {}
            None => {
                let call = match self.election.next(now, wall) {
                    Step::Read => Call::Look,
                    Step::Create(lease) => Call::Put { lease, create: true },
                    Step::Update(lease) => Call::Put { lease, create: false },
                    Step::Wait(_) => return,
                    Step::Watch { from, .. } => {
                        let version = server
                            .lease
                            .as_ref()
                            .map(|lease| lease.metadata.resource_version.clone());
                        if version == Some(Some(from)) {
                            return;
                        }
                        Call::Look
                    }
                    Step::Lost => {
                        self.lost = true;
                        return;
                    }
                };
                self.flight = Some((now, Flight::Sent(call)));
            }
            Some((sent, Flight::Sent(call))) => {
                let answer = match call {
                    Call::Look => Answer::Seen(server.lease.clone().map(Box::new)),
                    Call::Put { lease, create } => server
                        .store(&lease, create)
                        .map_or(Answer::Refused, |lease| Answer::Stored(Box::new(lease))),
                };
                self.flight = Some((sent, Flight::Answered(answer)));
            }
            Some((sent, Flight::Answered(answer))) => match answer {
                Answer::Seen(lease) if !lose => self.election.observed(now, lease.map(|lease| *lease)),
                Answer::Stored(lease) if !lose => self.election.written(sent, now, *lease),
                _ => {
                    self.election.failed(now);
                }
            },
        }
    }
}

/// The candidate, the time since the previous step, and whether an arriving response is lost.
fn steps() -> impl Strategy<Value = Vec<(bool, u64, bool)>> {
    let pause = prop_oneof![8 => 0..400_u64, 3 => 400..3_000_u64, 1 => 3_000..20_000_u64];
    prop::collection::vec((any::<bool>(), pause, prop::bool::weighted(0.1)), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_two_candidates_lead_at_once(steps in steps()) {
        let mut server = Server::default();
        let mut candidates = [Candidate::new("a", 0), Candidate::new("b", 1_000_000)];
        let mut real_time = Monotonic::default();
        for (second, pause, lose) in steps {
            // Time advances in small steps, so that the property is checked between any two actions.
            for _ in 0..10 {
                real_time = real_time.after(Duration::from_millis(pause) / 10);
                prop_assert!(!candidates.iter().all(|candidate| candidate.leads(real_time)));
            }
            candidates[usize::from(second)].step(real_time, &mut server, lose);
            prop_assert!(!candidates.iter().all(|candidate| candidate.leads(real_time)));
        }
    }
}

#[test]
fn the_model_lets_leadership_change_hands() {
    // The property above also holds when no candidate ever leads; this test excludes that.
    let mut server = Server::default();
    let [mut a, mut b] = [Candidate::new("a", 0), Candidate::new("b", 50)];
    let mut real_time = Monotonic::default();
    for _ in 0..6 {
        a.step(real_time, &mut server, false);
    }
    assert!(a.leads(real_time));
    for _ in 0..200 {
        real_time = real_time.after(Duration::from_millis(200));
        b.step(real_time, &mut server, false);
    }
    assert!(b.leads(real_time) && !a.leads(real_time));
}
