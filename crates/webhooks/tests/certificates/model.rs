//! Years of replicas that look when they like, and an API server that hears of authorities late: nobody is ever served a
//! certificate that is not trusted.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use metal3_sim_faults::Random;
use metal3_webhooks::certificates::ledger::{AUTHORITY_LIFE, Authority, Ledger, SERVING_LIFE, Serving, Span};
use metal3_webhooks::certificates::plan::{Step, due};

/// Shorter than the time everybody has to notice, as the shell's looks are.
const TICK: TimeDelta = TimeDelta::minutes(25);
const TICKS: usize = 3 * 365 * 24 * 60 / 25;

struct World {
    now: DateTime<Utc>,
    ledger: Option<Ledger>,
    /// In the configurations, and what the API server has read of them.
    told: BTreeSet<String>,
    heard: BTreeSet<String>,
    served: Vec<Option<Serving>>,
    steps: Vec<Step>,
}

impl World {
    fn step(&mut self, step: &Step) {
        let authority = |now: DateTime<Utc>| Authority {
            name: now.timestamp().to_string(),
            span: Span::new(now, AUTHORITY_LIFE, None),
        };
        let serving = |authority: &Authority, now| Serving {
            signed_by: authority.name.clone(),
            span: Span::new(now, SERVING_LIFE, Some(authority.span.until)),
            names: Vec::new(),
        };
        match (step, &mut self.ledger) {
            (Step::Begin, ledger) => {
                let first = authority(self.now);
                *ledger = Some(Ledger {
                    serving: serving(&first, self.now),
                    authorities: vec![first],
                });
            }
            (Step::Announce, Some(ledger)) => ledger.authorities.push(authority(self.now)),
            (Step::Sign(name), Some(ledger)) => {
                let signer = ledger
                    .authorities
                    .iter()
                    .find(|authority| authority.name == *name)
                    .unwrap();
                ledger.serving = serving(signer, self.now);
            }
            (Step::Retire(names), Some(ledger)) => {
                ledger.authorities.retain(|authority| !names.contains(&authority.name));
            }
            (_, None) => unreachable!("nothing but a beginning is due before it"),
        }
        self.steps.push(step.clone());
    }

    /// A replica looks, as the keeper does. Telling fails where the API server refuses our patches.
    fn look(&mut self, replica: usize, refused: bool) {
        loop {
            let wanted = self.ledger.as_ref().map(|ledger| {
                ledger
                    .authorities
                    .iter()
                    .map(|authority| authority.name.clone())
                    .collect::<BTreeSet<_>>()
            });
            let told = wanted.as_ref().is_none_or(|wanted| *wanted == self.told);
            match due(self.ledger.as_ref(), &[], told, self.now) {
                Some(step) => self.step(&step),
                None if told => break,
                None if refused => return,
                None => self.told = wanted.unwrap_or_default(),
            }
        }
        self.served[replica] = self.ledger.as_ref().map(|ledger| ledger.serving.clone());
    }

    fn check(&self, seed: u64) {
        for serving in self.served.iter().flatten() {
            let trusted = self.heard.contains(&serving.signed_by);
            assert!(
                trusted && !serving.span.is_over(self.now),
                "seed {seed} at {}: {serving:?}",
                self.now
            );
        }
    }
}

/// Runs a world to its end. `refusals`: whether the API server now and then refuses for days.
fn run(seed: u64, replicas: usize, refusals: bool) -> World {
    let mut random = Random::seeded(seed);
    let mut world = World {
        now: DateTime::UNIX_EPOCH,
        ledger: None,
        told: BTreeSet::new(),
        heard: BTreeSet::new(),
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
            // Twice in a row would be longer than everybody is given to notice.
            *skipped = !*skipped && random.below(2) == 0;
            if !*skipped {
                world.look(replica, refused_for > 0);
            }
        }
        // The API server follows its configurations within a tick.
        world.heard.clone_from(&world.told);
        world.check(seed);
        world.now += TICK;
    }
    world
}

#[test]
fn in_three_years_every_replica_serves_what_is_trusted() {
    for seed in 0..3 {
        let world = run(seed, 2, false);
        let count = |wanted: fn(&Step) -> bool| world.steps.iter().filter(|step| wanted(step)).count();
        assert_eq!(count(|step| matches!(step, Step::Begin)), 1, "seed {seed}");
        assert_eq!(count(|step| matches!(step, Step::Announce)), 4, "seed {seed}");
        assert_eq!(count(|step| matches!(step, Step::Retire(_))), 4, "seed {seed}");
        assert!(count(|step| matches!(step, Step::Sign(_))) <= 24, "seed {seed}");
    }
}

#[test]
fn an_authority_that_could_not_be_told_signs_nothing() {
    for seed in 0..6 {
        run(seed, 3, true);
    }
}
