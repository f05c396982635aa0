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
pub(crate) mod release;
mod repair;
mod rotation;
mod self_managed;

use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::claims::report;
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

pub(crate) type Proof = anyhow::Result<String>;

struct Claim {
    name: &'static str,
    proof: fn(&Stack, &Candidate) -> Proof,
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
    type Proven<'a> = (&'static str, Box<dyn Fn() -> Proof + 'a>);
    let (stack, candidate) = (&stack, &candidate);
    let claims: Vec<Proven<'_>> = match suite {
        Suite::Addresses => {
            let all = ipam::CLAIMS.iter();
            all.map(|claim| -> Proven<'_> { (claim.name, Box::new(|| (claim.proof)(stack, candidate))) })
                .collect()
        }
        Suite::Machines => {
            let all = machines::CLAIMS.iter();
            all.map(|(name, proof)| -> Proven<'_> { (name, Box::new(|| proof(stack, &released.release))) })
                .collect()
        }
    };
    for (held, (name, proof)) in claims.iter().enumerate() {
        if !report(name, proof()) {
            println!("{held} of {} claims hold", claims.len());
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("{} claims about the release hold", claims.len());
    Ok(ExitCode::SUCCESS)
}
