//! Runs the scripts of `e2e/scenarios` in the real world: real Cluster API managers, a real Ironic, simulated machines.
//!
//! Steps and checks are those of `metal3-scenario`, so a script is the same in the simulated world. A script with
//! unsupported steps is rejected before it starts. One stack runs all scripts, each in its own namespace; after each
//! script the hosts are deleted.

mod adapt;
mod file;
mod idle;
pub(super) mod kinds;
mod requests;
mod runner;
mod watches;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use metal3_scenario::{ObservedStates, RequestCounts, Scenario};
use parking_lot::Mutex;

use super::env::TestEnv;
use super::fleet::{Fleet, FleetOptions, Wanted};
use super::other_providers::{self, OtherProviders};
use super::simulator::MachineSimulator;
use super::{describe, install};
use crate::claim::exit_code;
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made};
use crate::places::Places;
use crate::wait::Stopwatch;
use file::Script;
use kinds::Kinds;
use runner::Runner;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    fleet: FleetOptions,
    /// Write the observed states of objects to this file, sorted.
    #[arg(long)]
    observed: Option<PathBuf>,
    /// Write the requests of the products to this file.
    #[arg(long = "asked")]
    requests: Option<PathBuf>,
    /// Directory of published manifests, for the scripts that apply them.
    #[arg(long)]
    published: Option<PathBuf>,
    /// The scripts.
    #[arg(required = true)]
    file: Vec<PathBuf>,
}

impl Options {
    /// This command, to run inside the stack.
    fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args = vec!["scenarios".into()];
        for file in &self.file {
            args.push(std::fs::canonicalize(file)?.into());
        }
        args.extend(self.fleet.args()?);
        let paths = [
            ("--observed", &self.observed),
            ("--asked", &self.requests),
            ("--published", &self.published),
        ];
        for (flag, path) in paths {
            if let Some(path) = path {
                args.extend([flag.into(), std::path::absolute(path)?.into()]);
            }
        }
        Ok(args)
    }
}

/// Runs the scripts on a fresh stack; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    let files = released.files().into_iter().chain(options.fleet.files());
    ensure_made(files, "make e2e-scenarios")?;
    // Reports invalid scripts before the stack starts.
    read(options)?;
    let held = released.prove(places, || Ok(()), options.args()?)?;
    Ok(exit_code(held))
}

fn read(options: &Options) -> anyhow::Result<Vec<Script>> {
    let all = options.file.iter();
    all.map(|file| Script::read(file, options.published.as_deref()))
        .collect()
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let scripts = read(options)?;
    let stack = Stack::new(places, None);
    crate::instance::set_image(places, install::IMAGE, &options.released.binary)?;
    let hosts = scripts.iter().map(|script| script.scenario.hosts_at_most()).max();
    let wanted = Wanted {
        machines: usize::try_from(hosts.unwrap_or_default())?,
        images: adapt::published_images(&scripts)?,
        ..Wanted::default()
    };
    let fleet = Fleet::start(&stack, &options.fleet, &wanted)?;
    let simulator = Mutex::new(MachineSimulator::new(&stack, &fleet));
    let env = TestEnv {
        stack: &stack,
        second: &stack,
        release: &options.released.release,
        program: &options.released.binary,
        fleet: &fleet,
        simulator: &simulator,
        parts: &[],
        seed: 1,
        autoscaler: None,
    };
    let watch = Stopwatch::start();
    install::first_manager_of_hosts(&env)?;
    println!("       {}", install::providers(&env)?);
    println!("       installed after {:.1} s", watch.elapsed().as_secs_f64());
    let other_providers = start_other_providers(&env, &scripts)?;
    if let Some(other_providers) = &other_providers {
        env.simulator().with_other_providers(other_providers.workloads());
    }
    let mut results = Results::default();
    let failed = all(&env, &scripts, &mut results);
    // Also after a failure: a run is too long to lose its results.
    let Results { observed, requests } = results;
    let texts = [
        (&options.observed, observed.to_string()),
        (&options.requests, requests.to_string()),
    ];
    for (path, text) in texts.iter().filter_map(|(path, text)| Some((path.as_ref()?, text))) {
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        println!("results are in {}", path.display());
    }
    let failed = failed?;
    super::audit::no_request_was_forbidden(&stack)?;
    println!("{} scenarios on real managers, {failed} failed", scripts.len());
    Ok(exit_code(failed == 0))
}

