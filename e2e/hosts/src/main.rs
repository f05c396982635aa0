//! Takes hosts through their whole life: the program as it is installed, in a process of its own, against a real Ironic.
//!
//! The API server is the simulated one, over HTTP; Ironic is `make ironic`'s, over TLS with a login; the machines are
//! Ironic's fake hardware or simulated ones. It judges from outside: objects, nodes and disks, and what was asked for.

mod claims;
mod counts;
mod document;
mod drive;
mod faults;
#[path = "../../../crates/hosts/tests/life/goals.rs"]
mod goals;
mod hardware;
mod judge;
mod kills;
mod level;
mod life;
mod phase;
mod program;
mod ramdisk;
mod tap;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use metal3_ironic_life::Place;
use tokio::signal::unix::{SignalKind, signal};

use claims::Claims;
use metal3_ironic_life::Level;
use world::Setup;

/// Takes hosts through their whole life on the real Ironic and compares disks and hardware.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// 1: fake hardware; 2: Redfish without a ramdisk; 3: Redfish and agents
    #[arg(long, default_value_t = 3)]
    level: u8,
    /// How many hosts live at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    hosts: u16,
    /// How many of them may load the provisioning network at once
    #[arg(long, default_value_t = 20)]
    slots: usize,
    /// Hardware profile of the machines
    #[arg(long, default_value = "small")]
    profile: String,
    /// Kill the program after so many of the changes that a life makes in Ironic, one life each; 0 for none
    #[arg(long, default_value_t = 0, conflicts_with = "direct")]
    kills: usize,
    /// Strike the faults of machines and write what hosts say to this page; machines are counted by the faults
    #[arg(long, value_name = "MARKDOWN", conflicts_with = "kills")]
    faults: Option<PathBuf>,
    /// Let the program ask Ironic itself: nothing is counted then
    #[arg(long)]
    direct: bool,
    /// Seconds that a host may take for a phase
    #[arg(long, default_value_t = 300)]
    patience: u64,
    #[command(flatten)]
    place: Place,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("host-life: a crypto provider is installed already");
        return ExitCode::FAILURE;
    }
    match until_told(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("host-life: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Ends early when told to: dropping the work ends what it started.
async fn until_told(arguments: &Arguments) -> anyhow::Result<()> {
    let mut told = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = run(arguments) => outcome,
        _ = told.recv() => bail!("told to end"),
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut claims = Claims::default();
    let setup = Setup {
        level: Level::parse(arguments.level)?,
        hosts: arguments.hosts,
        slots: arguments.slots,
        direct: arguments.direct,
    };
    match (&arguments.faults, arguments.kills) {
        (Some(page), _) => {
            let hosts = faults::machines();
            faults::strike(arguments, Setup { hosts, ..setup }, page, &mut claims).await?;
        }
        (None, 0) => life::live(arguments, setup, &mut claims).await?,
        (None, most) => kills::strike(arguments, setup, most, &mut claims).await?,
    }
    claims.sum()
}
