//! The mission, with nothing simulated but the metal: clusterctl, Cluster API, Ironic and the project's release are the
//! real ones, and a cluster template becomes Nodes.
//!
//! Ironic and the machines run in the stack's network and end with it. What boots from a written disk is played by
//! [`boots`], which knows nothing but what that disk and its config-drive hold.
//!
//! The claims stand on one another, so they run in order, and the first that does not hold ends the run. Those of a
//! [`Part`] are proved where it is asked for: without any, it is the life of one cluster.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

mod audit;
mod boots;
mod claims;
mod describe;
mod drive;
mod fleet;
mod foreign;
mod guests;
mod install;
mod judge;
mod kills;
mod life;
mod mirror;
mod moved;
mod phases;
mod report;
mod requests;
mod rolls;
pub(crate) mod script;
mod upgrade;
mod workload;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::ensure;
use clap::{Args, ValueEnum};

use crate::claims::world::World;
use crate::fresh::{Released, ensure_made, up};
use crate::namespaces::is_root;
use crate::neighbours;
use crate::places::Places;
use crate::products::Proof;
use crate::products::machines::NAMESPACE;
use crate::products::machines::metal::beside;
use boots::Boots;
use describe::Figures;
use fleet::{Fleet, Wanted};
use report::Report;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    metal: Metal,
    /// Where the report goes: steps, times, requests.
    #[arg(long)]
    report: Option<PathBuf>,
    /// What is proved beyond the life of one cluster.
    #[arg(long = "part", value_enum)]
    parts: Vec<Part>,
    /// Which points those are at which somebody is killed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Every part.
    #[arg(long, conflicts_with = "parts")]
    whole: bool,
}

/// What the metal is made of.
#[derive(Debug, Args)]
pub(crate) struct Metal {
    /// The script that starts Ironic.
    #[arg(long)]
    ironic: PathBuf,
    /// The program that plays machines.
    #[arg(long)]
    labhosts: PathBuf,
}

impl Metal {
    fn files(&self) -> [&PathBuf; 2] {
        [&self.ironic, &self.labhosts]
    }

    /// The same on a command line that is run inside.
    fn words(&self) -> anyhow::Result<Vec<OsString>> {
        let mut words = Vec::new();
        for (flag, path) in [("--ironic", &self.ironic), ("--labhosts", &self.labhosts)] {
            words.extend([flag.into(), std::fs::canonicalize(path)?.into()]);
        }
        Ok(words)
    }
}

/// Claims that need not be proved for those of others to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Workers are replaced by those of another template.
    Rolls,
    /// The cluster moves to another management cluster, and back.
    Move,
    /// The release is replaced by the next version, and taken away for a while.
    Upgrade,
    /// Whoever leads is killed at five points of a cluster's life.
    Kills,
    /// A Cluster whose infrastructure is another provider's, which moves there and back, too.
    Foreign,
}

impl Options {
    fn parts(&self) -> &[Part] {
        if self.whole {
            Part::value_variants()
        } else {
            &self.parts
        }
    }

    /// Whether a cluster moves to a second management cluster.
    fn moves(&self) -> bool {
        self.parts()
            .iter()
            .any(|part| [Part::Move, Part::Foreign].contains(part))
    }

    /// This command, as it is run inside.
    fn words(&self) -> anyhow::Result<Vec<OsString>> {
        let mut words = vec!["mission".into(), "--seed".into(), self.seed.to_string().into()];
        words.extend(self.metal.words()?);
        if let Some(report) = &self.report {
            words.extend(["--report".into(), std::path::absolute(report)?.into()]);
        }
        for part in self.parts() {
            let name = part.to_possible_value();
            let name = name.as_ref().map_or("", |name| name.get_name());
            words.extend(["--part".into(), name.into()]);
        }
        Ok(words)
    }
}

/// What every claim works on.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) world: &'a World,
    /// Another management cluster, which is there for those claims that need it.
    second: &'a World,
    pub(crate) release: &'a Path,
    pub(crate) fleet: &'a Fleet,
    boots: &'a Mutex<Boots<'a>>,
    parts: &'a [Part],
    seed: u64,
}

impl<'a> Scene<'a> {
    /// What runs on the machines.
    fn boots(&self) -> MutexGuard<'a, Boots<'a>> {
        // After a failure nobody looks again.
        self.boots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work while machines boot and go off.
    fn while_machines_live<T>(&self, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        beside("the metal", || self.boots().look(), work)
    }

    /// Does the same, and holds what clusterctl says of the cluster meanwhile against its objects.
    fn while_described<T>(&self, work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(T, Figures)> {
        describe::meanwhile(self.world, NAMESPACE, || self.while_machines_live(work))
    }
}

/// A promise, its proof on what the claims before have left, and what it is proved with.
struct Claim {
    name: &'static str,
    part: Option<Part>,
    proof: fn(&Scene<'_>) -> Proof,
}

/// Proves it on a fresh stack; the exit code says whether all of it holds.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    let files = released.files().into_iter().chain(options.metal.files());
    ensure_made(files, "make e2e-smoke")?;
    let second = second(places);
    let is_asked = options.moves();
    ensure!(!is_asked || is_root(), "only root can join two stacks");
    // One that an interrupted run left.
    crate::life::down(&second)?;
    let start_second = || {
        if is_asked {
            up(&second)?;
            neighbours::join(places, &second, install::ENDPOINTS)?;
        }
        Ok(())
    };
    let held = released.prove(places, start_second, options.words()?);
    if is_asked {
        if !matches!(held, Ok(true)) && second.state().exists() {
            println!("logs are kept in {}", crate::claims::keep_logs(&second)?.display());
        }
        crate::life::down(&second)?;
    }
    Ok(if held? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The management cluster that a cluster moves to.
fn second(places: &Places) -> Places {
    places
        .named(&format!("{}-2", places.name))
        .in_network(places.network() ^ 1)
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let world = World::new(places, None);
    crate::life::set_image(places, install::IMAGE, &options.released.binary)?;
    let mut report = Report::begin();
    let second = second(places);
    if options.moves() {
        crate::life::set_image(&second, install::IMAGE, &options.released.binary)?;
    }
    let second = World::new(&second, None);
    let wanted = Wanted {
        machines: fleet::MACHINES,
        ..Wanted::default()
    };
    let fleet = Fleet::start(&world, &options.metal, &wanted)?;
    let boots = Mutex::new(Boots::new(&world, &fleet));
    let scene = Scene {
        world: &world,
        second: &second,
        release: &options.released.release,
        fleet: &fleet,
        boots: &boots,
        parts: options.parts(),
        seed: options.seed,
    };
    report.step(&scene, "Ironic and the machines are up", "");
    let held = claims::prove(&scene, &mut report);
    if let Some(path) = &options.report {
        report.write(&scene, path)?;
        println!("the report is in {}", path.display());
    }
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
