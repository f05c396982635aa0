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
pub(crate) mod release;
mod repair;
mod rotation;
mod self_managed;

use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::claim::{Claim, Proof, exit_code, report};
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made};
use crate::instance;
use crate::places::Places;
use crate::wait::Stopwatch;
use release::Candidate;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    /// Only this suite; default: each on a stack of its own.
    #[arg(long, value_enum)]
    suite: Option<Suite>,
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
        return inside(places, released, suite);
    }
    ensure_made(released.files(), "make release")?;
    let places = places.named(STACK);
    let watch = Stopwatch::start();
    let suites = options
        .suite
        .map_or(Suite::value_variants().to_vec(), |suite| vec![suite]);
    for suite in suites {
        let name = suite.to_possible_value();
        let name = name.as_ref().map_or("", PossibleValue::get_name);
        if !released.prove(
            &places,
            || Ok(()),
            ["products", "--suite", name].map(Into::into).to_vec(),
        )? {
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("the release took {:.0} s", watch.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn inside(places: &Places, released: &Released, suite: Suite) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, None);
    let candidate = Candidate::read(&released.release, &released.binary)?;
    instance::set_image(places, &candidate.image_name()?, &released.binary)?;
    Ok(exit_code(match suite {
        Suite::Addresses => hold(ipam::CLAIMS, |proof| proof(&stack, &candidate)),
        Suite::Machines => hold(machines::CLAIMS, |proof| proof(&stack, &released.release)),
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
