//! The four properties.

use std::sync::Arc;
use std::time::Duration;

use metal3_sim_cluster::Cluster;

use crate::env::TestEnv;
use crate::fault::WriteFault;
use crate::report::Report;
use crate::run::{Outcome, RunOptions, TestRun};

/// Default number of interleavings of two programs.
const INTERLEAVINGS: u64 = 20;
/// Number of lines shown of a failure.
const LINES: usize = 60;
const A_DAY: Duration = Duration::from_hours(24);

/// A crash sweep before it runs.
pub struct CrashSweep<W> {
    env: Arc<W>,
    prepared: Cluster,
    faults: Vec<WriteFault>,
    interleavings: u64,
    every: usize,
}

/// Checks the four properties of a test environment and prints the report.
///
/// # Panics
/// When a property is violated, with all violations.
pub async fn prove<W: TestEnv>(env: W) -> Report {
    CrashSweep::of(env).run().await
}

impl<W: TestEnv> CrashSweep<W> {
    /// A sweep with all faults and the default number of interleavings.
    #[must_use]
    pub fn of(env: W) -> Self {
        Self {
            prepared: TestRun::prepare(&env),
            env: Arc::new(env),
            faults: WriteFault::ALL.to_vec(),
            interleavings: INTERLEAVINGS,
            every: 1,
        }
    }

    /// Injects these faults instead of [all](WriteFault::ALL).
    #[must_use]
    pub fn faults(mut self, faults: &[WriteFault]) -> Self {
        self.faults = faults.to_vec();
        self
    }

    /// Number of interleavings of two programs. Each is a seed, from 0 on.
    #[must_use]
    pub fn interleavings(mut self, seeds: u64) -> Self {
        self.interleavings = seeds;
        self
    }

    /// Runs only every `number`-th case of the crash property. A number coprime to the number of faults covers all
    /// faults; one above it skips writes.
    #[must_use]
    pub fn every(mut self, number: usize) -> Self {
        self.every = number.max(1);
        self
    }

    /// Runs the sweep and prints the report.
    ///
    /// # Panics
    /// When a property is violated, with all violations.
    #[expect(clippy::print_stdout, reason = "the figures are part of the test output")]
    pub async fn run(self) -> Report {
        let fault_free = self.fault_free().await;
        let (cases, injected) = self.crash(&fault_free).await;
        let interleaved = self.interleave(&fault_free).await;
        let report = Report {
            name: self.env.name(),
            faults: self.faults.len(),
            cases,
            every: self.every,
            interleavings: usize::try_from(self.interleavings).unwrap_or(usize::MAX),
            checks: [fault_free.checks, injected, interleaved].iter().sum(),
            effects: fault_free.effects,
        };
        println!("{report}");
        report
    }

    /// Injects each fault into each write of the fault-free run. Returns the numbers of cases and of checks.
    async fn crash(&self, fault_free: &Outcome) -> (usize, usize) {
        let (mut cases, mut checks) = (0_usize, 0_usize);
        let expected = self.env.comparable_state(&fault_free.state);
        let all = (1..).zip(&fault_free.effects);
        let all = all.flat_map(|(at, effect)| self.faults.iter().map(move |fault| (at, effect, *fault)));
        for (at, effect, fault) in all.step_by(self.every) {
            let options = RunOptions {
                fault: Some((at, fault)),
                interleaved: None,
                max_writes: max_writes(fault_free),
            };
            let mut ended = TestRun::new(&self.env, &self.prepared, options).run().await;
            if !ended.injected {
                let why = "the write never occurred: the same environment must give the same runs";
                ended.errors.push(why.to_owned());
            }
            let comparable_state = self.env.comparable_state(&ended.state);
            if comparable_state != expected {
                ended
                    .errors
                    .push(format!("ends as {comparable_state:#}\ninstead of {expected:#}"));
            }
            assert_passed(&format!("write {at} ({effect}) with fault {fault:?}"), &ended);
            cases = cases.saturating_add(1);
            checks = checks.saturating_add(ended.checks);
        }
        (cases, checks)
    }

    /// Runs two programs at once, for each seed. Returns the number of checks.
    async fn interleave(&self, fault_free: &Outcome) -> usize {
        let mut checks = 0_usize;
        for seed in 0..self.interleavings {
            let options = RunOptions {
                fault: None,
                interleaved: Some(seed),
                max_writes: max_writes(fault_free),
            };
            let ended = TestRun::new(&self.env, &self.prepared, options).run().await;
            assert_passed(&format!("two programs interleaved by seed {seed}"), &ended);
            checks = checks.saturating_add(ended.checks);
        }
        checks
    }

    /// The fault-free run, after which neither a day nor a restart may cause writes.
    async fn fault_free(&self) -> Outcome {
        let mut run = TestRun::new(&self.env, &self.prepared, RunOptions::fault_free());
        let mut ended = run.run().await;
        assert_passed("the run without faults", &ended);
        let made = ended.effects.len();
        for (what, restart, time) in [
            ("idle for a day", false, A_DAY),
            ("started again on a finished state", true, Duration::from_hours(1)),
        ] {
            if restart {
                run.kill().await;
                run.start();
            }
            if let Err(why) = run.advance(time).await {
                ended.errors.push(why);
            }
            let effects = run.log.lock().effects.clone();
            ended.errors.extend(effects.into_iter().skip(made));
            assert_passed(what, &ended);
        }
        ended
    }
}

/// Lost races cause extra writes, but fewer than this.
fn max_writes(fault_free: &Outcome) -> usize {
    fault_free.effects.len().saturating_mul(20).saturating_add(100)
}

#[expect(clippy::panic, reason = "a test fails by panicking")]
fn assert_passed(what: &str, ended: &Outcome) {
    if !ended.errors.is_empty() {
        let shown = |lines: &[String]| lines.iter().take(LINES).cloned().collect::<Vec<_>>().join("\n  ");
        panic!(
            "{what}:\n  {}\nafter the writes:\n  {}",
            shown(&ended.errors),
            shown(&ended.effects)
        );
    }
}
