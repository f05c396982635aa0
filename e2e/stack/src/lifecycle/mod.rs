//! The life-cycle suite: real clusterctl, Cluster API, Ironic and release; only the machines are simulated. A cluster
//! template becomes Nodes.
//!
//! Ironic and the machines run in the stack's network and end with it. [`simulator`] simulates the operating systems, using
//! only the disks and config-drives.
//!
//! Each claim depends on the previous ones, so they run in order and the first failure ends the run. The claims of a
//! [`Part`] run when it is requested; without any part, the suite is the life cycle of one cluster.

#![expect(
    clippy::indexing_slicing,
    reason = "only JSON values are indexed here: an absent member reads as null"
)]

mod audit;
mod audit_log;
pub(crate) mod charts;
mod checks;
mod claims;
mod cluster;
mod cluster_move;
mod conflicts;
mod describe;
mod drive;
mod env;
mod fleet;
mod foreign;
mod ignition;
mod install;
pub(crate) mod installation;
mod kills;
mod labels;
mod mirror;
mod other_providers;
mod phases;
mod plugin;
pub(crate) mod previous;
mod reader;
mod remediation;
mod report;
mod requests;
mod reuse;
mod rolls;
pub(crate) mod script;
mod simulator;
pub(crate) mod swap;
mod topology;
mod upgrade;
mod upgrade_plan;
mod workers;
mod workload;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use parking_lot::Mutex;

use crate::claim::exit_code;
use crate::claims::stack::Stack;
use crate::fresh::{Released, ensure_made, up};
use crate::namespaces::is_root;
use crate::peering;
use crate::places::Places;
use env::{Part, TestEnv};
use fleet::{Fleet, FleetOptions, Wanted};
use report::Report;
use simulator::MachineSimulator;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    released: Released,
    #[command(flatten)]
    fleet: FleetOptions,
    /// The report to write: steps, times, requests.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Parts to prove in addition to the life cycle of one cluster.
    #[arg(long = "part", value_enum)]
    parts: Vec<Part>,
    /// The seed of the points at which leaders are killed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The cluster autoscaler, which part `topology` runs.
    #[arg(long)]
    autoscaler: Option<PathBuf>,
    /// Every part.
    #[arg(long, conflicts_with = "parts")]
    whole: bool,
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

    /// This command, to run inside the stack.
    fn args(&self) -> anyhow::Result<Vec<OsString>> {
        let mut args = vec!["lifecycle".into(), "--seed".into(), self.seed.to_string().into()];
        args.extend(self.fleet.args()?);
        if let Some(report) = &self.report {
            args.extend(["--report".into(), std::path::absolute(report)?.into()]);
        }
        if let Some(autoscaler) = &self.autoscaler {
            args.extend(["--autoscaler".into(), std::fs::canonicalize(autoscaler)?.into()]);
        }
        for part in self.parts() {
            let name = part.to_possible_value();
            let name = name.as_ref().map_or("", |name| name.get_name());
            args.extend(["--part".into(), name.into()]);
        }
        Ok(args)
    }
}

/// Proves the suite on a fresh stack; the exit code is the result.
pub(crate) fn prove(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let released = &options.released;
    if released.inside {
        return inside(places, options);
    }
    let files = released.files().into_iter().chain(options.fleet.files());
    ensure_made(files, "make e2e-smoke")?;
    let second = second(places);
    let is_asked = options.moves();
    ensure!(!is_asked || is_root(), "only root can join two stacks");
    // An interrupted run may have left one.
    crate::instance::down(&second)?;
    let start_second = || {
        if is_asked {
            up(&second)?;
            peering::join(places, &second, install::ENDPOINTS)?;
        }
        Ok(())
    };
    let held = released.prove(places, start_second, options.args()?);
    if is_asked {
        if !matches!(held, Ok(true)) && second.state().exists() {
            println!("logs are kept in {}", crate::claims::keep_logs(&second)?.display());
        }
        crate::instance::down(&second)?;
    }
    Ok(exit_code(held?))
}

/// The management cluster that a cluster moves to.
fn second(places: &Places) -> Places {
    places
        .named(&format!("{}-2", places.name))
        .in_network(places.network() ^ 1)
}

fn inside(places: &Places, options: &Options) -> anyhow::Result<ExitCode> {
    let stack = Stack::new(places, None);
    crate::instance::set_image(places, install::IMAGE, &options.released.binary)?;
    let mut report = Report::begin();
    let second = second(places);
    if options.moves() {
        crate::instance::set_image(&second, install::IMAGE, &options.released.binary)?;
    }
    let second = Stack::new(&second, None);
    let wanted = Wanted {
        machines: fleet::MACHINES,
        ..Wanted::default()
    };
    let fleet = Fleet::start(&stack, &options.fleet, &wanted)?;
    let simulator = Mutex::new(MachineSimulator::new(&stack, &fleet));
    let env = TestEnv {
        stack: &stack,
        second: &second,
        release: &options.released.release,
        program: &options.released.binary,
        fleet: &fleet,
        simulator: &simulator,
        parts: options.parts(),
        seed: options.seed,
        autoscaler: options.autoscaler.as_deref(),
    };
    report.step(&env, "Ironic and the machines are started", "");
    let held = claims::prove(&env, &mut report);
    if let Some(path) = &options.report {
        report.write(&env, path)?;
        println!("the report is in {}", path.display());
    }
    Ok(exit_code(held))
}
