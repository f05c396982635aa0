//! Takes hosts through their life cycle: the installed program, in its own process, with a real Ironic.
//!
//! The API server is the simulated one, over HTTP; Ironic is started by `make ironic`, over TLS with a login; the machines
//! are Ironic's fake hardware or simulated ones. It checks objects, nodes, disks and the recorded requests.

mod bios;
mod checks;
mod claims;
mod cleaning;
mod counts;
mod document;
mod drive;
mod env;
mod explained;
mod faults;
#[path = "../../../crates/hosts/tests/life/goals.rs"]
mod goals;
mod hardware;
mod images;
mod inspection;
mod interceptor;
mod kills;
mod level;
mod life;
mod phase;
mod program;
mod raid;
mod registry;
mod services;
mod updates;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use metal3_ironic_life::{Level, Place, run_program};

use claims::Claims;
use env::Setup;
use images::Scenario;

/// Takes hosts through their life cycle on the real Ironic and compares disks and hardware.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// 1: fake hardware; 2: Redfish without a ramdisk; 3: Redfish and agents
    #[arg(long, default_value_t = 3)]
    level: u8,
    /// Number of hosts that run concurrently
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    hosts: u16,
    /// Number of hosts that may load the provisioning network simultaneously
    #[arg(long, default_value_t = 20)]
    slots: usize,
    /// Hardware profile of the machines
    #[arg(long, default_value = "small")]
    profile: String,
    /// Kill the program after this many of the changes that a life cycle makes in Ironic, one life cycle each; 0 for none
    #[arg(long, default_value_t = 0, conflicts_with = "direct")]
    kills: usize,
    /// Inject machine faults and write the resulting host status to this page; one machine per fault
    #[arg(long, value_name = "MARKDOWN", conflicts_with = "kills")]
    faults: Option<PathBuf>,
    /// Make, change and remove RAID volumes of one machine, with a kill after each change
    #[arg(long, conflicts_with_all = ["kills", "faults", "direct"])]
    raid: bool,
    /// Change BIOS settings of one machine, with a kill after each change
    #[arg(long, conflicts_with_all = ["kills", "faults", "direct", "raid"])]
    bios: bool,
    /// Update the firmware of one machine, with a kill after each change
    #[arg(long, conflicts_with_all = ["kills", "faults", "direct", "raid", "bios"])]
    updates: bool,
    /// Change BIOS settings and firmware of a running machine at reboots, with a kill after each change
    #[arg(long, conflicts_with_all = ["kills", "faults", "direct", "raid", "bios", "updates"])]
    services: bool,
    /// Keep a disk of one machine while it is cleaned, with a kill after each change
    #[arg(long, conflicts_with_all = ["kills", "faults", "direct", "raid", "bios", "updates", "services"])]
    cleaning: bool,
    /// Deploy images of each kind and use what belongs to a host, with a kill after each order: all of it, or what is named
    #[arg(long, num_args = 0.., value_enum, conflicts_with_all = ["kills", "faults", "direct", "raid", "bios", "updates", "services", "cleaning"])]
    images: Option<Vec<Scenario>>,
    /// Connect the program to Ironic without the interceptor: requests are not counted
    #[arg(long)]
    direct: bool,
    /// Timeout of a phase in seconds
    #[arg(long = "patience", value_name = "PATIENCE", default_value_t = 300)]
    timeout: u64,
    #[command(flatten)]
    place: Place,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    run_program("host-life", run(&Arguments::parse())).await
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
            let hosts = metal3_ironic_life::faults::machines();
            faults::run(arguments, Setup { hosts, ..setup }, page, &mut claims).await?;
        }
        (None, _) if arguments.images.is_some() => images::run(arguments, setup, &mut claims).await?,
        (None, _) if arguments.bios => bios::run(arguments, setup, &mut claims).await?,
        (None, _) if arguments.updates => updates::run(arguments, setup, &mut claims).await?,
        (None, _) if arguments.services => services::run(arguments, setup, &mut claims).await?,
        (None, _) if arguments.raid => raid::run(arguments, setup, &mut claims).await?,
        (None, _) if arguments.cleaning => cleaning::run(arguments, setup, &mut claims).await?,
        (None, 0) => life::run(arguments, setup, &mut claims).await?,
        (None, most) => kills::run(arguments, setup, most, &mut claims).await?,
    }
    claims.finish()
}
