//! A model of replicas that reconcile at random times, and an API server that reads bundles late: every served
//! certificate is trusted.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use metal3_sim_faults::Random;
use metal3_webhooks::certificates::plan::{Step, next_step};
use metal3_webhooks::certificates::state::{
    AUTHORITY_LIFE, Authority, CertificateState, SERVING_LIFE, Serving, Validity,
};

/// Shorter than the propagation time, as the interval of reconciles.
const TICK: TimeDelta = TimeDelta::minutes(25);
const TICKS: usize = 3 * 365 * 24 * 60 / 25;

struct TestEnv {
    now: DateTime<Utc>,
    state: Option<CertificateState>,
    /// The authorities in the configurations, and those that the API server has read.
    injected: BTreeSet<String>,
    read: BTreeSet<String>,
    served: Vec<Option<Serving>>,
    steps: Vec<Step>,
}

impl TestEnv {
    fn step(&mut self, step: &Step) {
        let authority = |now: DateTime<Utc>| Authority {
            name: now.timestamp().to_string(),
            span: Validity::new(now, AUTHORITY_LIFE, None),
        };
        let serving = |authority: &Authority, now| Serving {
            signed_by: authority.name.clone(),
            span: Validity::new(now, SERVING_LIFE, Some(authority.span.until)),
            names: Vec::new(),
        };
        match (step, &mut self.state) {
            (Step::Begin, state) => {
                let first = authority(self.now);
                *state = Some(CertificateState {
                    serving: serving(&first, self.now),
                    authorities: vec![first],
                });
            }
            (Step::Announce, Some(state)) => state.authorities.push(authority(self.now)),
            (Step::Sign(name), Some(state)) => {
                let signer = state
                    .authorities
                    .iter()
                    .find(|authority| authority.name == *name)
                    .unwrap();
                state.serving = serving(signer, self.now);
            }
            (Step::Retire(names), Some(state)) => {
                state.authorities.retain(|authority| !names.contains(&authority.name));
            }
            (_, None) => unreachable!("the first step is `Begin`"),
        }
        self.steps.push(step.clone());
    }

    /// A replica reconciles. The injection fails while the API server rejects patches.
    fn reconcile(&mut self, replica: usize, refused: bool) {
        loop {
            let wanted = self.state.as_ref().map(|state| {
                state
                    .authorities
                    .iter()
                    .map(|authority| authority.name.clone())
                    .collect::<BTreeSet<_>>()
            });
            let up_to_date = wanted.as_ref().is_none_or(|wanted| *wanted == self.injected);
            match next_step(self.state.as_ref(), &[], up_to_date, self.now) {
                Some(step) => self.step(&step),
                None if up_to_date => break,
                None if refused => return,
                None => self.injected = wanted.unwrap_or_default(),
            }
        }
        self.served[replica] = self.state.as_ref().map(|state| state.serving.clone());
    }

    fn check(&self, seed: u64) {
        for serving in self.served.iter().flatten() {
            let trusted = self.read.contains(&serving.signed_by);
            assert!(
                trusted && !serving.span.is_expired(self.now),
                "seed {seed} at {}: {serving:?}",
                self.now
            );
        }
    }
}

/// Runs the model. `refusals`: whether the API server sometimes rejects patches for days.
fn run(seed: u64, replicas: usize, refusals: bool) -> TestEnv {
    let mut random = Random::seeded(seed);
    let mut env = TestEnv {
        now: DateTime::UNIX_EPOCH,
        state: None,
        injected: BTreeSet::new(),
        read: BTreeSet::new(),
        served: vec![None; replicas],
        steps: Vec::new(),
    };
    let mut refused_for = 0;
    let mut skipped = vec![false; replicas];
    for _ in 0..TICKS {
        if refusals && refused_for == 0 && random.below(2000) == 0 {
            refused_for = random.below(600);
        }
        refused_for = u64::saturating_sub(refused_for, 1);
        for (replica, skipped) in skipped.iter_mut().enumerate() {
            // Skipping twice in a row would exceed the propagation time.
            *skipped = !*skipped && random.below(2) == 0;
            if !*skipped {
                env.reconcile(replica, refused_for > 0);
            }
        }
        // The API server reads its configurations within a tick.
        env.read.clone_from(&env.injected);
        env.check(seed);
        env.now += TICK;
    }
    env
}

#[test]
fn in_three_years_every_replica_serves_a_trusted_certificate() {
    for seed in 0..3 {
        let env = run(seed, 2, false);
        let count = |wanted: fn(&Step) -> bool| env.steps.iter().filter(|step| wanted(step)).count();
        assert_eq!(count(|step| matches!(step, Step::Begin)), 1, "seed {seed}");
        assert_eq!(count(|step| matches!(step, Step::Announce)), 4, "seed {seed}");
        assert_eq!(count(|step| matches!(step, Step::Retire(_))), 4, "seed {seed}");
        assert!(count(|step| matches!(step, Step::Sign(_))) <= 24, "seed {seed}");
    }
}

#[test]
fn an_authority_that_could_not_be_injected_signs_nothing() {
    for seed in 0..6 {
        run(seed, 3, true);
    }
}
