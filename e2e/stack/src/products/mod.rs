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
mod ipam;
mod load;
mod release;
mod repair;
mod rotation;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::Args;

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
    /// Set by the suite itself: it is in the stack's network now.
    #[arg(long, hide = true)]
    inside: bool,
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
    if options.inside {
        return inside(places, options);
    }
    for file in [&options.release, &options.binary] {
        ensure!(file.exists(), "{} is missing: run `make release`", file.display());
    }
    let places = places.named(STACK);
    let watch = Stopwatch::start();
    life::down(&places)?;
    life::up(&places, &Extent::with_kubelet_flags(&["--refresh=1"]))?;
    let mut words = vec![
        std::env::current_exe()?.into_os_string(),
        "--cache".into(),
        places.cache().into(),
    ];
    words.extend(["--name", STACK, "products", "--inside", "--release"].map(Into::into));
    words.extend([std::fs::canonicalize(&options.release)?.into(), "--binary".into()]);
    words.push(std::fs::canonicalize(&options.binary)?.into());
    let held = life::command(&places, &words)?.status()?.success();
    if !held {
        println!("logs are kept in {}", crate::claims::keep_logs(&places)?.display());
    }
    life::down(&places)?;
    println!("the release took {:.0} s", watch.elapsed().as_secs_f64());
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let world = World::new(places, None);
    let candidate = Candidate::read(&options.release)?;
    life::set_image(places, &candidate.image_name()?, &options.binary)?;
    let mut held = 0_usize;
    for claim in ipam::CLAIMS {
        if !report(claim.name, (claim.proof)(&world, &candidate)) {
            println!("{held} of {} claims hold", ipam::CLAIMS.len());
            return Ok(ExitCode::FAILURE);
        }
        held += 1;
    }
    println!("{held} claims about the release hold");
    Ok(ExitCode::SUCCESS)
}
