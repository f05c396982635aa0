//! The suite about the project's own release: installed by an unmodified clusterctl, run by the process kubelet under
//! its own ServiceAccount, judged from outside.
//!
//! The claims stand on one another, so they run in order, and the first that does not hold ends the run: what follows
//! would only repeat it. Nothing is retried and nothing skipped.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

mod access;
mod empty_root;
mod ipam;
mod load;
mod machines;
mod release;
mod repair;
mod rotation;
mod self_managed;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::claims::report;
use crate::claims::world::World;
use crate::life;
use crate::places::Places;
use crate::record::Stopwatch;
use crate::supervise::Extent;
use release::Candidate;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folder that `make release` has written.
    #[arg(long)]
    release: PathBuf,
    /// The binary of that release.
    #[arg(long)]
    binary: PathBuf,
    /// This suite alone; without, each on a stack of its own.
    #[arg(long, value_enum)]
    suite: Option<Suite>,
    /// Set by the suite itself: it is in the stack's network now.
    #[arg(long, hide = true)]
    inside: bool,
}

/// Claims that are proved on one stack.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Suite {
    /// IP address management.
    Addresses,
    /// Clusters and machines.
    Machines,
}

type Proof = anyhow::Result<String>;

/// A promise, and its proof on what the claims before have left.
struct Claim {
    name: &'static str,
    proof: fn(&World, &Candidate) -> Proof,
}

/// Name of the stack: one of its own, so that a developer's is left alone.
const STACK: &str = "products";

/// Proves everything on a fresh stack; the exit code says whether all of it holds.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    if let (true, Some(suite)) = (options.inside, options.suite) {
        return inside(places, options, suite);
    }
    for file in [&options.release, &options.binary] {
        ensure!(file.exists(), "{} is missing: run `make release`", file.display());
    }
    let places = places.named(STACK);
    let watch = Stopwatch::start();
    let suites = options
        .suite
        .map_or(Suite::value_variants().to_vec(), |suite| vec![suite]);
    for suite in suites {
        if !on_a_fresh_stack(&places, options, suite)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("the release took {:.0} s", watch.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn on_a_fresh_stack(places: &Places, options: &Options, suite: Suite) -> anyhow::Result<bool> {
    life::down(places)?;
    life::up(places, &Extent::with_kubelet_flags(&["--refresh=1"]))?;
    let mut words = vec![
        std::env::current_exe()?.into_os_string(),
        "--cache".into(),
        places.cache().into(),
    ];
    words.extend(["--name", STACK, "products", "--inside", "--suite"].map(Into::into));
    let name = suite.to_possible_value();
    words.push(name.as_ref().map_or("", PossibleValue::get_name).into());
    words.extend(["--release".into(), std::fs::canonicalize(&options.release)?.into()]);
    words.extend(["--binary".into(), std::fs::canonicalize(&options.binary)?.into()]);
    let held = life::command(places, &words)?.status()?.success();
    if !held {
        println!("logs are kept in {}", crate::claims::keep_logs(places)?.display());
    }
    life::down(places)?;
    Ok(held)
}

fn inside(places: &Places, options: &Options, suite: Suite) -> anyhow::Result<ExitCode> {
    let world = World::new(places, None);
    let candidate = Candidate::read(&options.release, &options.binary)?;
    life::set_image(places, &candidate.image_name()?, &options.binary)?;
    type Proven<'a> = (&'static str, Box<dyn Fn() -> Proof + 'a>);
    let (world, candidate) = (&world, &candidate);
    let claims: Vec<Proven<'_>> = match suite {
        Suite::Addresses => {
            let all = ipam::CLAIMS.iter();
            all.map(|claim| -> Proven<'_> { (claim.name, Box::new(|| (claim.proof)(world, candidate))) })
                .collect()
        }
        Suite::Machines => {
            let all = machines::CLAIMS.iter();
            all.map(|(name, proof)| -> Proven<'_> { (name, Box::new(|| proof(world, &options.release))) })
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
