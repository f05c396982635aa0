//! The times of a run, on this machine or as an estimate, and what is expected from them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::output::{Program, Run};

const HEAD: &str =
    "# Seconds of a run of `make test`: the whole, the build, each program with its number of tests, each script.\n";

/// The times of a run.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Record {
    all: Duration,
    build: Duration,
    /// Number of tests and time of each program.
    programs: BTreeMap<String, (usize, Duration)>,
    scripts: BTreeMap<String, Duration>,
}

impl Record {
    /// The times of this run.
    pub(super) fn of(run: &Run, build: Duration, all: Duration) -> Self {
        let mut record = Self {
            all,
            build,
            ..Self::default()
        };
        for program in &run.programs {
            let (tests, took) = record.programs.entry(program.name.clone()).or_default();
            *tests = tests.saturating_add(program.tests.len());
            *took = took.saturating_add(program.took.unwrap_or_default());
        }
        record.scripts = run
            .scripts
            .iter()
            .map(|script| (script.name.clone(), script.took))
            .collect();
        record
    }

    /// The record of a file, if there is one.
    pub(super) fn read(file: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(file).ok()?)
    }

    pub(super) fn write(&self, file: &Path) -> Result<()> {
        let what = || format!("write {}", file.display());
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).with_context(what)?;
        }
        std::fs::write(file, self.text()).with_context(what)
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        let _ = writeln!(
            text,
            "all\t{:.1}\nbuild\t{:.1}",
            self.all.as_secs_f64(),
            self.build.as_secs_f64()
        );
        for (name, (tests, took)) in &self.programs {
            let _ = writeln!(text, "program\t{:.1}\t{tests}\t{name}", took.as_secs_f64());
        }
        for (name, took) in &self.scripts {
            let _ = writeln!(text, "script\t{:.1}\t{name}", took.as_secs_f64());
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut record = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut parts = line.split('\t');
            let (kind, seconds) = (parts.next()?, parts.next()?.parse().ok()?);
            let took = Duration::try_from_secs_f64(seconds).ok()?;
            match kind {
                "all" => record.all = took,
                "build" => record.build = took,
                "program" => {
                    let tests = parts.next()?.parse().ok()?;
                    record.programs.insert(parts.next()?.to_owned(), (tests, took));
                }
                "script" => drop(record.scripts.insert(parts.next()?.to_owned(), took)),
                _ => return None,
            }
        }
        Some(record)
    }

    /// What will be done, and how long it takes.
    pub(super) fn forecast(&self, is_own: bool) -> String {
        let tests: usize = self.programs.values().map(|(tests, _)| *tests).sum();
        let programs = self.programs.len();
        let times = format!(
            "{}: build {}, tests {}, scripts {}",
            text_of(self.all),
            text_of(self.build),
            text_of(self.programs.values().map(|(_, took)| *took).sum()),
            text_of(self.scripts.values().sum())
        );
        let times = if is_own {
            format!("The last run took {times}.")
        } else {
            format!(
                "No run is recorded on this machine; on two cores, with dependencies built, it takes about {times}. The first build \
                 takes longer."
            )
        };
        format!(
            "make test: {tests} tests in {programs} programs, then {} scripts of e2e/scenarios, each twice. {times}\n\
             `make test-long` has the longer generated runs.",
            self.scripts.len()
        )
    }

    /// One line after a program.
    pub(super) fn progress(&self, ended: &Program, so_far: Duration) -> String {
        let took = ended.took.unwrap_or_default();
        let left = self.all.saturating_sub(so_far);
        let left = if self.all.is_zero() {
            String::new()
        } else if left.is_zero() {
            ", longer than expected".to_owned()
        } else {
            format!(", about {} left", text_of(left))
        };
        format!(
            "make test: {} tests of {} in {}; {} so far{left}",
            ended.tests.len(),
            ended.name,
            text_of(took),
            text_of(so_far)
        )
    }
}

/// A duration for people.
pub(super) fn text_of(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{:.0} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds.div_euclid(60), seconds.rem_euclid(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::tests::recorded;

    #[test]
    fn written_record_is_read_again() {
        let record = Record::of(&recorded(), Duration::from_secs(62), Duration::from_secs(480));
        let read = Record::parse(&record.text()).unwrap();
        assert_eq!(
            read.programs.keys().collect::<Vec<_>>(),
            record.programs.keys().collect::<Vec<_>>()
        );
        assert_eq!(
            (read.all, read.build, read.scripts),
            (record.all, record.build, record.scripts)
        );
        assert!(Record::parse("all\tx").is_none() && Record::parse("time\t1").is_none());
    }

    #[test]
    fn committed_estimate_is_within_the_limit_of_eight_minutes() {
        let estimate = Record::parse(include_str!("../estimate.tsv")).unwrap();
        assert!(
            estimate.all <= Duration::from_secs(8 * 60) && estimate.programs.len() > 80,
            "{estimate:?}"
        );
        let scripts = std::fs::read_dir("../../../e2e/scenarios").unwrap();
        let scripts = scripts.map(|entry| entry.unwrap().path());
        let scripts = scripts.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        let names = scripts.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        let names: std::collections::BTreeSet<String> = names.collect();
        assert_eq!(
            estimate
                .scripts
                .keys()
                .cloned()
                .collect::<std::collections::BTreeSet<_>>(),
            names
        );
    }

    #[test]
    fn forecast_and_progress_say_how_long() {
        let record = Record::of(&recorded(), Duration::from_secs(62), Duration::from_secs(480));
        let forecast = record.forecast(true);
        assert!(
            forecast.starts_with("make test: 21 tests in 6 programs, then 2 scripts"),
            "{forecast}"
        );
        assert!(
            forecast.contains("The last run took 8 min 0 s: build 1 min 2 s"),
            "{forecast}"
        );
        assert!(record.forecast(false).contains("No run is recorded on this machine"));
        let program = recorded().programs.remove(1);
        let progress = record.progress(&program, Duration::from_secs(130));
        assert!(
            progress.contains("3 tests of metal3_grants src/lib.rs in"),
            "{progress}"
        );
        assert!(
            progress.ends_with("2 min 10 s so far, about 5 min 50 s left"),
            "{progress}"
        );
        assert!(
            record
                .progress(&program, Duration::from_secs(481))
                .ends_with("longer than expected")
        );
    }
}
