//! The end of `make test`: counts, the slowest ten, and what failed.

use std::fmt;
use std::time::Duration;

use crate::durations::durations;
use crate::kinds::{Generated, Kind};
use crate::output::{Ending, Run};
use crate::record::text_of;

/// The slowest that are named.
const SLOWEST: usize = 10;

/// All results, with what is needed to count them.
pub(super) struct Summary<'a> {
    pub(super) tests: &'a Run,
    /// Whether cargo and the scripts ended without an error.
    pub(super) ended_well: bool,
    pub(super) generated: &'a Generated,
    pub(super) threads: usize,
    pub(super) build: Duration,
    pub(super) testing: Duration,
    pub(super) all: Duration,
}

impl Summary<'_> {
    /// Whether everything passed.
    pub(super) fn is_ok(&self) -> bool {
        self.ended_well
            && self.failures().is_empty()
            && !self.tests.programs.is_empty()
            && !self.tests.scripts.is_empty()
    }

    /// Tests and scripts that failed, and programs that died.
    fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for program in &self.tests.programs {
            let failed = program.tests.iter().filter(|test| test.ending == Ending::Failed);
            failures.extend(failed.map(|test| format!("{}: {}", program.name, test.name)));
            if program.took.is_none() {
                failures.push(format!("{}: it ended without a result", program.name));
            }
        }
        let scripts = self.tests.scripts.iter().filter(|script| !script.passed);
        failures.extend(scripts.map(|script| format!("script {}", script.name)));
        failures
    }

    /// Number of tests of a kind that passed, and their time.
    fn of_kind(&self, kinds: &[Kind]) -> (usize, Duration) {
        let (mut count, mut time) = (0_usize, Duration::ZERO);
        for program in &self.tests.programs {
            let took = durations(program, self.threads);
            for (test, (name, took)) in program.tests.iter().zip(took) {
                if test.ending == Ending::Passed && kinds.contains(&self.generated.kind(name)) {
                    count = count.saturating_add(1);
                    time = time.saturating_add(took);
                }
            }
        }
        (count, time)
    }

    fn with_ending(&self, ending: Ending) -> usize {
        let all = self.tests.programs.iter().flat_map(|program| &program.tests);
        all.filter(|test| test.ending == ending).count()
    }

    /// Tests and scripts, the slowest first.
    fn slowest(&self) -> Vec<(Duration, String)> {
        let mut all: Vec<(Duration, String)> = Vec::new();
        for program in &self.tests.programs {
            let took = durations(program, self.threads).into_iter();
            all.extend(took.map(|(name, took)| (took, format!("{}: {name}", program.name))));
        }
        let scripts = self.tests.scripts.iter();
        all.extend(scripts.map(|script| (script.took, format!("script {}, twice", script.name))));
        all.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        all.truncate(SLOWEST);
        all
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, name: &str, (count, time): (usize, Duration)| {
            writeln!(
                f,
                "  {name:<12} {count:>5} passed, {} of processor threads",
                text_of(time)
            )
        };
        let scripts = &self.tests.scripts;
        let passed = scripts.iter().filter(|script| script.passed).count();
        writeln!(f, "\nsummary")?;
        writeln!(
            f,
            "  tests        {:>5} passed, {} failed, {} ignored, in {} programs",
            self.with_ending(Ending::Passed),
            self.with_ending(Ending::Failed),
            self.with_ending(Ending::Ignored),
            self.tests.programs.len()
        )?;
        row(f, "- sweeps", self.of_kind(&[Kind::Sweep]))?;
        row(f, "- properties", self.of_kind(&[Kind::Property]))?;
        row(f, "- others", self.of_kind(&[Kind::Other]))?;
        let took: Duration = scripts.iter().map(|script| script.took).sum();
        writeln!(
            f,
            "  scripts      {passed:>5} passed, {} failed, each twice, {}",
            scripts.len() - passed,
            text_of(took)
        )?;
        writeln!(
            f,
            "  time         build {}, tests {}, all {}",
            text_of(self.build),
            text_of(self.testing),
            text_of(self.all)
        )?;
        writeln!(f, "slowest ten")?;
        for (took, name) in self.slowest() {
            writeln!(f, "  {:>10}  {name}", text_of(took))?;
        }
        let failures = self.failures();
        if !failures.is_empty() {
            writeln!(f, "failed")?;
        }
        for failure in &failures {
            writeln!(f, "  {failure}")?;
        }
        match (self.is_ok(), failures.is_empty()) {
            (true, _) => write!(f, "make test: ok in {}", text_of(self.all)),
            (false, true) => write!(
                f,
                "make test: FAILED: cargo or the scripts ended with an error; see above"
            ),
            (false, false) => write!(f, "make test: FAILED: {} of the above", failures.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::recorded;

    fn summary<'a>(tests: &'a Run, generated: &'a Generated, ended_well: bool) -> Summary<'a> {
        Summary {
            tests,
            ended_well,
            generated,
            threads: 2,
            build: Duration::from_secs(60),
            testing: Duration::from_secs(300),
            all: Duration::from_secs(400),
        }
    }

    #[test]
    fn failed_tests_and_scripts_are_named_and_fail_the_run() {
        let (run, generated) = (recorded(), Generated::default());
        let summary = summary(&run, &generated, true);
        assert!(!summary.is_ok());
        let text = summary.to_string();
        for line in [
            "  tests           19 passed, 2 failed, 0 ignored, in 6 programs\n",
            "  - sweeps         6 passed",
            "  scripts          1 passed, 1 failed, each twice",
            "failed\n  metal3_grants src/lib.rs: tests::host_controllers_can_delete_neither_secrets_nor_hosts\n",
            "  script 08-broken-host\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(text.ends_with("make test: FAILED: 3 of the above"), "{text}");
        let slowest = text
            .split("slowest ten\n")
            .nth(1)
            .unwrap()
            .lines()
            .take_while(|line| line.starts_with("   "));
        assert_eq!(slowest.count(), SLOWEST);
    }

    #[test]
    fn run_without_failures_passes_only_if_everything_ended_well() {
        let (mut run, generated) = (recorded(), Generated::default());
        for program in &mut run.programs {
            program.tests.retain(|test| test.ending == Ending::Passed);
        }
        run.scripts.retain(|script| script.passed);
        assert!(summary(&run, &generated, true).is_ok());
        assert!(
            summary(&run, &generated, true)
                .to_string()
                .ends_with("make test: ok in 6 min 40 s")
        );
        let failed = summary(&run, &generated, false);
        assert!(!failed.is_ok() && failed.to_string().contains("ended with an error"));
        run.programs[0].took = None;
        assert!(
            summary(&run, &generated, true)
                .to_string()
                .contains("run_tests src/main.rs: it ended without a result")
        );
        run.programs.clear();
        assert!(!summary(&run, &generated, true).is_ok());
    }
}
