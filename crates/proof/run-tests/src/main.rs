//! `make test`: says what it will do and how long it takes, runs all tests and scripts, and ends with one summary.
//!
//! It depends on almost nothing, so that its first line comes within seconds on a new machine. Everything that cargo and the
//! test programs print is printed; on a terminal, tests that pass are not.

mod command;
mod durations;
mod kinds;
mod output;
mod record;
mod summary;

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use command::{BUILD, SCRIPTS, TESTS, run};
use kinds::Generated;
use output::{Event, Run};
use record::{Record, text_of};
use summary::Summary;

/// The options of the command.
#[derive(Debug, Default)]
struct Options {
    /// The record of the last run, which is replaced.
    record: PathBuf,
    /// What is printed without a record.
    estimate: PathBuf,
}

fn main() -> ExitCode {
    let outcome = options(std::env::args().skip(1)).and_then(|options| test(&options));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("make test: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next().with_context(|| format!("{name}: needs a value"))?;
        match name.as_str() {
            "--record" => options.record = value.into(),
            "--estimate" => options.estimate = value.into(),
            _ => bail!("{name}: not an option"),
        }
    }
    Ok(options)
}

/// Runs all of it. Returns whether everything passed.
fn test(options: &Options) -> Result<bool> {
    let own = Record::read(&options.record);
    let is_own = own.is_some();
    let known = own.or_else(|| Record::read(&options.estimate)).unwrap_or_default();
    println!("{}", known.forecast(is_own));
    let watch = Stopwatch::start();
    println!("make test: building");
    if !run(BUILD, |line| {
        // One for each program.
        if !line.trim_start().starts_with("Executable") {
            println!("{line}");
        }
    })? {
        println!("make test: FAILED: the build failed after {}", text_of(watch.elapsed()));
        return Ok(false);
    }
    let build = watch.elapsed();
    let (mut tests, is_terminal) = (Run::default(), std::io::stdout().is_terminal());
    let ended_well = run(TESTS, |line| {
        let event = tests.take(watch.elapsed(), line);
        if !is_terminal || !output::is_dull(line) {
            println!("{line}");
        }
        if let Some(Event::ProgramEnded(program)) = event
            && !program.tests.is_empty()
        {
            println!("{}", known.progress(program, watch.elapsed()));
        }
    })?;
    let (mut scripts, after_tests) = (Run::default(), watch.elapsed());
    println!("make test: running the scripts of e2e/scenarios, each twice");
    let scripts_ended_well = run(SCRIPTS, |line| {
        scripts.take(watch.elapsed(), line);
        println!("{line}");
    })?;
    tests.scripts = scripts.scripts;
    let summary = Summary {
        tests: &tests,
        ended_well: ended_well && scripts_ended_well,
        generated: &Generated::of(Path::new(".")),
        threads: durations::threads(),
        build,
        testing: after_tests.saturating_sub(build),
        all: watch.elapsed(),
    };
    println!("{summary}");
    if summary.is_ok() {
        let record = Record::of(&tests, build, watch.elapsed()).write(&options.record);
        // The next forecast is worse without it, and this run as good.
        if let Err(error) = record {
            eprintln!("make test: {error:#}");
        }
    }
    Ok(summary.is_ok())
}

/// Real time since a start.
struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "it measures how long real programs run")]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
