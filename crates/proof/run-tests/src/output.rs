//! What the lines of `cargo test` and of the scripts mean. Pure: lines and their times in, results out.

use std::time::Duration;

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Passed,
    Failed,
    Ignored,
}

/// A test that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) ending: Ending,
    /// When.
    pub(super) at: Duration,
}

/// A test program: one of a target, or the doc tests of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) began: Duration,
    /// In the order in which they ended.
    pub(super) tests: Vec<Test>,
    /// How long it took, if it printed its result.
    pub(super) took: Option<Duration>,
}

/// A script of `e2e/scenarios`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) name: String,
    pub(super) passed: bool,
    pub(super) took: Duration,
}

/// All results so far.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) programs: Vec<Program>,
    pub(super) scripts: Vec<Script>,
}

/// What a line reports, beyond the result of a test.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event<'a> {
    /// The result of a program.
    ProgramEnded(&'a Program),
}

impl Run {
    /// Reads a line that was printed at this time.
    pub(super) fn take(&mut self, at: Duration, line: &str) -> Option<Event<'_>> {
        if let Some(name) = program(line) {
            self.programs.push(Program {
                name,
                began: at,
                ..Program::default()
            });
        } else if let Some((name, ending)) = test(line) {
            let program = self.programs.last_mut()?;
            program.tests.push(Test {
                name: name.to_owned(),
                ending,
                at,
            });
        } else if line.starts_with("test result: ") {
            let program = self.programs.last_mut()?;
            program.took = Some(at.saturating_sub(program.began));
            return Some(Event::ProgramEnded(program));
        } else {
            self.scripts.extend(script(line));
        }
        None
    }
}

/// Whether a line is of interest only if nothing else is printed: of a test that passed, and around it.
pub(super) fn is_dull(line: &str) -> bool {
    let passed = test(line).is_some_and(|(_, ending)| ending != Ending::Failed);
    passed
        || line.is_empty()
        || line.starts_with("running ")
        || line.starts_with("test result: ok")
        || program(line).is_some()
}

/// The program that starts: `Running unittests src/lib.rs (…/name-0123456789abcdef)`, or `Doc-tests name`.
fn program(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(package) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{package} doc tests"));
    }
    let (target, file) = line.strip_prefix("Running ")?.strip_suffix(')')?.split_once(" (")?;
    let file = file.rsplit('/').next()?;
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    Some(format!("{name} {}", target.trim_start_matches("unittests ")))
}

/// The test that ended: `test path::name ... ok`.
fn test(line: &str) -> Option<(&str, Ending)> {
    let (name, ending) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let ending = match ending {
        "ok" => Ending::Passed,
        "FAILED" => Ending::Failed,
        ending if ending.starts_with("ignored") => Ending::Ignored,
        _ => return None,
    };
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    Some((name, ending))
}

/// The script that ended: `07-pools seed 1: ok: …, 3.0 s`, or `07-pools seed 1: FAILED after 3.0 s`.
fn script(line: &str) -> Option<Script> {
    let (name, rest) = line.split_once(" seed ")?;
    let (_, ending) = rest.split_once(": ")?;
    let passed = ending.starts_with("ok: ");
    if name.contains(' ') || !(passed || ending.starts_with("FAILED after ")) {
        return None;
    }
    let seconds: f64 = ending.strip_suffix(" s")?.rsplit(' ').next()?.parse().ok()?;
    Some(Script {
        name: name.to_owned(),
        passed,
        took: Duration::try_from_secs_f64(seconds).ok()?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The output of a run with two failures, shortened.
    const RECORDED: &str = include_str!("../recorded/cargo-test.txt");

    /// Reads the recorded output, one line each 10 ms.
    pub(crate) fn recorded() -> Run {
        let mut run = Run::default();
        for (number, line) in (0..).zip(RECORDED.lines()) {
            run.take(Duration::from_millis(10 * number), line);
        }
        run
    }

    #[test]
    fn programs_tests_and_scripts_of_a_recorded_output_are_found() {
        let run = recorded();
        let programs: Vec<_> = run
            .programs
            .iter()
            .map(|program| (program.name.as_str(), program.tests.len(), program.took.is_some()))
            .collect();
        assert_eq!(
            programs,
            [
                ("run_tests src/main.rs", 0, true),
                ("metal3_grants src/lib.rs", 3, true),
                ("metal3_harness src/lib.rs", 3, true),
                ("demo tests/demo/main.rs", 8, true),
                ("life tests/life/main.rs", 3, true),
                ("metal3_domain doc tests", 4, true),
            ]
        );
        let all = run.programs.iter().flat_map(|program| &program.tests);
        let failed: Vec<_> = all
            .filter(|test| test.ending == Ending::Failed)
            .map(|test| test.name.as_str())
            .collect();
        assert_eq!(
            failed,
            [
                "tests::host_controllers_can_delete_neither_secrets_nor_hosts",
                "stories::generated_stories_keep_every_invariant_and_reach_their_goal"
            ]
        );
        // The mark of a test that must panic is not a part of its name.
        assert!(
            run.programs
                .iter()
                .flat_map(|program| &program.tests)
                .all(|test| !test.name.contains(" - should"))
        );
        let scripts: Vec<_> = run
            .scripts
            .iter()
            .map(|script| (script.name.as_str(), script.passed))
            .collect();
        assert_eq!(scripts, [("07-pools", true), ("08-broken-host", false)]);
        assert_eq!(run.scripts[0].took, Duration::from_secs(3));
    }

    #[test]
    fn program_that_dies_has_no_result() {
        let mut run = Run::default();
        for line in [
            "     Running unittests src/lib.rs (x/a-0)",
            "running 2 tests",
            "error: test failed",
            "   Doc-tests b",
        ] {
            assert_eq!(run.take(Duration::ZERO, line), None);
        }
        let ended = run.take(Duration::from_secs(1), "test result: ok. 0 passed; 0 failed;");
        assert!(matches!(ended, Some(Event::ProgramEnded(program)) if program.name == "b doc tests"));
        assert_eq!(
            run.programs
                .iter()
                .map(|program| program.took.is_some())
                .collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[test]
    fn only_lines_without_news_are_dull() {
        for dull in [
            "test a::b ... ok",
            "test a ... ignored, needs x",
            "",
            "running 3 tests",
            "test result: ok. 3 passed",
        ] {
            assert!(is_dull(dull), "{dull}");
        }
        for news in [
            "test a ... FAILED",
            "test result: FAILED. 1",
            "thread 'a' panicked",
            "test a has been running for over 60 seconds",
        ] {
            assert!(!is_dull(news), "{news}");
        }
    }
}
