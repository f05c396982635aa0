//! The suite about the project's release: installed by an unmodified clusterctl, run by the process kubelet under its
//! ServiceAccount, checked from outside.
//!
//! Each claim depends on the previous ones, so they run in order and the first failure ends the run. Nothing is retried or
//! skipped.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

mod access;
mod empty_root;
mod ipam;
pub(crate) mod load;
pub(crate) mod machines;
mod manager;
mod one_namespace;
mod own_writes;
mod release;
mod repair;
mod rotation;
mod self_managed;
pub(crate) mod written;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::claim::{Claim, Proof, exit_code, report};
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made};
use crate::places::Places;
use crate::wait::Stopwatch;
use release::Candidate;
use written::Written;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    /// Only this suite; default: each on a stack of its own.
    #[arg(long, value_enum)]
    suite: Option<Suite>,
    /// Directory written by `make chart`.
    #[arg(long)]
    charts: PathBuf,
    /// The program helm.
    #[arg(long)]
    helm: PathBuf,
    /// A folder of templates that the Go managers publish.
    #[arg(long)]
    templates: Option<PathBuf>,
}

impl Options {
    /// This command for one suite, to run inside the stack.
    fn args(&self, suite: &str) -> anyhow::Result<Vec<OsString>> {
        let mut args: Vec<OsString> = ["products", "--suite", suite].map(Into::into).to_vec();
        for (flag, path) in [("--charts", &self.charts), ("--helm", &self.helm)] {
            // The charts are written when the archive is loaded.
            args.extend([flag.into(), std::path::absolute(path)?.into()]);
        }
        if let Some(templates) = &self.templates {
            args.extend(["--templates".into(), std::fs::canonicalize(templates)?.into()]);
        }
        Ok(args)
    }
}

/// A suite that runs on one stack.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Suite {
    /// IP address management.
    Addresses,
    /// Clusters and machines.
    Machines,
}

/// The name of the stack, different from the default of developers.
const STACK: &str = "products";

/// Proves the suites; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if let (true, Some(suite)) = (released.inside, options.suite) {
        return inside(places, options, suite);
    }
    ensure!(
        released.bundle.is_some(),
        "--bundle: the release with its images, which the Pods pull"
    );
    let files = released.files().into_iter().chain([&options.helm]);
    ensure_made(files, "make test-e2e-release")?;
    let places = places.named(STACK);
    let watch = Stopwatch::start();
    let suites = options
        .suite
        .map_or(Suite::value_variants().to_vec(), |suite| vec![suite]);
    for suite in suites {
        let name = suite.to_possible_value();
        let name = name.as_ref().map_or("", PossibleValue::get_name);
        if !released.prove(&places, || Ok(()), options.args(name)?)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("the release took {:.0} s", watch.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn inside(places: &Places, options: &Options, suite: Suite) -> anyhow::Result<ExitCode> {
    let (stack, released) = (Stack::new(places, None), &options.released);
    Ok(exit_code(match suite {
        Suite::Addresses => {
            let candidate = Candidate::read(&stack, &released.release, &released.binary)?;
            hold(ipam::CLAIMS, |proof| proof(&stack, &candidate))
        }
        Suite::Machines => {
            let candidate = machines::Candidate {
                written: Written::of(&stack, &released.release)?,
                charts: &options.charts,
                helm: &options.helm,
                templates: options.templates.as_deref(),
            };
            hold(machines::CLAIMS, |proof| proof(&stack, &candidate))
        }
    }))
}

/// Proves them up to the first that fails; returns whether all hold.
fn hold<P>(claims: &[Claim<P>], prove: impl Fn(&P) -> Proof) -> bool {
    for (held, (name, proof)) in claims.iter().enumerate() {
        if !report(name, prove(proof)) {
            println!("{held} of {} claims hold", claims.len());
            return false;
        }
    }
    println!("{} claims about the release hold", claims.len());
    true
}
