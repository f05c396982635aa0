//! The four properties.

use std::sync::Arc;
use std::time::Duration;

use metal3_sim_cluster::Cluster;

use crate::blow::Blow;
use crate::case::{Case, Ended, Setting};
use crate::report::Report;
use crate::world::World;

/// Schedules of two programs that are tried unless the test asks for more.
const INTERLEAVINGS: u64 = 20;
/// Of a failure, so many lines are shown.
const LINES: usize = 60;
const A_DAY: Duration = Duration::from_hours(24);

/// A world before its trial.
#[derive(Debug)]
pub struct Trial<W> {
    world: Arc<W>,
    prepared: Cluster,
    blows: Vec<Blow>,
    interleavings: u64,
    every: usize,
}

/// Holds a world to the four properties, and prints the report.
///
/// # Panics
/// When the world breaks one of them, with everything that was found.
pub async fn prove<W: World>(world: W) -> Report {
    Trial::of(world).run().await
}

impl<W: World> Trial<W> {
    /// The trial of a world.
    #[must_use]
    pub fn of(world: W) -> Self {
        Self {
            prepared: Case::prepare(&world),
            world: Arc::new(world),
            blows: Blow::ALL.to_vec(),
            interleavings: INTERLEAVINGS,
            every: 1,
        }
    }

    /// Strikes with these instead of [all of them](Blow::ALL).
    #[must_use]
    pub fn blows(mut self, blows: &[Blow]) -> Self {
        self.blows = blows.to_vec();
        self
    }

    /// Tries so many schedules of two programs. Each is a seed, from 0 on.
    #[must_use]
    pub fn interleavings(mut self, seeds: u64) -> Self {
        self.interleavings = seeds;
        self
    }

    /// Runs only every so-manieth case of the crash property. A number without common divisor with that of the blows
    /// leaves out no blow; one above that of the blows leaves out writes.
    #[must_use]
    pub fn every(mut self, number: usize) -> Self {
        self.every = number.max(1);
        self
    }

    /// Runs it, and prints the report.
    ///
    /// # Panics
    /// When the world breaks a property, with everything that was found.
    #[expect(clippy::print_stdout, reason = "the figures are for whoever reads the test's output")]
    pub async fn run(self) -> Report {
        let calm = self.calm().await;
        let (cases, struck) = self.crash(&calm).await;
        let interleaved = self.interleave(&calm).await;
        let report = Report {
            name: self.world.name(),
            blows: self.blows.len(),
            cases,
            every: self.every,
            interleavings: usize::try_from(self.interleavings).unwrap_or(usize::MAX),
            checks: [calm.checks, struck, interleaved].iter().sum(),
            effects: calm.effects,
        };
        println!("{report}");
        report
    }

    /// Strikes each write of the calm run with each blow. Gives the cases and the checks.
    async fn crash(&self, calm: &Ended) -> (usize, usize) {
        let (mut cases, mut checks) = (0_usize, 0_usize);
        let expected = self.world.essence(&calm.state);
        let all = (1..).zip(&calm.effects);
        let all = all.flat_map(|(at, effect)| self.blows.iter().map(move |blow| (at, effect, *blow)));
        for (at, effect, blow) in all.step_by(self.every) {
            let setting = Setting {
                blow: Some((at, blow)),
                interleaved: None,
                most: most(calm),
            };
            let mut ended = Case::new(&self.world, &self.prepared, setting).play().await;
            if !ended.struck {
                let why = "the write was never made: the same world must give the same runs";
                ended.wrong.push(why.to_owned());
            }
            let essence = self.world.essence(&ended.state);
            if essence != expected {
                ended
                    .wrong
                    .push(format!("ends as {essence:#}\ninstead of {expected:#}"));
            }
            accept(&format!("write {at} ({effect}) struck by {blow:?}"), &ended);
            cases = cases.saturating_add(1);
            checks = checks.saturating_add(ended.checks);
        }
        (cases, checks)
    }

    /// Runs two programs at once, by each seed. Gives the checks.
    async fn interleave(&self, calm: &Ended) -> usize {
        let mut checks = 0_usize;
        for seed in 0..self.interleavings {
            let setting = Setting {
                blow: None,
                interleaved: Some(seed),
                most: most(calm),
            };
            let ended = Case::new(&self.world, &self.prepared, setting).play().await;
            accept(&format!("two programs interleaved by seed {seed}"), &ended);
            checks = checks.saturating_add(ended.checks);
        }
        checks
    }

    /// The run without faults, and what must follow it: nothing.
    async fn calm(&self) -> Ended {
        let mut case = Case::new(&self.world, &self.prepared, Setting::calm());
        let mut ended = case.play().await;
        accept("the run without faults", &ended);
        let made = ended.effects.len();
        for (what, restart, time) in [
            ("left alone for a day", false, A_DAY),
            ("started again on a finished state", true, Duration::from_hours(1)),
        ] {
            if restart {
                case.kill().await;
                case.start();
            }
            if let Err(why) = case.pass(time).await {
                ended.wrong.push(why);
            }
            let effects = crate::tap::open(&case.book).effects.clone();
            ended.wrong.extend(effects.into_iter().skip(made));
            accept(what, &ended);
        }
        ended
    }
}

/// Losing races costs writes, but not this many times those of a calm run.
fn most(calm: &Ended) -> usize {
    calm.effects.len().saturating_mul(20).saturating_add(100)
}

#[expect(clippy::panic, reason = "a trial fails by panicking")]
fn accept(what: &str, ended: &Ended) {
    if !ended.wrong.is_empty() {
        let shown = |lines: &[String]| lines.iter().take(LINES).cloned().collect::<Vec<_>>().join("\n  ");
        panic!(
            "{what}:\n  {}\nafter the writes:\n  {}",
            shown(&ended.wrong),
            shown(&ended.effects)
        );
    }
}