/// Starts the other providers when a script names one of their kinds.
fn start_other_providers(env: &TestEnv<'_>, scripts: &[Script]) -> anyhow::Result<Option<OtherProviders>> {
    for script in scripts {
        if adapt::kinds(script)?.iter().any(|(_, kind)| other_providers::has(kind)) {
            return OtherProviders::begin(env.stack).map(Some);
        }
    }
    Ok(None)
}

/// The results of scripts.
#[derive(Default)]
struct Results {
    observed: ObservedStates,
    requests: RequestCounts,
}

/// Runs the scripts in sequence. A failed script does not stop the run when its machines can be cleaned up. Returns the
/// number of failures.
fn all(env: &TestEnv<'_>, scripts: &[Script], results: &mut Results) -> anyhow::Result<usize> {
    let kinds = Kinds::discover(env.stack)?;
    let mut failed = 0_usize;
    for script in scripts {
        let refusals = adapt::refusals(script, &kinds)?;
        let started = Stopwatch::start();
        let outcome = if refusals.is_empty() {
            one(env, script, &kinds, results)
        } else {
            Err(anyhow::anyhow!(
                "unsupported in the real world:\n{}",
                refusals.join("\n")
            ))
        };
        let (name, seconds) = (&script.name, started.elapsed().as_secs_f64());
        match outcome {
            Ok(()) => println!("{name}: ok: {}: {seconds:.1} s", script.scenario.about),
            Err(error) => {
                failed = failed.saturating_add(1);
                println!("{name}: FAILED after {seconds:.1} s\n{error:#}");
            }
        }
        if refusals.is_empty() {
            let cleaned = env.while_simulated(|| runner::clear(env, &kinds, script.namespace()));
            cleaned.with_context(|| format!("after {name}"))?;
        }
    }
    Ok(failed)
}

/// Runs one script, and records the states of objects and the requests of products.
fn one(env: &TestEnv<'_>, script: &Script, kinds: &Kinds, results: &mut Results) -> anyhow::Result<()> {
    let namespace = script.namespace();
    runner::open(env.stack, namespace)?;
    let watches = watches::StateWatches::begin(env.stack, kinds, namespace)?;
    let mut runner = Runner::new(env, kinds, script)?;
    let logs = requests::Mark::now(env)?;
    let run = describe::meanwhile(env.stack, namespace, || {
        env.while_simulated(|| run_steps(&mut runner, &script.scenario))
    });
    let watches = watches.end().and_then(|output| {
        let lines = output.to_string();
        ensure!(!lines.is_empty(), "no states were observed");
        results.observed.merge(output);
        results.requests.merge(logs.since(env, script)?);
        Ok(lines.lines().any(|line| line.starts_with("Cluster: ")))
    });
    // An error of the script is the more likely cause of later errors.
    let ((), figures) = run?;
    let had_cluster = watches?;
    println!("       {figures}");
    // A script with hosts only has no Cluster.
    if had_cluster { figures.prove() } else { Ok(()) }
}

fn run_steps(runner: &mut Runner<'_, '_>, scenario: &Scenario) -> anyhow::Result<()> {
    runner.add_hosts(scenario.hosts)?;
    for (number, step) in scenario.steps.iter().enumerate() {
        let (number, started) = (number.saturating_add(1), Stopwatch::start());
        runner.take(step).with_context(|| format!("step {number}: {step:?}"))?;
        println!("       step {number}: {:.1} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}
